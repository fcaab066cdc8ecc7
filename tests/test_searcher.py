"""The searcher carries a loop's requests to its judges: the answer is the loop's, and what was asked is kept with what it took."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.algorithms.loops import methods
from actors.algorithms.loops.dialogue import Iteration, Loop, Navigate, Outcome, Reason, Rerank
from actors.algorithms.loops.garen import garen
from actors.algorithms.loops.repair import repair
from actors.artifacts.queries import Query
from actors.artifacts.run import Exchange, Result
from actors.index import Index
from actors.judges.judge import FAILED, GROUPS, Ask, Scores, failed
from actors.ledger import by_iteration, usage_by_role
from actors.line import Line
from actors.roles import Roles, in_process
from actors.searcher import SearchActor, Searcher, Work
from conf import schema
from conf.load import compose
from tests import toy

QUERY = Query("q1", toy.QUERY, ())
REPAIR: dict[str, Any] = {"w": 4, "h": 2, "budget": 8, "first_adaptive": 2, "last_adaptive": 9}
REPAIR |= {"base_weight": 1.0, "consistency_weight": 1.0}
STEPS = ["east", "north"]


@pytest.fixture
def roles(toy_index: Index) -> Roles:
    return in_process(toy_index.answering)


def searcher(index: Index, roles: Roles, loop: schema.Loop | None = None) -> Searcher:
    return Searcher(index, replace(index.answering, loop=loop) if loop else index.answering, roles)


def answer(index: Index, roles: Roles, loop: schema.Loop | None = None, query: Query = QUERY) -> Result:
    return asyncio.run(searcher(index, roles, loop).answer(query))


def similar(text: str, doc: int) -> float:
    return float(toy.VECTORS[doc][STEPS.index(text)])


def planning(roles: Roles) -> Roles:
    """The toy's judges; the reranker tells a plan when it is asked for one, and texts are compared with the toy's vectors."""

    async def rerank(ask: Ask) -> Scores:
        return (await roles["reranker"](ask))._replace(steps=STEPS if ask.plan else ())

    async def compare(ask: Ask) -> Scores:
        return Scores([similar(text, doc) for text in ask.texts for doc in ask.rows], "ok", {"texts": len(ask.texts)})

    return {**roles, "reranker": rerank, "encoder": compare}


# --- the loop's answer ------------------------------------------------------------------------------------------------


def test_it_answers_as_the_loop_that_is_driven_by_hand(toy_index: Index, roles: Roles) -> None:
    talk = toy.Talk(toy.by(toy.DOCUMENT_SCORE), lambda group: toy.GROUP_SCORE[group])
    expected = talk(garen(toy.pool(), toy.Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), **toy.LOOP))
    result = answer(toy_index, roles)
    assert result.doc_ids == [toy.IDS[row] for row in expected.ranking] and result.query_id == "q1"
    told = [json.loads(turn["usage"]) for turn in result.trace]
    assert [{k: v for k, v in turn.items() if k != "usage"} for turn in result.trace] == [asdict(t) for t in expected.iterations]
    assert [sum(counters["calls"] for counters in roles.values()) for roles in told] == [len(turn) for turn in talk.turns]


def test_it_carries_plans_and_similarities(toy_index: Index, roles: Roles) -> None:
    talk = toy.Talk(toy.by(toy.DOCUMENT_SCORE), steps=STEPS, similarity=similar)
    expected = talk(repair(toy.pool(), toy.Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), **REPAIR))
    result = answer(toy_index, planning(roles), schema.RepairLoop("repair", **REPAIR))
    assert result.doc_ids == [toy.IDS[row] for row in expected.ranking]
    assert [turn["steps"] for turn in result.trace] == [STEPS] * 3
    assert [turn["step"] for turn in result.trace] == [turn.step for turn in expected.iterations]
    assert {turn["step"] for turn in result.trace} == {0, 1, -1}, "the toy chooses each step once"


def test_a_loop_that_asks_twice_in_an_iteration_has_both_in_it(toy_index: Index, roles: Roles) -> None:
    result = answer(toy_index, planning(roles), schema.RepairLoop("repair", **REPAIR))
    assert [turn["asked"] for turn in result.trace] == [2, 2, 1]
    asked = [(exchange["iteration"], exchange["role"]) for exchange in result.answers]
    assert asked == [(1, "reranker"), (1, "encoder"), (2, "reranker"), (2, "encoder"), (3, "reranker")]
    assert json.loads(result.trace[0]["usage"]) == {
        "encoder": {"calls": 1, "judged": 6, "outcome ok": 1, "texts": 2},
        "reranker": {"calls": 1, "judged": 4, "outcome ok": 1},
    }
    assert result.usage["encoder"] == {"calls": 2, "judged": 10, "outcome ok": 2, "texts": 4}


def test_documents_are_weighed_by_the_navigator_and_scored_by_the_reranker(toy_index: Index, roles: Roles) -> None:
    asked: list[tuple[str, str, bool]] = []

    def told(role: str) -> Callable[[Ask], Awaitable[Scores]]:
        async def tell(ask: Ask) -> Scores:
            asked.append((role, ask.of, ask.plan))
            return Scores([toy.DOCUMENT_SCORE[row] for row in ask.rows], "ok", {})

        return tell

    both = {role: told(role) for role in ("reranker", "navigator")}
    answer(toy_index, both, schema.DocumentsLoop("documents", 4, 2, 8))
    assert set(asked) == {("reranker", "documents", False), ("navigator", "documents", False)}
    asked.clear()
    result = answer(toy_index, both, schema.GarLoop("gar", 2, 8))
    assert set(asked) == {("reranker", "documents", False)}
    assert result.doc_ids == [f"doc {row}" for row in (4, 8, 5, 0, 6, 3, 7, 1)]  # as in the loop's own test


def test_excluded_rows_are_gone(toy_index: Index, roles: Roles) -> None:
    result = answer(toy_index, roles, query=Query("q1", toy.QUERY, (0, 8)))
    assert not {"doc 0", "doc 8"} & set(result.doc_ids) and len(result.doc_ids) == 8
    assert result.trace[0]["window"] == [3, 1, 6, 9]


def test_the_other_methods(toy_index: Index, roles: Roles) -> None:
    result = answer(toy_index, roles, schema.Bm25Loop("bm25", 3))
    assert result.doc_ids == ["doc 0", "doc 3", "doc 1"] and result.usage["reranker"] == {} == result.usage["navigator"]
    assert result.trace == result.answers == []
    # windows (8 9 with 1 6 above): 1 6 8 9 -> 8 6 1 9, then 0 3 8 6 -> 8 0 6 3
    result = answer(toy_index, roles, schema.SlidingLoop("retrieve_and_rerank", 4, 2, 6))
    assert result.doc_ids == [f"doc {row}" for row in (8, 0, 6, 3, 1, 9)]
    assert result.usage["loop"]["from_pool"] == 6


def test_another_graph(toy_index: Index, roles: Roles, tmp_path: Path) -> None:
    """rgs over a line 0 - 1 - ... - 11, from the pool's first: 0 leads to 1, 1 to 2, and so on."""
    line = np.array([[row + 1 if row < 11 else -1] for row in range(12)], np.int32)
    np.save(tmp_path / "line.npy", line)
    loop = schema.RgsLoop("rgs", 4, 2, budget=5, seeds=1, beam=4, neighbours=str(tmp_path / "line.npy"))
    assert sorted(answer(toy_index, roles, loop).doc_ids) == [f"doc {row}" for row in range(5)]
    assert sorted(answer(toy_index, roles, replace(loop, neighbours="")).doc_ids) == [f"doc {row}" for row in (0, 1, 3, 4, 5)]


def test_a_loop_that_asked_more_often_than_its_iterations_say_is_an_error(
    toy_index: Index, roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def secretive(*given: Any, **parameters: Any) -> Loop:
        for _ in range(2):
            yield (Rerank([0]),)
        return Outcome([0], [Iteration([0])])

    monkeypatch.setitem(methods.METHODS, "bm25", methods.Method(secretive, ("reranker",)))
    with pytest.raises(RuntimeError, match="the loop asked more often than its iterations say"):
        answer(toy_index, roles, schema.Bm25Loop("bm25", 3))


# --- what was asked, and what it took ---------------------------------------------------------------------------------


def test_the_ledger(toy_index: Index, roles: Roles) -> None:
    """Three windows of four, two navigations of two; four documents came with groups, one score was there already."""
    result = answer(toy_index, roles)
    assert result.usage == {
        "reranker": {"calls": 3, "judged": 12, "outcome ok": 3},
        "navigator": {"calls": 2, "judged": 4, "outcome ok": 2},
        "loop": {"iterations": 3, "documents": 8, "from_groups": 4, "from_neighbours": 0, "from_pool": 4, "pool_fill": 0,
                 "reused_scores": 1},
    }  # fmt: skip
    assert set(result.timings) == {"first_stage", "loop", "models", "total"}
    assert result.timings["total"] >= result.timings["first_stage"] + result.timings["models"] > 0


def test_the_ledger_of_several_sources(toy_index: Index, roles: Roles) -> None:
    """8 of a group, the neighbour 4, the pool's 9; then 5, 7 and 10 of groups, as in the loop's own test."""
    loop = schema.revive(schema.Loop, {"method": "garen", **toy.LOOP, "h": 1, "budget": 10,
                                       "sources": {"groups": 1, "neighbours": 1, "pool": 1}})  # fmt: skip
    counts = answer(toy_index, roles, loop).usage["loop"]
    assert (counts["from_groups"], counts["from_neighbours"], counts["from_pool"], counts["pool_fill"]) == (4, 1, 5, 0)


def test_every_exchange_is_kept(toy_index: Index, roles: Roles) -> None:
    result = answer(toy_index, roles)
    kept = [(e["iteration"], e["role"], e["of"], e["rows"], e["values"]) for e in result.answers]
    assert kept == [
        (1, "reranker", "documents", [0, 3, 1, 6], [0.5, 0.3, 0.1, 0.4]),
        (1, "navigator", "groups", [2, 0], [0.6, 0.2]),
        (2, "reranker", "documents", [0, 6, 8, 2], [0.5, 0.4, 0.8, 0.7]),
        (2, "navigator", "groups", [3, 1], [0.4, 0.9]),
        (3, "reranker", "documents", [8, 2, 5, 4], [0.8, 0.7, 0.6, 0.95]),
    ]
    assert all((e["outcome"], e["texts"], e["steps"], e["comparable"]) == ("ok", [], [], True) for e in result.answers)
    assert json.loads(json.dumps(result.answers)) == result.answers, "it goes into the journal"


def test_the_ledger_adds_the_exchanges_up(toy_index: Index, roles: Roles) -> None:
    result = answer(toy_index, planning(roles), schema.RepairLoop("repair", **REPAIR))
    summed: dict[str, Counter[str]] = {}
    for line in result.answers:
        told = {"calls": 1, "judged": len(line["rows"]), f"outcome {line['outcome']}": 1, **line["usage"]}
        summed.setdefault(line["role"], Counter()).update(told)
    by_turn = [json.loads(turn["usage"]) for turn in result.trace]
    for role in ("reranker", "encoder"):
        assert result.usage[role] == summed[role] == sum((Counter(turn.get(role, {})) for turn in by_turn), Counter())


def test_exchanges_by_iteration() -> None:
    def exchange(role: str) -> Exchange:
        return Exchange(role, "documents", [1, 2], [], [0.0, 0.0], [], True, "ok", {"tokens": 3})

    a, b, c, d = map(exchange, "abcd")
    assert by_iteration([Iteration([1], asked=2), Iteration([1]), Iteration([1], asked=0)], [[a], [b, c], [d]]) == [
        [a, b, c],
        [d],
        [],
    ]
    assert by_iteration([], []) == []
    assert usage_by_role([a, a]) == {"a": {"calls": 2, "judged": 4, "outcome ok": 2, "tokens": 6}}


# --- judges -----------------------------------------------------------------------------------------------------------


def test_judges_are_told_where_the_judgements_lie(toy_index: Index, roles: Roles) -> None:
    asked: list[Ask] = []

    async def rerank(ask: Ask) -> Scores:
        asked.append(ask)
        return await roles["reranker"](ask)

    one = Searcher(toy_index, toy_index.answering, {**roles, "reranker": rerank}, "/queries")
    asyncio.run(one.answer(QUERY))
    assert asked[0] == Ask(str(toy_index.folder), "q1", toy.QUERY, [0, 3, 1, 6], "documents", "/queries", False, ())


def test_the_requests_of_an_iteration_are_under_way_together(toy_index: Index) -> None:
    async def run() -> list[str]:
        navigating = asyncio.Event()

        async def rerank(ask: Ask) -> Scores:
            if 3 in ask.rows:  # only the first window: it is answered once the navigator was asked
                await asyncio.wait_for(navigating.wait(), 5)
            return Scores([0.0] * len(ask.rows), "ok", {})

        async def navigate(ask: Ask) -> Scores:
            navigating.set()
            return Scores([0.5] * len(ask.rows), "ok", {})

        return (await searcher(toy_index, {"reranker": rerank, "navigator": navigate}).answer(QUERY)).doc_ids

    assert len(asyncio.run(run())) == 8


def test_judges_that_fail_are_counted_and_the_query_still_ends(toy_index: Index) -> None:
    async def fails(ask: Ask) -> Scores:
        return failed(ask, f"{FAILED}: Timeout")

    result = answer(toy_index, {"reranker": fails, "navigator": fails})
    assert result.usage["reranker"]["outcome failed: Timeout"] == result.usage["reranker"]["calls"] == 2
    assert result.usage["navigator"]["outcome failed: Timeout"] == 2  # the groups have no score and are asked about again
    # the pool's next two fill up; then the pool is at its end, and the budget is not spent
    assert [turn["added"] for turn in result.trace] == [[8, 9], []]
    assert result.usage["loop"]["pool_fill"] == 2
    assert all(turn["rerank_failed"] for turn in result.trace)
    assert all(map(math.isnan, result.trace[0]["navigated_scores"]))


def test_a_value_that_is_missing_fails_the_order_and_the_ledger_says_so(toy_index: Index, roles: Roles) -> None:
    async def rerank(ask: Ask) -> Scores:
        return Scores([math.nan, *[0.5] * (len(ask.rows) - 1)], "ok", {})

    result = answer(toy_index, {**roles, "reranker": rerank})
    assert result.usage["reranker"]["outcome failed: no score"] == result.usage["reranker"]["calls"]
    assert all(turn["rerank_failed"] for turn in result.trace)


def test_an_encoder_that_fails_leaves_the_pool_its_turn(toy_index: Index, roles: Roles) -> None:
    async def fails(ask: Ask) -> Scores:
        return failed(ask, f"{FAILED}: Timeout")

    result = answer(toy_index, {**planning(roles), "encoder": fails}, schema.RepairLoop("repair", **REPAIR))
    # the pool's 8 and 9; then the pool is at its end: 7 by 8, which is ranked best now, and 4 by 0
    assert [turn["step"] for turn in result.trace] == [-1] * 3 and [turn["added"] for turn in result.trace] == [[8, 9], [7, 4], []]
    assert result.usage["encoder"]["outcome failed: Timeout"] == 2


def test_a_judge_that_answers_for_other_rows_is_not_believed(toy_index: Index, roles: Roles) -> None:
    async def short(ask: Ask) -> Scores:
        return Scores([0.5], "ok", {})

    for role in ("reranker", "navigator"):
        with pytest.raises(ValueError):
            answer(toy_index, {**roles, role: short})


def test_usage_of_a_judge_adds_up(toy_index: Index, roles: Roles) -> None:
    async def navigate(ask: Ask) -> Scores:
        return Scores([0.5] * len(ask.rows), "ok", {"tokens": 7})

    usage = answer(toy_index, {**roles, "navigator": navigate}).usage
    assert usage["navigator"]["tokens"] == 7 * usage["navigator"]["calls"]


def test_many_queries_at_once_share_calls_and_answer_as_each_alone(toy_index: Index, roles: Roles) -> None:
    calls: list[int] = []
    queries = [Query("q1", toy.QUERY, excluded) for excluded in ((), (0,), (3, 8), (6,), (9, 10, 11))]
    alone = [answer(toy_index, roles, query=query).doc_ids for query in queries]

    async def rerank(asks: list[Ask]) -> list[Scores]:
        calls.append(len(asks))
        return [await roles["reranker"](ask) for ask in asks]

    async def navigate(asks: list[Ask]) -> list[Scores]:
        assert {ask.of for ask in asks} == {GROUPS}
        return [await roles["navigator"](ask) for ask in asks]

    async def together() -> list[list[str]]:
        one = searcher(toy_index, {"reranker": Line(rerank, 8, 1), "navigator": Line(navigate, 8, 1)})
        return [result.doc_ids for result in await asyncio.gather(*(one.answer(query) for query in queries))]

    assert asyncio.run(together()) == alone
    assert max(calls) == len(queries) and len(calls) < sum(calls)


# --- the actor --------------------------------------------------------------------------------------------------------


def test_an_actor_answers_several_runs_and_keeps_the_last_searchers(toy_index: Index) -> None:
    actor = SearchActor(compose(()).cluster)

    def work(budget: int) -> Work:
        return Work(str(toy_index.folder), "", replace(toy_index.answering, loop=schema.Bm25Loop("bm25", budget)), {})

    for budget in (1, 2, 3, 4, 5, 3):
        assert len(asyncio.run(actor.answer(work(budget), QUERY)).doc_ids) == budget
    assert actor._searcher(work(3)) is actor._searcher(work(3)) and len(actor._searchers) == 4
    found, usage = asyncio.run(actor.hits(work(3), QUERY, 2))
    assert [hit.doc_id for hit in found] == ["doc 0", "doc 3"] and usage["loop"]["documents"] == 3


def test_requests_of_a_kind_reach_their_role(toy_index: Index, roles: Roles, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that is not there is an empty one; scores that are missing are none."""
    seen: list[Any] = []

    def curious(*given: Any, **parameters: Any) -> Loop:
        seen.append((yield (Reason([8, 4]), Navigate([1, 2]))))
        return Outcome([], [Iteration([8, 4])])

    monkeypatch.setitem(methods.METHODS, "bm25", methods.Method(curious, ("reranker", "navigator")))
    answer(toy_index, roles, schema.Bm25Loop("bm25", 3))
    assert seen == [(([4, 8], []), [0.9, 0.6])]
