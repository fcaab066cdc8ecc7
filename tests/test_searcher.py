"""The searcher carries a loop's requests to its judges: the answer is the loop's, the ledger says what it took."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import asdict, replace

import pytest

from actors.algorithms.loops.garen import garen
from actors.artifacts.queries import Query
from actors.index import Index
from actors.judges.judge import Ask, Scores
from actors.line import Line, ranking_failed, scores_failed
from actors.reranker import Ranking
from actors.searcher import Roles, Searcher, in_process
from conf import schema
from tests import toy

QUERY = Query("q1", toy.QUERY, ())


@pytest.fixture
def roles(toy_index: Index) -> Roles:
    return in_process(toy_index, toy_index.answering)


def searcher(index: Index, roles: Roles, loop: schema.Loop | None = None) -> Searcher:
    return Searcher(index, replace(index.answering, loop=loop) if loop else index.answering, roles)


def test_it_answers_as_the_loop_that_is_driven_by_hand(toy_index: Index, roles: Roles) -> None:
    talk = toy.Talk(toy.by(toy.DOCUMENT_SCORE), lambda group: toy.GROUP_SCORE[group])
    expected = talk(garen(toy.pool(), toy.Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), **toy.LOOP))
    result = asyncio.run(searcher(toy_index, roles).answer(QUERY))
    assert result.doc_ids == [toy.IDS[row] for row in expected.ranking] and result.query_id == "q1"
    told = [json.loads(turn.pop("usage")) for turn in result.trace]
    assert result.trace == [asdict(turn) for turn in expected.iterations]
    assert [sum(counters["calls"] for counters in exchange.values()) for exchange in told] == [len(turn) for turn in talk.turns]


def test_the_ledger(toy_index: Index, roles: Roles) -> None:
    """Three windows of four, two navigations of two; four documents came with groups, one score was there already."""
    result = asyncio.run(searcher(toy_index, roles).answer(QUERY))
    assert result.usage == {
        "reranker": {"calls": 3, "judged": 12, "outcome ok": 3},
        "navigator": {"calls": 2, "judged": 4, "outcome ok": 2},
        "loop": {"iterations": 3, "documents": 8, "from_groups": 4, "from_neighbours": 0, "from_pool": 4, "reused_scores": 1},
    }
    assert set(result.timings) == {"first_stage", "loop", "models", "total"}
    assert result.timings["total"] >= result.timings["first_stage"] + result.timings["models"] > 0


def test_excluded_rows_are_gone(toy_index: Index, roles: Roles) -> None:
    result = asyncio.run(searcher(toy_index, roles).answer(Query("q1", toy.QUERY, (0, 8))))
    assert not {"doc 0", "doc 8"} & set(result.doc_ids) and len(result.doc_ids) == 8
    assert result.trace[0]["window"] == [3, 1, 6, 9]


def test_the_other_methods(toy_index: Index, roles: Roles) -> None:
    answer = asyncio.run(searcher(toy_index, roles, schema.Bm25Loop("bm25", 3)).answer(QUERY))
    assert answer.doc_ids == ["doc 0", "doc 3", "doc 1"] and answer.usage["reranker"] == {} == answer.usage["navigator"]
    # windows (8 9 with 1 6 above): 1 6 8 9 -> 8 6 1 9, then 0 3 8 6 -> 8 0 6 3
    answer = asyncio.run(searcher(toy_index, roles, schema.SlidingLoop("retrieve_and_rerank", 4, 2, 6)).answer(QUERY))
    assert answer.doc_ids == [f"doc {row}" for row in (8, 0, 6, 3, 1, 9)]
    assert answer.usage["loop"]["from_pool"] == 6


def test_the_requests_of_an_iteration_are_under_way_together(toy_index: Index) -> None:
    async def run() -> list[str]:
        navigating = asyncio.Event()

        async def rank(ask: Ask) -> Ranking:
            if 3 in ask.rows:  # only the first window: it is answered once the navigator was asked
                await asyncio.wait_for(navigating.wait(), 5)
            return Ranking(ask.rows, "ok", {})

        async def score(ask: Ask) -> Scores:
            navigating.set()
            return Scores([0.5] * len(ask.rows), "ok", {})

        return (await searcher(toy_index, Roles(rank, score)).answer(QUERY)).doc_ids

    assert len(asyncio.run(run())) == 8


def test_judges_that_fail_are_counted_and_the_query_still_ends(toy_index: Index) -> None:
    async def rank(ask: Ask) -> Ranking:
        return ranking_failed(ask, "failed: Timeout")

    async def score(ask: Ask) -> Scores:
        return scores_failed(ask, "failed: Timeout")

    result = asyncio.run(searcher(toy_index, Roles(rank, score)).answer(QUERY))
    assert result.usage["reranker"]["outcome failed: Timeout"] == result.usage["reranker"]["calls"] == 2
    assert result.usage["navigator"]["outcome failed: Timeout"] == 2  # the groups have no score and are asked about again
    # the pool's next two fill up; then the pool is at its end, and the budget is not spent
    assert [turn["added"] for turn in result.trace] == [[8, 9], []]
    assert all(turn["rerank_failed"] for turn in result.trace)
    assert all(map(math.isnan, result.trace[0]["navigated_scores"]))


def test_usage_of_a_judge_adds_up(toy_index: Index, roles: Roles) -> None:
    async def score(ask: Ask) -> Scores:
        return Scores([0.5] * len(ask.rows), "ok", {"tokens": 7})

    usage = asyncio.run(searcher(toy_index, Roles(roles.rank, score)).answer(QUERY)).usage
    assert usage["navigator"]["tokens"] == 7 * usage["navigator"]["calls"]


def test_many_queries_at_once_share_calls_and_answer_as_each_alone(toy_index: Index, roles: Roles) -> None:
    calls: list[int] = []
    queries = [Query("q1", toy.QUERY, excluded) for excluded in ((), (0,), (3, 8), (6,), (9, 10, 11))]
    alone = [asyncio.run(searcher(toy_index, roles).answer(query)).doc_ids for query in queries]

    async def rank_all(asks: list[Ask]) -> list[Ranking]:
        calls.append(len(asks))
        return [await roles.rank(ask) for ask in asks]

    async def score_all(asks: list[Ask]) -> list[Scores]:
        return [await roles.score(ask) for ask in asks]

    async def together() -> list[list[str]]:
        lines = Roles(Line(rank_all, ranking_failed, 8, 1), Line(score_all, scores_failed, 8, 1))
        one = searcher(toy_index, lines)
        return [result.doc_ids for result in await asyncio.gather(*(one.answer(query) for query in queries))]

    assert asyncio.run(together()) == alone
    assert max(calls) == len(queries) and len(calls) < sum(calls)
