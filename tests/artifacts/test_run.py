"""The journal of a run and what becomes of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from actors.algorithms.loops.dialogue import Iteration
from actors.artifacts import metrics
from actors.artifacts.run import (
    ANSWERS,
    EXCHANGE,
    JOURNAL,
    LEDGER,
    TRACE,
    Exchange,
    Journal,
    Result,
    open_answers,
    open_ledger,
    open_run,
    open_trace,
    open_traces,
    total_usage,
    write,
)
from actors.artifacts.store import open_timings

TURN = asdict(Iteration([0, 1]))
TURN |= {"ranked": [1, 0], "candidates": [2], "votes": [1], "navigated": [2], "navigated_scores": [0.5], "reused_scores": 3}
TURN |= {"navigated_from_pool": 1, "eligible": [2], "eligible_scores": [0.5], "explore": True, "added": [4, 5]}
TURN |= {"added_from": [2, -1], "pool_fill": 1, "steps": ["dig"], "step": 0, "asked": 2}
KEPT = {name: value for name, value in TURN.items() if name in TRACE.names}
RANKING = Exchange("reranker", "documents", [0, 1], [], [0.5, 0.25], ["dig"], False, "ok", {"tokens": 7})
SIMILAR = Exchange(
    "encoder", "documents", [3, 4], ["dig", "ü\t?"], [0.1, 0.2, -0.3, float("nan")], [], True, "failed: no score", {}
)
SCORED = Exchange("navigator", "groups", [2], [], [0.5], [], True, "ok", {"missing": 1})


def result(query_id: str, *doc_ids: str) -> Result:
    usage = {"reranker": {"calls": 2}, "navigator": {"calls": 1, "failed": 1}}
    turns = [TURN, TURN | {"navigated_scores": [float("nan")]}]
    answers = [{"iteration": t, **asdict(e)} for t, e in ((1, RANKING), (1, SIMILAR), (2, SCORED))]
    return Result(query_id, list(doc_ids), turns, answers, usage, {"total": 1.5})


RESULTS = [result("b", "d 1", "d2"), result("a", "ü\t?"), result("c")]


def test_a_trace_has_all_of_an_iteration_and_answers_all_of_an_exchange() -> None:
    assert set(TRACE.names) - {"query_id", "iteration", "usage"} == set(TURN) - {"asked", "pool_fill"}
    assert set(EXCHANGE.names) - {"query_id", "iteration"} == set(asdict(RANKING))


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
    assert {name: first[name] for name in KEPT} == KEPT
    assert (first["iteration"], second["iteration"]) == (1, 2) and second["navigated_scores"][0] != second["navigated_scores"][0]
    assert [(t["query_id"], t["seconds"]) for t in open_timings(tmp_path)] == [("a", 1.5), ("b", 1.5), ("c", 1.5)]
    assert not (tmp_path / JOURNAL).exists()


def test_everything_that_was_asked_comes_back_by_role(tmp_path: Path) -> None:
    Journal(tmp_path).append(RESULTS)
    write(tmp_path, ["a", "b", "c"], "x")
    for exchange in (RANKING, SIMILAR, SCORED):
        found = list(open_answers(tmp_path, exchange.role))
        assert [query_id for query_id, _ in found] == ["a", "b", "c"]
        assert {repr(one) for _, one in found} == {repr(exchange)}  # as text, where nan is nan
    assert list(open_answers(tmp_path, "nobody")) == []
    lines = pq.read_table(tmp_path / ANSWERS).to_pylist()
    assert [(line["query_id"], line["iteration"], line["role"]) for line in lines[:3]] == [
        *[("a", 1, "reranker"), ("a", 1, "encoder"), ("a", 2, "navigator")]
    ]


def test_the_ledger_of_every_query_comes_back(tmp_path: Path) -> None:
    Journal(tmp_path).append(RESULTS)
    write(tmp_path, ["a", "b", "c"], "x")
    of_one = [("navigator", "calls", 1), ("navigator", "failed", 1), ("reranker", "calls", 2)]
    ledger = [(line["query_id"], line["role"], line["counter"], line["number"]) for line in open_ledger(tmp_path)]
    assert ledger == [(query_id, *counter) for query_id in "abc" for counter in of_one]
    assert pq.read_table(tmp_path / "ledger.parquet").schema == LEDGER


def test_the_iterations_of_all_queries(tmp_path: Path) -> None:
    Journal(tmp_path).append(RESULTS)
    write(tmp_path, ["c", "b", "a"], "x")
    traces = open_traces(tmp_path)
    assert list(traces) == ["c", "b", "a"] and [turn["iteration"] for turn in traces["b"]] == [1, 2]
    assert repr(traces["b"]) == repr(open_trace(tmp_path, "b"))


def test_the_order_in_which_queries_end_does_not_show(tmp_path: Path) -> None:
    for name, results in (("1", RESULTS), ("2", RESULTS[::-1])):
        (tmp_path / name).mkdir()
        Journal(tmp_path / name).append(results)
        write(tmp_path / name, ["a", "b", "c"], "x")
    for file in ("run.parquet", "run.tsv", "trace.parquet", ANSWERS, "ledger.parquet"):
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
    Journal(tmp_path).append([Result("a", ["d"], [], [], {}, {})])
    assert write(tmp_path, ["a"], "bm25") == {"queries": 1, "documents": 1, "empty pools": 0, "usage": {}}
    assert open_trace(tmp_path, "a") == [] and pq.read_table(tmp_path / "trace.parquet").schema == TRACE
    assert list(open_answers(tmp_path, "reranker")) == [] and open_ledger(tmp_path) == []


def test_scores_fall_strictly_over_a_long_answer(tmp_path: Path) -> None:
    Journal(tmp_path).append([Result("a", [f"d{i}" for i in range(1000)], [], [], {}, {})])
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
