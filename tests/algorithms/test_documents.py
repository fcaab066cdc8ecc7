"""The document-level variant by hand, its properties, and the same method written a second time to compare with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, NavigateDocuments, Outcome, Pool, Rerank
from actors.algorithms.loops.documents import documents
from actors.algorithms.loops.garen import garen
from tests import toy
from tests.algorithms.test_garen import Case, random_case, random_graph
from tests.toy import Graph, Talk, by, small

NAN = math.nan
UNLIMITED = {"K_g": 10**6, "tau_switch": 2, "eligible": "candidates", "p": 0.6, "alpha": 0.01, "group_score": "navigator",
             "sources": {"groups": 1, "neighbours": 0, "pool": 0}}  # fmt: skip


def navigated(talk: Talk) -> list[list[int]]:
    return [request.docs for requests in talk.turns for request in requests if isinstance(request, NavigateDocuments)]


def test_the_toy_from_the_first_window_to_the_answer() -> None:
    talk = Talk(by(toy.DOCUMENT_SCORE), judge=lambda doc: 10.0 - doc)  # the navigator likes small rows
    outcome = talk(documents(toy.pool(), Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), w=4, h=2, budget=8))
    first, second, last = outcome.iterations

    # t=1. Of 0: 4 (1 is in the window); of 3: 4 and 7; of 1: 2; of 6: 7 and 9.
    assert (first.window, first.navigated) == ([0, 3, 1, 6], [4, 7, 2, 9])
    assert (first.eligible, first.eligible_scores) == ([2, 4, 7, 9], [8.0, 6.0, 3.0, 1.0])
    assert (first.added, first.added_from) == ([2, 4], [NEIGHBOURS] * 2)

    # t=2. 0 .5 and 6 .4 stay. Of 6: 7 and 9, whose scores are there; of 4: 5.
    assert (first.ranked, second.window) == ([0, 6, 3, 1], [0, 6, 2, 4])
    assert (second.navigated, second.navigated_scores, second.reused_scores) == ([5], [5.0], 2)
    assert (second.eligible, second.added) == ([5, 7, 9], [5, 7])

    # t=3. Eight documents: one more rerank, no navigation. 4 .95, 2 .7, 5 .6, 7 .2; then what fell out, latest first.
    assert (last.window, last.navigated, last.added) == ([4, 2, 5, 7], [], [])
    assert [len(requests) for requests in talk.turns] == [2, 2, 1]
    assert outcome.ranking == [4, 2, 5, 7, 0, 6, 3, 1]


def test_equal_scores_by_row() -> None:
    outcome = Talk(judge=lambda doc: 0.5)(documents(Pool([0]), small("a" * 5, {0: [4, 2, 3]}), (), w=3, h=1, budget=9))
    assert outcome.iterations[0].added == [2, 3]


def test_the_pool_fills_up_what_the_neighbours_lack() -> None:
    # 0 leads to 3: two are wanted, the pool's next unobserved is 2. Neither leads on: the pool's last, and nothing
    outcome = Talk()(documents(Pool([0, 1, 2, 3, 4]), small("a" * 5, {0: [3]}), (), w=2, h=0, budget=9))
    assert [turn.added for turn in outcome.iterations] == [[3, 2], [4], []]  # 3 is not filled in again
    assert [turn.added_from for turn in outcome.iterations] == [[NEIGHBOURS, POOL], [POOL], []]
    assert [turn.pool_fill for turn in outcome.iterations] == [1, 1, 0]


def test_only_this_iterations_neighbours_may_come_in() -> None:
    # 0 leads to 2 and 3; with h=0 the second window is 3 alone, which leads to 4: the score of 2 is of no use any more
    talk = Talk(judge=lambda doc: {3: 0.9, 2: 0.8, 4: 0.1}[doc])
    outcome = talk(documents(Pool([0]), small("a" * 5, {0: [2, 3], 3: [4]}), (), w=1, h=0, budget=9))
    assert [turn.added for turn in outcome.iterations] == [[3], [4], []]


def test_a_document_without_a_score_does_not_come_in_and_is_asked_about_again() -> None:
    asked: list[int] = []

    def navigator(doc: int) -> float:
        asked.append(doc)
        return NAN if doc == 2 and asked.count(2) == 1 else 0.5

    outcome = Talk(judge=navigator)(documents(Pool([0]), small("a" * 4, {0: [2, 3]}), (), w=3, h=1, budget=9))
    first, second, _ = outcome.iterations
    assert math.isnan(first.navigated_scores[0]) and (first.navigated, first.eligible, first.added) == ([2, 3], [3], [3])
    assert (second.navigated, second.added, second.reused_scores) == ([2], [2], 0)


def test_no_answer_from_the_navigator_leaves_the_pool() -> None:
    loop = documents(Pool([0, 1]), small("aaa", {0: [2]}), (), w=1, h=0, budget=3)
    assert next(loop) == (Rerank([0]), NavigateDocuments([2]))
    assert loop.send((None, None)) == (Rerank([1]),)  # 1 has no neighbours, 2 no score: nothing is asked about nothing
    with pytest.raises(StopIteration) as end:
        loop.send((None,))
    assert [turn.rerank_failed for turn in end.value.value.iterations] == [True, True]
    assert end.value.value.ranking == [1, 0]


def test_excluded_documents_are_neither_pool_nor_neighbours() -> None:
    talk = Talk()
    outcome = talk(documents(Pool([0, 1, 2]), small("a" * 6, {0: [4, 5]}), (1, 4), w=2, h=1, budget=100))
    assert talk.windows[0] == [0, 2] and navigated(talk) == [[5]] and sorted(outcome.ranking) == [0, 2, 5]


def test_an_empty_pool_asks_nothing() -> None:
    talk = Talk()
    for pool in (Pool([]), Pool([0])):
        assert talk(documents(pool, small("aa", {0: [1]}), (0,), w=2, h=1, budget=9)) == Outcome([], [])
    assert not talk.turns


@pytest.mark.parametrize(("budget", "windows"), [(100, 9), (50, 4), (20, 1), (15, 1)])
def test_the_paper_s_windows_and_all_neighbours_without_a_limit(budget: int, windows: int) -> None:
    random = np.random.default_rng(budget)
    graph = random_graph(random, 5000, 16, 3)
    talk = Talk(by(random.random(5000).tolist()), judge=lambda doc: math.sin(doc))
    outcome = talk(documents(Pool(random.permutation(5000)[:1000].tolist()), graph, (), w=20, h=10, budget=budget))
    assert [len(window) for window in talk.windows] == [min(20, budget)] * windows
    asked = navigated(talk)
    assert len(asked) == windows - 1 and len(outcome.ranking) == budget
    assert all(200 < len(docs) <= 320 for docs in asked[:1]) and len(sum(asked, [])) == len(set(sum(asked, [])))


# --- properties and the second implementation -------------------------------------------------------------------------


@dataclass
class Query:
    """A random corpus and query. `silent` documents have no score when first asked about."""

    case: Case
    navigator: list[float]
    silent: frozenset[int]

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: self.case.parameters[name] for name in ("w", "h", "budget")}

    def judge(self) -> Callable[[int], float]:
        asked: set[int] = set()

        def score(doc: int) -> float:
            fails = doc in self.silent and doc not in asked
            asked.add(doc)
            return NAN if fails else self.navigator[doc]

        return score

    def answer(self) -> tuple[Outcome, Talk]:
        talk = Talk(self.case.talk().rerank, judge=self.judge())
        return talk(documents(self.case.first(), self.case.graph, self.case.excluded, **self.parameters)), talk


def random_query(seed: int) -> Query:
    case, random = random_case(seed), np.random.default_rng(seed)
    count = len(case.document)
    navigator = random.integers(0, 3 if seed % 2 else 10**6, count) / 10**6
    silent = np.flatnonzero(random.random(count) < 0.3) if seed % 3 == 0 else []
    return Query(case, navigator.tolist(), frozenset(map(int, silent)))


queries = st.integers(0, 10**9).map(random_query)


@settings(max_examples=100)
@given(queries)
def test_everything_observed_was_shown_and_is_in_the_answer_once(query: Query) -> None:
    outcome, talk = query.answer()
    case, w, budget = query.case, query.parameters["w"], query.parameters["budget"]
    shown = {doc for window in talk.windows for doc in window}
    assert sorted(outcome.ranking) == sorted(shown) and len(shown) <= budget and not shown & set(case.excluded)
    if len(shown) < budget:  # the pool is used up, and so are the last window's neighbours, but for those without a score
        barred = shown | {-1, *case.excluded}
        last = case.graph.neighbours[talk.windows[-1]].ravel().tolist() if talk.windows else []
        assert set(case.pool) <= barred and set(last) <= barred | query.silent
    assert all(len(window) <= w for window in talk.windows)
    first = outcome.iterations[0].window if outcome.iterations else []
    assert sorted(outcome.ranking) == sorted(sum((turn.added for turn in outcome.iterations), list(first)))
    assert len(shown) < budget or len(talk.turns[-1]) == 1  # no navigation after the last rerank
    assert not outcome.iterations or outcome.iterations[-1].added == []
    scored = [d for turn in outcome.iterations for d, s in zip(turn.navigated, turn.navigated_scores, strict=True) if s == s]
    assert len(scored) == len(set(scored)) and not set(scored) & {-1, *case.excluded}
    assert [turn.navigated for turn in outcome.iterations if turn.navigated] == navigated(talk)
    assert [turn.window for turn in outcome.iterations] == talk.windows
    assert all(len(turn.added) == len(turn.added_from) for turn in outcome.iterations)


@settings(max_examples=100)
@given(queries)
def test_it_is_garen_with_every_document_its_own_group(query: Query) -> None:
    """Where the pool is the first window and the groups have no limit: groups of the pool's walk have no counterpart here."""
    case = query.case
    case.pool = case.pool[: case.parameters["w"]]
    case.parameters["budget"] = max(case.parameters["budget"], case.parameters["w"])
    alone = Graph(case.graph.neighbours, np.arange(len(case.document), dtype=np.int32))
    talk = Talk(case.talk().rerank, query.judge())
    expected = talk(garen(case.first(), alone, case.excluded, **query.parameters, **UNLIMITED))
    outcome, mine = query.answer()
    assert mine.windows == talk.windows and outcome.ranking == expected.ranking
    assert [sorted(docs) for docs in navigated(mine)] == [sorted(groups) for groups in talk.navigated]


@pytest.mark.parametrize("block", range(2))
def test_a_second_implementation_does_the_same(block: int) -> None:
    for seed in range(block * 400, block * 400 + 400):
        query = random_query(seed)
        outcome, talk = query.answer()
        ranking, turns = plain_documents(query)
        assert [turn["window"] for turn in turns] == talk.windows, seed
        assert ranking == outcome.ranking, seed
        for mine, its in zip(turns, outcome.iterations, strict=True):
            assert mine.get("asked", set()) == set(its.navigated), seed
            assert mine.get("eligible", []) == its.eligible and mine.get("reused", 0) == its.reused_scores, seed
            assert mine.get("added", []) == list(zip(its.added, its.added_from, strict=True)), seed


def plain_documents(query: Query) -> tuple[list[int], list[dict[str, Any]]]:
    """As slowly and plainly as possible: sets, and every list made anew."""
    case, (w, h, budget) = query.case, query.parameters.values()
    rank, navigator = case.talk().rerank, query.judge()
    known = set(range(len(case.document))) - set(case.excluded)
    pool = [doc for doc in case.pool if doc in known]
    scores: dict[int, float] = {}
    observed: set[int] = set()
    fallen: list[int] = []
    ranked: list[int] = []
    turns: list[dict[str, Any]] = []
    window = pool[:w][:budget]
    while window:
        observed |= set(window)
        ranked = list(rank(window) or window)
        turns.append({"window": window})
        if len(observed) == budget:
            break
        near = {n for doc in window for n in case.graph.neighbours[doc].tolist()} & known - observed
        new = near - set(scores)
        found = {doc: navigator(doc) for doc in sorted(new)}
        scores |= {doc: score for doc, score in found.items() if not math.isnan(score)}
        eligible = sorted(sorted(near & set(scores)), key=lambda doc: -scores[doc])
        line = [(doc, NEIGHBOURS) for doc in eligible][: w - h]
        line += [(doc, POOL) for doc in pool if doc not in observed and doc not in eligible[: w - h]]
        added = line[: min(w - h, budget - len(observed))]
        turns[-1] |= {"asked": new, "eligible": eligible, "reused": len(near - new), "added": added}
        if not added:
            break
        window, fallen = ranked[:h] + [doc for doc, _ in added], ranked[h:] + fallen
    return ranked + fallen, turns
