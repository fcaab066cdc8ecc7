"""A finished run as its own judges: the same run again without any model, and another method over what was scored."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from actors.artifacts import run as run_files
from actors.artifacts.queries import Query
from actors.artifacts.run import Exchange
from actors.index import Index
from actors.judges.judge import FAILED, GROUPS, Ask, Scores
from actors.judges.replay import ReplayJudge
from actors.roles import Roles, in_process
from actors.searcher import Searcher
from conf import schema
from tests import toy

QUERIES = [Query("q1", toy.QUERY, ()), Query("q2", "copper wire bends", (3,))]
FILES = ("run.parquet", "run.tsv", "trace.parquet", "answers.parquet", "ledger.parquet")
LOOPS: Mapping[str, dict[str, Any]] = {
    "garen": toy.LOOP,
    "repair": {"w": 4, "h": 2, "budget": 8, "first_adaptive": 2, "last_adaptive": 9, "base_weight": 1.0, "consistency_weight": 1.0},
    "documents": {"w": 4, "h": 2, "budget": 8},
    "gar": {"batch": 3, "budget": 8},
}
DIRECTION = {"one": [1.0, 0.0], "other": [0.0, 1.0]}


def loop(method: str, **changed: Any) -> schema.Loop:
    loop: schema.Loop = schema.revive(schema.Loop, {"method": method, **LOOPS[method], **changed})
    return loop


def with_plans(roles: Roles, of: Mapping[str, list[str]]) -> Roles:
    """The same judges; the reranker tells a plan."""

    async def rerank(ask: Ask) -> Scores:
        scores = await roles["reranker"](ask)
        return scores._replace(steps=of[ask.query_id] if ask.plan else (), usage={"tokens": 7 * len(ask.rows)})

    async def compare(ask: Ask) -> Scores:
        near = toy.VECTORS[ask.rows] @ np.array([DIRECTION[text] for text in ask.texts], np.float32).T
        return Scores(near.T.ravel().tolist(), "ok", {"texts": len(ask.texts)})

    async def navigate(ask: Ask) -> Scores:
        if ask.of == GROUPS:
            return await roles["navigator"](ask)
        return Scores([toy.DOCUMENT_SCORE[row] for row in ask.rows], "ok", {})

    return {"reranker": rerank, "navigator": navigate, "encoder": compare}


def answered(index: Index, answering: schema.Answering, roles: Roles, folder: Path) -> Path:
    """A run's files, in a folder."""
    folder.mkdir()
    searcher = Searcher(index, answering, roles)
    results = [replace(asyncio.run(searcher.answer(query)), timings={}) for query in QUERIES]
    run_files.Journal(folder).append(results)
    run_files.write(folder, [query.query_id for query in QUERIES], "x")
    return folder


def replaying(answering: schema.Answering, run: Path, missing: float = 0.0) -> schema.Answering:
    judge = schema.ReplayJudge("replay", str(run), missing)
    return replace(answering, reranker=judge, navigator=judge)


def answering_of(index: Index, tmp_path: Path, method: str) -> schema.Answering:
    tables = toy.answering(toy.write_tables(tmp_path / "tables", ("q1", "q2")))
    return replace(tables, loop=loop(method))


# --- the same again ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", LOOPS)
def test_a_replayed_run_has_the_same_ranking_trace_answers_and_ledger(method: str, toy_index: Index, tmp_path: Path) -> None:
    answering = answering_of(toy_index, tmp_path, method)
    roles = with_plans(in_process(answering), {"q1": ["one", "other"], "q2": ["other"]})
    first = answered(toy_index, answering, roles, tmp_path / "first")
    again_with = replaying(answering, first, missing=math.nan)  # what was not recorded would be no answer
    again = answered(toy_index, again_with, in_process(again_with), tmp_path / "again")
    for file in FILES:
        assert (first / file).read_bytes() == (again / file).read_bytes(), file
    roles_asked = {line["role"] for line in pq.read_table(first / "answers.parquet").to_pylist()}
    assert roles_asked == {"garen": {"reranker", "navigator"}, "documents": {"reranker", "navigator"},
                           "repair": {"reranker", "encoder"}, "gar": {"reranker"}}[method]  # fmt: skip


def test_failures_are_replayed_too(toy_index: Index, tmp_path: Path) -> None:
    answering = answering_of(toy_index, tmp_path, "garen")
    roles = in_process(answering)

    async def rerank(ask: Ask) -> Scores:
        return Scores([math.nan] * 4, f"{FAILED}: Timeout", {}) if 8 in ask.rows else await roles["reranker"](ask)

    first = answered(toy_index, answering, {**roles, "reranker": rerank}, tmp_path / "first")
    again_with = replaying(answering, first)
    again = answered(toy_index, again_with, in_process(again_with), tmp_path / "again")
    for file in FILES:
        assert (first / file).read_bytes() == (again / file).read_bytes(), file
    told = {(line["query_id"], line["counter"]) for line in run_files.open_ledger(again) if line["role"] == "reranker"}
    assert ("q1", "outcome failed: Timeout") in told


# --- another method ---------------------------------------------------------------------------------------------------


def test_another_method_reads_the_recorded_scores_and_counts_what_it_lacks(toy_index: Index, tmp_path: Path) -> None:
    answering = answering_of(toy_index, tmp_path, "garen")
    first = answered(toy_index, answering, in_process(answering), tmp_path / "first")
    other = replace(replaying(answering, first, missing=-1.0), loop=schema.SlidingLoop("slidegar", 4, 2, 10))
    # garen judged 0 1 2 3 4 5 6 8. slidegar: 0 3 1 6, then 0 6 with the neighbours 4 7, then 4 0 with the pool's 8 9, then 4 8 with
    # the neighbours 3.., of 4: 5; of 8: none but 7, which is in.
    result = asyncio.run(Searcher(toy_index, other, in_process(other)).answer(QUERIES[0]))
    assert [turn["window"] for turn in result.trace] == [[0, 3, 1, 6], [0, 6, 4, 7], [4, 0, 8, 9], [4, 8, 5]]
    assert result.usage["reranker"] == {"calls": 4, "judged": 15, "outcome ok": 4, "missing": 2}  # 7 and 9
    assert result.trace[1]["ranked"] == [4, 0, 6, 7] and result.trace[2]["ranked"] == [4, 8, 0, 9]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """What a few exchanges left behind."""
    exchanges = [
        Exchange("reranker", "documents", [1, 2], [], [0.9, 0.1], ["dig"], True, "ok", {"tokens": 3}),
        Exchange("reranker", "documents", [3, 4], [], [2.0, 1.0], [], False, "ok", {}),
        Exchange("reranker", "documents", [2, 5], [], [math.nan, math.nan], [], True, "failed: X", {}),
        Exchange("navigator", "groups", [1, 7], [], [0.5, 0.25], [], True, "ok", {}),
        Exchange("encoder", "documents", [1, 2], ["dig"], [0.3, 0.4], [], True, "ok", {}),
    ]
    answers = [{"iteration": 1, **vars(exchange)} for exchange in exchanges]
    run_files.Journal(tmp_path).append([run_files.Result("q1", [], [], answers, {}, {})])
    run_files.write(tmp_path, ["q1"], "x")
    return tmp_path


def ask(judge: ReplayJudge, rows: list[int], query_id: str = "q1", **named: Any) -> Scores:
    (scores,) = asyncio.run(judge.scores([Ask("/another/index", query_id, "", rows, **named)]))
    return scores


def test_a_recorded_request_has_its_recorded_answer(recorded: Path) -> None:
    judge = ReplayJudge(str(recorded), "reranker", -1.0)
    assert ask(judge, [1, 2]) == Scores([0.9, 0.1], "ok", {"tokens": 3}, ["dig"])
    assert ask(judge, [3, 4]) == Scores([2.0, 1.0], "ok", {}, [], comparable=False)
    assert (ask(judge, [2, 5]).outcome, [math.isnan(v) for v in ask(judge, [2, 5]).values]) == ("failed: X", [True, True])


def test_other_requests_are_put_together_from_scores_on_one_scale(recorded: Path) -> None:
    judge = ReplayJudge(str(recorded), "reranker", -1.0)
    assert ask(judge, [2, 1]) == Scores([0.1, 0.9], "ok", {}), "a failed answer does not take a score away"
    assert ask(judge, [1, 3]) == Scores([0.9, -1.0], "ok", {"missing": 1}), "3 has a place in an order and no score"
    assert ask(judge, [5]) == Scores([-1.0], "ok", {"missing": 1}), "nobody ever judged 5"
    assert ask(judge, [1], "q2") == Scores([-1.0], "ok", {"missing": 1})
    assert ask(judge, [1], of=GROUPS) == Scores([-1.0], "ok", {"missing": 1})


def test_each_role_replays_its_own(recorded: Path) -> None:
    assert ask(ReplayJudge(str(recorded), "navigator", -1.0), [7, 2], of=GROUPS) == Scores([0.25, -1.0], "ok", {"missing": 1})


def test_similarities_are_replayed_or_not_known(recorded: Path) -> None:
    judge = ReplayJudge(str(recorded), "encoder", -1.0)
    assert ask(judge, [1, 2], texts=["dig"]) == Scores([0.3, 0.4], "ok", {}, [])
    unknown = ask(judge, [1, 2], texts=["dig", "melt"])
    assert unknown.outcome == "failed: not recorded" and len(unknown.values) == 4 and all(map(math.isnan, unknown.values))


def test_a_folder_without_answers_is_said_with_what_to_give(tmp_path: Path) -> None:
    said = rf"{tmp_path}: holds no answers\.parquet\. Give navigator\.path the folder of a finished run\."
    with pytest.raises(ValueError, match=said):
        ReplayJudge(str(tmp_path), "navigator", 0.0)
    with pytest.raises(ValueError, match=r"nowhere: holds no answers\.parquet\. Give reranker\.path"):
        ReplayJudge(str(tmp_path / "nowhere"), "reranker", 0.0)
