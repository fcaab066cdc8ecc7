"""Summaries in parts: as they were written, and the same bytes after any kill."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actors.artifacts import summaries
from actors.artifacts.summaries import Summary

LINES = [
    Summary(
        group,
        f"concept {group}",
        f"Ein Satz.\nÜber {group}.",
        tuple(range(group)),
        "repaired" if group % 3 == 1 else "extractive",
    )
    for group in range(5)
]
VECTORS = np.eye(5, 4, dtype=np.float32)


def make(folder: Path, step: int = 2) -> dict[str, int]:
    for first, last in summaries.missing_parts(folder, len(LINES), step):
        summaries.write_part(folder, LINES[first:last], VECTORS[first:last])
    return summaries.join(folder, len(LINES))


def test_round_trip(tmp_path: Path) -> None:
    assert make(tmp_path) == {"extractive": 3, "repaired": 2}
    opened = summaries.open_summaries(tmp_path)
    assert [opened[group] for group in range(len(opened))] == LINES
    assert opened.vectors.dtype == np.float16 and np.array_equal(opened.vectors, VECTORS)
    assert opened[2].text == "concept 2\nEin Satz.\nÜber 2."
    assert sorted(p.name for p in tmp_path.iterdir()) == ["summaries.arrow", "summary_vectors.f16.npy"]


@pytest.mark.parametrize("batch", [1, 2, 3, 5])
def test_batches_do_not_follow_the_parts(tmp_path: Path, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are read at random from batches of one size, whatever parts they were made in."""
    monkeypatch.setattr(summaries, "BATCH", batch)
    for step in (1, 2, 4):
        folder = tmp_path / str(step)
        folder.mkdir()
        assert make(folder, step) == {"extractive": 3, "repaired": 2}
        opened = summaries.open_summaries(folder)
        assert [opened[group] for group in (4, 0, 3, 1, 2)] == [LINES[group] for group in (4, 0, 3, 1, 2)]
        assert len(opened) == 5 and opened.outcomes() == {"extractive": 3, "repaired": 2}
    assert len({(tmp_path / str(step) / "summaries.arrow").read_bytes() for step in (1, 2, 4)}) == 1


@pytest.mark.parametrize("group", [-1, 5])
def test_a_group_that_is_not_there(tmp_path: Path, group: int) -> None:
    make(tmp_path)
    with pytest.raises(IndexError, match=f"group {group}: expected 0 to 4"):
        summaries.open_summaries(tmp_path)[group]


def test_killed_at_every_rename_and_started_again(killed_everywhere) -> None:
    made = killed_everywhere(make)
    assert len(made) >= 9  # 3 parts of 2 files, the two at the end, and the attempt that nothing killed
    assert len({str(files) for files in made}) == 1


def test_another_part_size_after_a_kill(tmp_path: Path, killed_everywhere) -> None:
    sizes = iter([2, 3] * 20)
    made = killed_everywhere(lambda folder: make(folder, next(sizes)))
    tables = []
    for number in range(1, len(made) + 1):
        opened = summaries.open_summaries(tmp_path / str(number))
        assert [opened[group] for group in range(len(opened))] == LINES
        tables.append(made[number - 1])
    assert len({str(files) for files in tables}) == 1


def test_no_groups(tmp_path: Path) -> None:
    assert summaries.join(tmp_path, 0) == {}
    assert len(summaries.open_summaries(tmp_path)) == 0


# --- what was paid for ------------------------------------------------------------------------------------------------


def journal(folder: Path, first: int, groups: list[int], bad: tuple[int, ...] = ()) -> None:
    kept = summaries.GroupJournal(folder, first)
    for group in groups:
        kept.add(LINES[group], {"model_calls": 1, "prompt_tokens": 10 + group}, good=group not in bad)


def test_a_journal_gives_back_what_was_good(tmp_path: Path) -> None:
    journal(tmp_path, 0, [0, 2, 1], bad=(2,))
    journal(tmp_path, 3, [3])
    assert summaries.GroupJournal(tmp_path, 0).done == {0: LINES[0], 1: LINES[1]}
    assert summaries.GroupJournal(tmp_path, 3).done == {3: LINES[3]}
    assert summaries.GroupJournal(tmp_path, 4).done == {}


def test_all_that_was_asked_is_counted_over_every_start(tmp_path: Path) -> None:
    journal(tmp_path, 0, [0, 1], bad=(1,))
    journal(tmp_path, 0, [1])
    journal(tmp_path, 3, [3])
    assert summaries.usage_so_far(tmp_path) == {"model_calls": 4, "prompt_tokens": 10 + 11 + 11 + 13}
    assert summaries.usage_so_far(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("torn", [1, 20, -1])
def test_a_line_that_was_torn_is_done_again(tmp_path: Path, torn: int) -> None:
    journal(tmp_path, 0, [0, 1])
    path = tmp_path / "parts" / "groups@000000000000.jsonl"
    first, second = path.read_bytes().splitlines(True)
    path.write_bytes(first + second[:torn])
    assert summaries.usage_so_far(tmp_path) == {"model_calls": 1, "prompt_tokens": 10}, "also where its part was made anew"
    assert summaries.GroupJournal(tmp_path, 0).done == {0: LINES[0]}
    assert path.read_bytes() == first, "what follows begins a line of its own"
    journal(tmp_path, 0, [1])
    assert summaries.GroupJournal(tmp_path, 0).done == {0: LINES[0], 1: LINES[1]}


def test_parts_with_an_outcome_are_forgotten_and_made_again(tmp_path: Path) -> None:
    for first, last in ((0, 2), (2, 3), (3, 5)):
        summaries.write_part(tmp_path, LINES[first:last], VECTORS[first:last])
    journal(tmp_path, 0, [0, 1])
    assert summaries.outcomes_so_far(tmp_path) == {"extractive": 3, "repaired": 2}
    summaries.forget(tmp_path, "repaired")  # groups 1 and 4
    assert summaries.outcomes_so_far(tmp_path) == {"extractive": 1}
    assert summaries.missing_parts(tmp_path, 5, 2) == [(0, 2), (3, 5)]
    assert set(summaries.GroupJournal(tmp_path, 0).done) == {0, 1}
    summaries.forget(tmp_path, "no such outcome")
    assert summaries.outcomes_so_far(tmp_path) == {"extractive": 1}
    assert make(tmp_path) == {"extractive": 3, "repaired": 2}
