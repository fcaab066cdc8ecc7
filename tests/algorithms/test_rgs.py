"""RGS by hand, its properties, and the same method written a second time to compare with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, Outcome, Pool
from actors.algorithms.loops.retrieve_and_rerank import retrieve_and_rerank
from actors.algorithms.loops.rgs import rgs
from tests import toy
from tests.algorithms.test_garen import Case, random_case, random_graph
from tests.toy import Graph, Talk, by, small

PAPER = {"w": 20, "h": 10, "budget": 100, "seeds": 20, "beam": 20}


def test_the_toy_from_the_seeds_to_the_answer() -> None:
    talk = Talk(by(toy.DOCUMENT_SCORE))
    outcome = talk(rgs(toy.pool(), Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), w=4, h=2, budget=8, seeds=4, beam=4))
    seeds, *_ = outcome.iterations
    assert (seeds.window, seeds.ranked) == ([0, 3, 1, 6], [0, 6, 3, 1])
    assert talk.windows[1:] == [
        # 0 leads to 1, which was inserted before, and to 4 (.95). Q = 0 6 3 1 4, and 4 comes up.
        [6, 3, 1, 4],
        [0, 4, 6],  # the top: shorter. Q = 4 0 6 3, and 1 falls out.
        # 4 leads to 3 and to 5 (.6). Q = 4 0 6 3 5.
        [0, 6, 3, 5],
        [4, 5, 0],  # Q = 4 5 0 6, and 3 falls out.
        # 5 leads to 4 and 3, both inserted before: nothing. 0 is expanded. 6 leads to 7 and 9: Q = 4 5 0 6 7 9.
        [0, 6, 7, 9],  # neither comes up: the walk upwards stops. Q = 4 5 0 6; 7 and 9 fall out, and the budget is used up.
    ]
    assert [turn.added for turn in outcome.iterations] == [[4], [], [5], [], [7, 9], []]
    assert {source for turn in outcome.iterations for source in turn.added_from} == {NEIGHBOURS}
    assert outcome.ranking == [4, 5, 0, 6, 7, 9, 3, 1]


def five_blocks(*parents: int) -> Graph:
    """Twenty seeds, and five parents with sixteen neighbours each that are nobody else's."""
    return small("a" * 100, {parent: list(range(20 + 16 * i, 36 + 16 * i)) for i, parent in enumerate(parents)})


def test_a_hundred_documents_take_sixteen_calls_where_all_new_ones_rise_to_the_top() -> None:
    # the latest block is best, in it the first. Q = 20 and 16: windows (16,36), (6,26), (0,16) for each of the five;
    # ten documents rise from a window into the next
    score = [(d + 12) // 16 * 1000.0 - d for d in range(100)]
    score[:20] = [-d for d in range(20)]
    talk = Talk(by(score))
    outcome = talk(rgs(Pool(list(range(50))), five_blocks(0, 20, 36, 52, 68), (), **PAPER))
    assert [len(window) for window in talk.windows] == [20, *[20, 20, 16] * 5]
    assert sorted(outcome.ranking) == list(range(100)) and outcome.ranking[:10] == list(range(84, 94))


def test_a_hundred_documents_take_eleven_calls_where_no_new_one_is_any_good() -> None:
    # new ones stay below all seeds: (16,36), and (6,26) with six of them, which stay where they are
    talk = Talk(by([-float(d) for d in range(100)]))
    outcome = talk(rgs(Pool(list(range(50))), five_blocks(0, 1, 2, 3, 4), (), **PAPER))
    assert [len(window) for window in talk.windows] == [20, *[20, 20] * 5]
    assert outcome.ranking[:20] == list(range(20)) and sorted(outcome.ranking) == list(range(100))


@pytest.mark.parametrize("seed", range(3))
def test_with_sixteen_neighbours_a_hundred_documents_take_more_than_nine_calls(seed: int) -> None:
    random = np.random.default_rng(seed)
    talk = Talk(by(random.random(5000).tolist()))
    outcome = talk(rgs(Pool(random.permutation(5000)[:1000].tolist()), random_graph(random, 5000, 16, 3), (), **PAPER))
    assert 1 + 5 * 2 <= len(talk.windows) <= 1 + 3 * 8  # two or three an expansion; some bring fewer than sixteen
    assert len(outcome.ranking) == len(set(outcome.ranking)) == 100


def test_what_fell_out_never_returns_latest_first() -> None:
    # Q keeps one: 0 leads to 1 and 2, of which 2 is best; 2 leads to 1, which fell out, and to 3
    graph = small("aaaa", {0: [1, 2], 2: [1, 3]})
    talk = Talk(by([2.0, 1.0, 4.0, 3.0]))
    assert talk(rgs(Pool([0]), graph, (), w=4, h=2, budget=9, seeds=1, beam=1)).ranking == [2, 3, 0, 1]
    assert talk.windows == [[0], [0, 1, 2], [2, 3]]


def test_neighbours_are_cut_to_the_budget_in_stored_order() -> None:
    talk = Talk()
    outcome = talk(rgs(Pool([0]), small("a" * 5, {0: [4, 2, 3, 1]}), (), w=9, h=2, budget=3, seeds=1, beam=9))
    assert talk.windows == [[0], [0, 4, 2]] and outcome.ranking == [0, 4, 2]


def test_more_neighbours_than_a_window_holds_are_all_shown() -> None:
    talk = Talk(by([9.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
    talk(rgs(Pool([0]), small("a" * 6, {0: [1, 2, 3, 4, 5]}), (), w=2, h=1, budget=9, seeds=1, beam=9))
    assert talk.windows == [[0], [4, 5], [3, 5], [2, 5], [1, 5], [0, 5]]


def test_seeds_beyond_the_window_are_added_in_the_first_iteration() -> None:
    outcome = Talk()(rgs(Pool([3, 1, 2, 0]), small("a" * 5, {3: [4]}), (), w=2, h=1, budget=5, seeds=4, beam=4))
    assert [turn.window for turn in outcome.iterations] == [[2, 0], [1, 2], [3, 1], [0, 4]]
    assert [turn.added for turn in outcome.iterations] == [[3, 1], [], [4], []]
    assert [turn.added_from for turn in outcome.iterations] == [[POOL] * 2, [], [NEIGHBOURS], []]


def test_excluded_documents_are_neither_seeds_nor_neighbours() -> None:
    outcome = Talk()(rgs(Pool([0, 1, 2]), small("a" * 6, {0: [4, 5], 4: [3]}), (1, 4), w=3, h=1, budget=9, seeds=2, beam=5))
    assert outcome.iterations[0].window == [0, 2] and sorted(outcome.ranking) == [0, 2, 5]


def test_a_failed_reranker_keeps_the_order_and_is_marked() -> None:
    talk = Talk(lambda docs: None)
    outcome = talk(rgs(Pool([1, 0]), small("aaaa", {0: [3], 1: [2]}), (), w=2, h=1, budget=4, seeds=2, beam=9))
    assert talk.windows == [[1, 0], [0, 2], [2, 3]] and all(turn.rerank_failed for turn in outcome.iterations)
    assert outcome.ranking == [1, 0, 2, 3]


def test_an_empty_pool_asks_nothing() -> None:
    talk = Talk()
    for pool in (Pool([]), Pool([0])):
        assert talk(rgs(pool, small("aa", {0: [1]}), (0,), **PAPER)) == Outcome([], [])
    assert not talk.turns


# --- properties and the second implementation -------------------------------------------------------------------------


class Walk(NamedTuple):
    """A random corpus and query."""

    case: Case
    w: int
    h: int
    budget: int
    seeds: int
    beam: int

    def answer(self) -> tuple[Outcome, Talk]:
        case, *parameters = self
        talk = case.talk()
        named = dict(zip(self._fields[1:], parameters, strict=True))
        return talk(rgs(case.first(), case.graph, case.excluded, **named)), talk


def random_walk(seed: int) -> Walk:
    case = random_case(seed)
    seeds, beam = np.random.default_rng(seed).integers(1, 12, 2).tolist()
    return Walk(case, case.parameters["w"], case.parameters["h"], case.parameters["budget"], seeds, beam)


walks = st.integers(0, 10**9).map(random_walk)


@settings(max_examples=100)
@given(walks)
def test_everything_observed_was_shown_and_is_in_the_answer_once(walk: Walk) -> None:
    outcome, talk = walk.answer()
    shown = {doc for window in talk.windows for doc in window}
    assert sorted(outcome.ranking) == sorted(shown) and not shown & set(walk.case.excluded)
    assert all(0 < len(window) == len(set(window)) <= walk.w for window in talk.windows)
    assert len(shown) <= walk.budget
    if len(shown) < walk.budget:  # all that Q holds are expanded
        near = walk.case.graph.neighbours[outcome.ranking[: walk.beam]].ravel().tolist()
        assert set(near) <= shown | {-1, *walk.case.excluded}
    assert [turn.window for turn in outcome.iterations] == talk.windows and all(len(turn) == 1 for turn in talk.turns)
    first = outcome.iterations[0].window if outcome.iterations else []
    assert sorted(outcome.ranking) == sorted(sum((turn.added for turn in outcome.iterations), list(first)))
    assert all(len(turn.added) == len(turn.added_from) for turn in outcome.iterations)


@settings(max_examples=50)
@given(walks)
def test_without_a_graph_it_is_retrieve_and_rerank_of_the_seeds(walk: Walk) -> None:
    walk.case.graph.neighbours[:] = -1
    outcome, talk = walk.answer()
    other = walk.case.talk()
    budget = min(walk.seeds, walk.budget)
    expected = other(retrieve_and_rerank(walk.case.first(), walk.case.graph, walk.case.excluded, w=walk.w, h=walk.h, budget=budget))
    assert talk.windows == other.windows and outcome.ranking == expected.ranking


@pytest.mark.parametrize("block", range(2))
def test_a_second_implementation_does_the_same(block: int) -> None:
    for seed in range(block * 400, block * 400 + 400):
        walk = random_walk(seed)
        outcome, talk = walk.answer()
        ranking, windows, batches = plain_rgs(walk)
        assert windows == talk.windows, seed
        assert batches == [turn.added for turn in outcome.iterations if NEIGHBOURS in turn.added_from], seed
        assert ranking == outcome.ranking, seed


def plain_rgs(walk: Walk) -> tuple[list[int], list[list[int]], list[list[int]]]:
    """As plainly as possible: a list of [document, expanded] in Q, windows counted down by their last place."""
    known = set(range(len(walk.case.document))) - set(walk.case.excluded)
    near = [[n for n in row if n in known] for row in walk.case.graph.neighbours.tolist()]
    rank = walk.case.talk().rerank
    windows: list[list[int]] = []
    batches: list[list[int]] = []
    gone: list[int] = []
    open_: set[int] = set(known)
    inserted: set[int] = set()
    batch = [doc for doc in walk.case.pool if doc in known][: walk.seeds][: walk.budget]
    Q: list[int] = []
    while batch:
        inserted |= set(batch)
        Q = Q + batch
        j = len(Q)
        while True:
            i = max(j - walk.w, 0)
            part = Q[i:j]
            if not any(doc in batch for doc in part):
                break
            windows.append(part)
            Q = Q[:i] + list(rank(part) or part) + Q[j:]
            if j <= walk.w:
                break
            j -= walk.w - walk.h
        gone = Q[walk.beam :] + gone
        Q = Q[: walk.beam]
        batch = []
        while not batch and len(inserted) < walk.budget and any(doc in open_ for doc in Q):
            best = next(doc for doc in Q if doc in open_)
            open_.remove(best)
            batch = [n for n in dict.fromkeys(near[best]) if n not in inserted][: walk.budget - len(inserted)]
        if batch:
            batches.append(batch)
    return Q + gone, windows, batches
