"""The journal of a run and what becomes of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.algorithms.loops.dialogue import Iteration
from actors.artifacts import metrics
from actors.artifacts.run import JOURNAL, TRACE, Journal, Result, open_run, open_trace, total_usage, write
from actors.artifacts.store import open_timings

TURN = asdict(Iteration([0, 1]))
TURN |= {"ranked": [1, 0], "candidates": [2], "votes": [1], "navigated": [2], "navigated_scores": [0.5], "reused_scores": 3}
TURN |= {"navigated_from_pool": 1, "eligible": [2], "eligible_scores": [0.5], "explore": True, "added": [4, 5]}
TURN |= {"added_from": [2, -1]}


def result(query_id: str, *doc_ids: str) -> Result:
    usage = {"reranker": {"calls": 2}, "navigator": {"calls": 1, "failed": 1}}
    return Result(query_id, list(doc_ids), [TURN, TURN | {"navigated_scores": [float("nan")]}], usage, {"total": 1.5})


RESULTS = [result("b", "d 1", "d2"), result("a", "ü\t?"), result("c")]


def test_a_trace_has_all_of_an_iteration() -> None:
    assert set(TRACE.names) - {"query_id", "iteration", "usage"} == set(TURN)


def test_from_the_journal_to_the_run(tmp_path: Path) -> None:
    Journal(tmp_path).append(RESULTS)
    counts = write(tmp_path, ["a", "b", "c"], "garen-x")
    assert counts == {
        "queries": 3,
        "documents": 3,
        "empty pools": 1,
        "usage": {"reranker": {"calls": 6}, "navigator": {"calls": 3, "failed": 3}},
    }
    assert open_run(tmp_path) == {"a": {"ü\t?": 1.0}, "b": {"d 1": 1.0, "d2": 0.5}}
    assert (tmp_path / "run.tsv").read_text().splitlines()[1:] == [
        "b\tQ0\td 1\t1\t1.0\tgaren-x",
        "b\tQ0\td2\t2\t0.5\tgaren-x",
    ]
    first, second = open_trace(tmp_path, "b")
    assert {name: first[name] for name in TURN} == TURN
    assert (first["iteration"], second["iteration"]) == (1, 2) and second["navigated_scores"][0] != second["navigated_scores"][0]
    assert [(t["query_id"], t["seconds"]) for t in open_timings(tmp_path)] == [("a", 1.5), ("b", 1.5), ("c", 1.5)]
    assert not (tmp_path / JOURNAL).exists()


def test_the_order_in_which_queries_end_does_not_show(tmp_path: Path) -> None:
    for name, results in (("1", RESULTS), ("2", RESULTS[::-1])):
        (tmp_path / name).mkdir()
        Journal(tmp_path / name).append(results)
        write(tmp_path / name, ["a", "b", "c"], "x")
    for file in ("run.parquet", "run.tsv", "trace.parquet"):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()


@pytest.mark.parametrize("torn", range(1, 60, 7))
def test_a_torn_last_line_is_done_again(tmp_path: Path, torn: int) -> None:
    Journal(tmp_path).append(RESULTS)
    whole = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(whole[:-torn])
    journal = Journal(tmp_path)
    assert journal.done == {"a", "b"}
    journal.append(RESULTS[2:])
    assert (tmp_path / JOURNAL).read_bytes() == whole
    assert [r.query_id for r in journal.results()] == ["b", "a", "c"]


def test_an_empty_journal(tmp_path: Path) -> None:
    assert Journal(tmp_path).done == set() and list(Journal(tmp_path).results()) == []


def test_a_method_without_iterations(tmp_path: Path) -> None:
    Journal(tmp_path).append([Result("a", ["d"], [], {}, {})])
    assert write(tmp_path, ["a"], "bm25") == {"queries": 1, "documents": 1, "empty pools": 0, "usage": {}}
    assert open_trace(tmp_path, "a") == [] and pq.read_table(tmp_path / "trace.parquet").schema == TRACE


def test_scores_fall_strictly_over_a_long_answer(tmp_path: Path) -> None:
    Journal(tmp_path).append([Result("a", [f"d{i}" for i in range(1000)], [], {}, {})])
    write(tmp_path, ["a"], "x")
    scores = list(open_run(tmp_path)["a"].values())
    assert all(one > other for one, other in zip(scores, scores[1:], strict=False))


def test_usage_of_many() -> None:
    assert total_usage([]) == {}
    assert total_usage([{"a": {"x": 1}}, {"a": {"x": 2, "y": 1}, "b": {}}]) == {"a": {"x": 3, "y": 1}, "b": {}}


def test_metrics_come_back(tmp_path: Path) -> None:
    metrics.write(tmp_path, {"map": 0.25}, {"b": {"map": 0.5}, "a": {"map": 0.0}})
    assert metrics.open_metrics(tmp_path) == {
        "mean": {"map": 0.25},
        "per_query": {"a": {"map": 0.0}, "b": {"map": 0.5}},
    }
