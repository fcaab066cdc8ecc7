"""GAR by hand, its properties, and the same method written a second time to compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, Outcome, Pool, Score
from actors.algorithms.loops.gar import gar
from tests import toy
from tests.algorithms.test_garen import random_graph
from tests.toy import Graph, Talk, small

NAN = math.nan


def test_the_toy_from_the_first_batch_to_the_answer() -> None:
    talk = Talk(judge=lambda doc: toy.DOCUMENT_SCORE[doc])
    outcome = talk(gar(toy.pool(), Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), batch=2, budget=8))
    # 1. The pool's 0 (.5) and 3 (.3). Frontier: 1 and 4 by 0, both .5; 7 by 3, .3; 3 leads to 4 as well, which keeps its .5.
    # 2. The frontier's 1 (.1) and 4 (.95). Frontier: 7 .3; 5 by 4, .95; 2 by 1, .1.
    # 3. The pool's 6 (.4) and 8 (.8). Frontier: 7 rises to .8 by 8; 9 by 6, .4.
    # 4. The frontier's 5 (.6) and 7 (.2): eight documents.
    assert talk.windows == [[0, 3], [1, 4], [6, 8], [5, 7]]
    assert [turn.ranked for turn in outcome.iterations] == [[0, 3], [4, 1], [8, 6], [5, 7]]
    assert [turn.added for turn in outcome.iterations] == [[1, 4], [6, 8], [5, 7], []]
    assert [turn.added_from for turn in outcome.iterations] == [[NEIGHBOURS] * 2, [POOL] * 2, [NEIGHBOURS] * 2, []]
    assert outcome.ranking == [4, 8, 5, 0, 6, 3, 7, 1]


def test_the_best_parents_neighbours_come_first_nearest_first() -> None:
    # the batch 0 1 2 with scores 1, 3, 2: 1 leads to 6 and 5, 2 to 5 and 4, 0 to 3
    graph = small("a" * 7, {0: [3], 1: [6, 5], 2: [5, 4]})
    talk = Talk(judge=lambda doc: {0: 1.0, 1: 3.0, 2: 2.0}.get(doc, 0.0))
    talk(gar(Pool([0, 1, 2]), graph, (), batch=3, budget=7))
    assert talk.windows == [[0, 1, 2], [6, 5, 4], [3]]


def test_a_source_that_is_empty_is_passed_over_and_the_turns_go_on_from_there() -> None:
    # 1 alone has neighbours: the pool serves twice, then the frontier, the pool, the frontier twice
    graph = small("a" * 6, {1: [3, 4], 2: [5]})
    talk = Talk()
    outcome = talk(gar(Pool([0, 1, 2]), graph, (), batch=1, budget=100))
    assert talk.windows == [[0], [1], [3], [2], [4], [5]]
    assert [turn.added_from for turn in outcome.iterations] == [[POOL], [NEIGHBOURS], [POOL], [NEIGHBOURS], [NEIGHBOURS], []]


def test_budgets_cut_the_batch() -> None:
    for budget, sizes in ((1, [1]), (16, [16]), (50, [16, 16, 16, 2]), (100, [16] * 6 + [4])):
        talk = Talk()
        outcome = talk(gar(Pool(list(range(200))), small("a" * 200, {}), (), batch=16, budget=budget))
        assert [len(window) for window in talk.windows] == sizes and len(outcome.ranking) == budget


def test_a_document_without_a_score_ends_up_last_and_leads_nowhere() -> None:
    graph = small("a" * 6, {0: [4], 1: [5]})
    talk = Talk(judge=lambda doc: NAN if doc in (0, 3) else -1.0 * doc)
    outcome = talk(gar(Pool([3, 0, 1, 2]), graph, (), batch=3, budget=5))
    assert talk.windows == [[3, 0, 1], [5], [2]]
    assert outcome.iterations[0].ranked == [1, 3, 0] and not outcome.iterations[0].rerank_failed
    assert outcome.ranking == [1, 2, 5, 3, 0]


@pytest.mark.parametrize("answer", [None, [NAN, NAN]])
def test_a_batch_without_any_score_is_marked(answer: list[float] | None) -> None:
    loop = gar(Pool([2, 0, 1]), small("aaa", {}), (), batch=2, budget=3)
    assert next(loop) == (Score([2, 0]),)
    assert loop.send((answer,)) == (Score([1]),)
    with pytest.raises(StopIteration) as end:
        loop.send(([-5.0],))
    outcome = end.value.value
    assert [turn.rerank_failed for turn in outcome.iterations] == [True, False]
    assert outcome.iterations[0].ranked == [2, 0] and outcome.ranking == [1, 2, 0]


def test_excluded_documents_are_neither_pool_nor_frontier() -> None:
    talk = Talk()
    outcome = talk(gar(Pool([0, 1, 2]), small("a" * 6, {0: [4, 5]}), (1, 4), batch=1, budget=100))
    assert talk.windows == [[0], [5], [2]] and outcome.ranking == [0, 2, 5]


def test_an_empty_pool_asks_nothing() -> None:
    talk = Talk()
    assert talk(gar(Pool([]), small("aa", {0: [1]}), (), batch=2, budget=9)) == Outcome([], [])
    assert talk(gar(Pool([0]), small("aa", {0: [1]}), (0,), batch=2, budget=9)) == Outcome([], [])
    assert not talk.turns


# --- properties and the second implementation -------------------------------------------------------------------------


@dataclass
class Case:
    """A random corpus and query; documents whose score is NaN are those where the reranker fails."""

    graph: Graph
    pool: list[int]
    excluded: list[int]
    score: list[float]
    batch: int
    budget: int

    def answer(self) -> tuple[Outcome, Talk]:
        talk = Talk(judge=self.score.__getitem__)
        return talk(gar(Pool(self.pool), self.graph, self.excluded, batch=self.batch, budget=self.budget)), talk


def random_case(seed: int) -> Case:
    random = np.random.default_rng(seed)
    documents = int(random.integers(2, 40))
    score = random.integers(0, 4 if seed % 2 else 10**6, documents).astype(float)  # few values: many equal scores
    score[random.random(documents) < random.choice([0.0, 0.2, 0.9])] = NAN
    return Case(
        random_graph(random, documents, int(random.integers(1, 5)), 3),
        random.permutation(documents)[: random.integers(documents + 1)].tolist(),
        random.permutation(documents)[: random.integers(documents) if seed % 3 == 0 else 0].tolist(),
        score.tolist(),
        int(random.integers(1, 9)),
        int(random.integers(1, 40)),
    )


cases = st.integers(0, 10**9).map(random_case)


@settings(max_examples=100)
@given(cases)
def test_everything_scored_is_in_the_answer_once(case: Case) -> None:
    outcome, talk = case.answer()
    shown = [doc for window in talk.windows for doc in window]
    assert len(shown) == len(set(shown)) and not set(shown) & set(case.excluded)
    assert sorted(outcome.ranking) == sorted(shown)
    assert len(shown) == min(case.budget, len(reachable(case)))
    assert all(len(window) <= case.batch for window in talk.windows)
    assert [turn.window for turn in outcome.iterations] == talk.windows and all(len(turn) == 1 for turn in talk.turns)
    assert [turn.added for turn in outcome.iterations] == [*talk.windows[1:], []][: len(talk.windows)]
    assert all(len(turn.added) == len(turn.added_from) for turn in outcome.iterations)


def reachable(case: Case) -> set[int]:
    """The pool, and what scored documents lead to."""
    found = set(case.pool) - set(case.excluded)
    while True:
        scored = [doc for doc in found if not math.isnan(case.score[doc])]
        more = found | set(case.graph.neighbours[scored].ravel().tolist()) - {-1, *case.excluded}
        if more == found:
            return found
        found = more


@pytest.mark.parametrize("block", range(2))
def test_a_second_implementation_does_the_same(block: int) -> None:
    for seed in range(block * 400, block * 400 + 400):
        case = random_case(seed)
        outcome, talk = case.answer()
        ranking, batches = plain_gar(case)
        assert [docs for docs, _ in batches] == talk.windows, seed
        assert [[source] * len(docs) for docs, source in batches[1:]] == [turn.added_from for turn in outcome.iterations[:-1]], seed
        assert ranking == outcome.ranking, seed


def plain_gar(case: Case) -> tuple[list[int], list[tuple[list[int], int]]]:
    """As plainly as possible: the frontier is worked out anew from all batches, the source from the number of the turn."""
    batches: list[tuple[list[int], int]] = []
    number = 0

    def quality(doc: int) -> float:
        return -math.inf if math.isnan(case.score[doc]) else case.score[doc]

    while True:
        observed = [doc for docs, _ in batches for doc in docs]
        barred = {-1, *observed, *case.excluded}
        pool = [doc for doc in case.pool if doc not in barred]
        priority: dict[int, float] = {}
        came: list[int] = []
        seen: set[int] = set()
        for docs, _ in batches:
            seen |= set(docs)
            for parent in sorted(docs, key=lambda doc: -quality(doc)):
                for near in case.graph.neighbours[parent].tolist() if quality(parent) > -math.inf else []:
                    if near not in seen:
                        came += [near] if near not in came else []
                        priority[near] = max(priority.get(near, -math.inf), quality(parent))
        frontier = sorted((doc for doc in came if doc not in barred), key=lambda doc: -priority[doc])
        if len(observed) == case.budget or not pool + frontier:
            ranking = sorted(observed, key=lambda doc: -quality(doc))
            return ranking, batches
        source = [pool, frontier][number % 2]
        if source:
            batches.append((source[: case.batch][: case.budget - len(observed)], [POOL, NEIGHBOURS][number % 2]))
        number += 1
