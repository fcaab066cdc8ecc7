"""What is made from what, as it lies on disk; and a removal that leaves nothing half, whenever it is killed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from actors.artifacts import shelves
from actors.artifacts.shelves import AT_WORK, DAMAGED, FINISHED, UNFINISHED, alone_on, dependents_first, find, needed, remove
from actors.artifacts.store import Address, Recipe, draft, finish

Needs = dict[str, set[str]]


@st.composite
def graphs(draw: st.DrawFn) -> Needs:
    """What is made from what: anything from what came before it."""
    count = draw(st.integers(0, 12))
    return {str(n): {str(inner) for inner in range(n) if draw(st.booleans())} for n in range(count)}


@given(graphs(), st.sets(st.integers(0, 11).map(str)))
def test_needed_is_the_least_set_that_holds_the_roots_and_what_its_members_need(needs: Needs, roots: set[str]) -> None:
    roots &= needs.keys()
    found = needed(needs, roots)
    assert roots <= found and all(needs[key] <= found for key in found)
    for key in found - roots:
        assert any(key in needs[user] for user in found), "it is there for a reason"


@given(graphs(), st.sets(st.integers(0, 11).map(str)))
def test_after_any_number_of_removals_nothing_lacks_what_it_was_made_from(needs: Needs, roots: set[str]) -> None:
    kept = needed(needs, roots & needs.keys())
    order = dependents_first(needs, needs.keys() - kept)
    assert sorted(order) == sorted(needs.keys() - kept)
    for done in range(len(order) + 1):
        left = needs.keys() - set(order[:done])
        assert all(needs[key] <= left for key in left)


def put(shelf: Path, kind: str, *inputs: Address, number: int = 0, **aside: object) -> Address:
    address = Address(shelf, Recipe(kind, {"n": number}, {one.recipe.kind: one.name for one in inputs}, aside=aside))
    with draft(address) as folder:
        (folder / "payload").write_bytes(b"1234567")
        finish(address, {})
    return address


def key(address: Address) -> str:
    return shelves.key_of(address.folder)


def test_what_is_found(tmp_path: Path) -> None:
    corpus = put(tmp_path / "a", "corpus")
    vectors = put(tmp_path / "a", "embeddings", corpus)
    other = put(tmp_path / "b", "corpus")
    damaged = put(tmp_path / "b", "graph")
    (damaged.folder / "manifest.json").write_text("{")
    for nothing in ("models/x-012345678901", "a/notes", "a/corpus-xyz", "digests.json"):
        (tmp_path / nothing).mkdir(parents=True)
    found = find(tmp_path)
    assert list(found) == [key(corpus), key(vectors), key(other), key(damaged)]
    assert [one.state for one in found.values()] == [FINISHED, FINISHED, FINISHED, DAMAGED]
    assert found[key(vectors)].needs == {key(corpus)} and found[key(vectors)].kind == "embeddings"
    assert found[key(vectors)].bytes == 7 + (vectors.folder / "manifest.json").stat().st_size
    assert find(tmp_path / "nowhere") == {}


def test_what_a_run_replays_and_what_a_comparison_compares_is_needed(tmp_path: Path) -> None:
    """By a path below the root, by a name beside it, by a name on another shelf."""
    lists, first = put(tmp_path / "a", "lists"), put(tmp_path / "a", "run")
    replayed = put(tmp_path / "a", "run", number=1, reranker={"path": str(first.folder / "answers.parquet"), "url": "/elsewhere"})
    index = put(tmp_path / "a", "index", lists=lists.name, answering={"kept": [1, {"x": "corpus-0"}]})
    metrics = [put(tmp_path / shelf, "metrics") for shelf in ("a", "b")]  # the same name twice: which is meant is not known
    comparison = put(tmp_path / "comparisons", "comparison", metrics[0])
    needs = {name: one.needs for name, one in find(tmp_path).items()}
    assert needs[key(replayed)] == {key(first)}
    assert needs[key(index)] == {key(lists)}
    assert needs[key(comparison)] == {key(one) for one in metrics}


def test_a_draft_tells_what_it_is_made_from_also_after_a_kill(tmp_path: Path) -> None:
    corpus = put(tmp_path / "a", "corpus")
    address = Address(tmp_path / "a", Recipe("embeddings", {}, {"corpus": corpus.name}))
    name = shelves.key_of(address.partial)
    with pytest.raises(KeyboardInterrupt), draft(address):
        found = find(tmp_path)[name]
        assert (found.state, found.needs) == (AT_WORK, {key(corpus)})
        raise KeyboardInterrupt
    found = find(tmp_path)[name]
    assert (found.state, found.needs) == (UNFINISHED, {key(corpus)})
    shelves.lock_of(address.folder).write_text("")  # of a version that told nothing
    assert find(tmp_path)[name].needs == frozenset()


def test_a_removal_leaves_nothing_and_one_that_was_killed_is_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = put(tmp_path / "a", "corpus")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", killed_at_work)
        remove(corpus.folder)
    assert find(tmp_path) == {} and not corpus.built
    (left,) = shelves.left_behind(tmp_path)
    again = put(tmp_path / "a", "corpus")
    remove(again.folder)
    assert list((tmp_path / "a").iterdir()) == [] and not left.exists()


def killed_at_work(folder: Path, ignore_errors: bool = False) -> None:
    if folder.exists():
        next(folder.iterdir()).unlink()
        raise KeyboardInterrupt


def test_unfinished_work_goes_with_its_lock(tmp_path: Path) -> None:
    address = Address(tmp_path / "a", Recipe("corpus", {}))
    with pytest.raises(KeyboardInterrupt), draft(address):
        raise KeyboardInterrupt
    remove(address.partial)
    assert list((tmp_path / "a").iterdir()) == []


def test_who_works_on_a_shelf_keeps_it_from_being_pruned_until_it_ends(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from actors.artifacts.shelves import working_on\n"
        "working_on(Path(sys.argv[1])); working_on(Path(sys.argv[1])); print('at work', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "a")], stdin=-1, stdout=-1, text=True) as worker:
        assert worker.stdout and worker.stdout.readline() == "at work\n"
        with alone_on(tmp_path / "a") as alone, alone_on(tmp_path / "b") as other:
            assert not alone and other
        worker.communicate(timeout=60)
    with alone_on(tmp_path / "a") as alone:
        assert alone
        waiting = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "a")], stdin=-1, stdout=-1, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1.0)
        assert waiting.poll() is None
    assert waiting.communicate(timeout=60)[0] == "at work\n"


def test_a_shelf_where_nothing_can_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps({}))
    shelves.working_on(tmp_path / "file" / "shelf")
