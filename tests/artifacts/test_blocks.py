"""Blocks: what is missing, whatever was there before, and one file of all at the end."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from actors.artifacts.blocks import blocks_of, forget_torn, join_blocks, missing_spans, save_array, save_block, write_bytes


def test_missing_spans_fit_between_what_is_there(tmp_path: Path) -> None:
    assert missing_spans(tmp_path, "x", 10, 4) == [(0, 4), (4, 8), (8, 10)]
    save_block(tmp_path, "x", 4, np.zeros(3))  # rows 4, 5, 6, of a run with another step
    assert missing_spans(tmp_path, "x", 10, 4) == [(0, 4), (7, 10)]
    assert missing_spans(tmp_path, "x", 10, 2) == [(0, 2), (2, 4), (7, 9), (9, 10)]
    assert missing_spans(tmp_path, "x", 10, 100) == [(0, 4), (7, 10)]


def test_nothing_is_missing_of_nothing(tmp_path: Path) -> None:
    assert missing_spans(tmp_path / "not there", "x", 0, 4) == []


def test_names_do_not_mix(tmp_path: Path) -> None:
    save_block(tmp_path, "x", 0, np.zeros(2))
    save_block(tmp_path, "xy", 2, np.zeros(2))
    assert list(blocks_of(tmp_path, "x")) == [0] and list(blocks_of(tmp_path, "xy")) == [2]


def test_half_a_block_is_no_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save_block(tmp_path, "x", 0, np.zeros(4))
    assert missing_spans(tmp_path, "x", 4, 4) == [(0, 4)]


def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bytes(tmp_path / "a", b"old")
    monkeypatch.setattr(Path, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_bytes(tmp_path / "a", b"new and longer")
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_gap_or_a_short_end_is_named(tmp_path: Path) -> None:
    save_block(tmp_path, "x", 0, np.zeros(2, np.int32))
    save_block(tmp_path, "x", 5, np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="rows 2 to 5 of x are missing. Remove .* and run the job again"):
        join_blocks(tmp_path, "x", tmp_path / "whole.npy", (7,), "<i4")
    save_block(tmp_path, "x", 2, np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="x ends at row 7, expected 9 rows"):
        join_blocks(tmp_path, "x", tmp_path / "whole.npy", (9,), "<i4")
    assert not (tmp_path / "whole.npy").exists()


@settings(max_examples=25)
@given(st.integers(0, 30), st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), max_size=4), st.integers(1, 9))
def test_attempts_with_any_steps_end_in_the_same_file(
    tmp_path_factory, rows: int, attempts: list[tuple[int, int]], last: int
) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    truth = np.arange(rows * 2, dtype=np.int32).reshape(rows, 2)
    for step, spans_done in [*attempts, (last, rows)]:
        missing = missing_spans(folder, "x", rows, step)
        assert all(0 < end - first <= step for first, end in missing)
        for first, end in missing[-spans_done:] if spans_done else []:  # from the end: workers finish in any order
            save_block(folder, "x", first, truth[first:end])
    assert missing_spans(folder, "x", rows, 3) == []
    join_blocks(folder, "x", folder / "whole.npy", (rows, 2), "<i4")
    assert np.array_equal(np.load(folder / "whole.npy"), truth)


def test_blocks_without_their_mark_are_forgotten(tmp_path: Path) -> None:
    """A writer that was killed between two arrays of a block; its rows came again, cut otherwise."""
    for first, length in ((0, 2), (2, 2), (3, 1)):
        save_block(tmp_path, "scores", first, np.zeros(length))
    for first in (0, 2):
        save_block(tmp_path, "rows", first, np.zeros(2))
    forget_torn(tmp_path, ("scores", "rows"))
    assert list(blocks_of(tmp_path, "scores")) == list(blocks_of(tmp_path, "rows")) == [0, 2]


def test_an_array_is_there_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "whole.npy"
    save_array(path, np.arange(3))

    def killed(file: BinaryIO, _: object) -> None:
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        save_array(path, np.arange(4))
    assert np.load(path).tolist() == [0, 1, 2]
