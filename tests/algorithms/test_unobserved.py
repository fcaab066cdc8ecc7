"""What a query has not seen yet, against sets."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from actors.algorithms.loops.dialogue import Pool
from actors.algorithms.loops.unobserved import Unobserved
from tests.toy import Graph, small


def test_votes_count_window_documents_and_not_edges() -> None:
    unobserved = Unobserved(small("aabbbc", {0: [2, 3, 5], 1: [4]}), Pool([0, 1]), ())
    unobserved.observe([0, 1])
    assert unobserved.votes([0, 1]) == {1: 2, 2: 1}


def test_a_spent_group_has_no_votes_and_no_next() -> None:
    unobserved = Unobserved(small("abb", {0: [1, 2]}), Pool([0, 2]), (1,))
    unobserved.observe([0])
    assert unobserved.votes([0]) == {1: 1} and unobserved.has(1)
    assert unobserved.next_of_group(1) == 2
    unobserved.observe([2])
    assert unobserved.votes([0]) == {} and not unobserved.has(1)
    assert unobserved.next_of_group(1) is None and unobserved.next_of_pool() is None


def test_best_pool_rank_moves_on_with_observation() -> None:
    unobserved = Unobserved(small("abab", {}), Pool([1, 0, 2]), ())
    assert [unobserved.best_pool_rank(group) for group in (0, 1)] == [1, 0]
    unobserved.observe([0, 1])
    assert [unobserved.best_pool_rank(group) for group in (0, 1)] == [2, math.inf]


def test_excluded_documents_lower_the_ranks_of_those_behind_them() -> None:
    unobserved = Unobserved(small("abc", {}), Pool([0, 1, 2]), (0,))
    assert unobserved.pool == [1, 2] and unobserved.best_pool_rank(1) == 0


def test_the_first_stage_is_asked_once_a_group_and_only_about_members_outside_the_pool() -> None:
    asked: list[list[int]] = []

    def score(docs: list[int]) -> list[float]:
        asked.append(docs)
        return [float(d) for d in docs]

    unobserved = Unobserved(small("aaaab", {}), Pool([2], score), (1,))
    assert [unobserved.next_of_group(0) for _ in range(4)] == [2, 3, 0, None]
    assert asked == [[0, 3]]


def test_a_query_that_ended_leaves_nothing_behind() -> None:
    """Without the garbage collector: thousands of queries may end before it comes."""
    gc.disable()
    try:
        unobserved = Unobserved(small("aaaab", {0: [1]}), Pool([2], lambda docs: docs), (1,))
        assert unobserved.next_of_group(0) == 2 and unobserved.next_of_pool() == 2
        gone = weakref.ref(unobserved)
        del unobserved
        assert gone() is None
    finally:
        gc.enable()


def test_neighbours_in_the_order_of_the_documents_each_once() -> None:
    unobserved = Unobserved(small("aabbbb", {0: [4, 2, 3], 1: [3, 5, 2, 0]}), Pool([0, 1]), (5,))
    unobserved.observe([0, 1])
    assert unobserved.neighbours_of([1, 0]) == [3, 2, 4]
    unobserved.observe([2])
    assert unobserved.neighbours_of([0, 1]) == [4, 3]


@pytest.mark.parametrize("neighbours", [[[-1]], [[-1, -1]]])
def test_no_neighbours_no_votes(neighbours: list[list[int]]) -> None:
    graph = Graph(np.array(neighbours * 2, np.int32), np.array([0, 1], np.int32))
    assert Unobserved(graph, Pool([0]), ()).votes([0]) == {}


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_it_is_what_sets_say(group_of: list[int], random) -> None:
    names = np.unique(group_of, return_inverse=True)[1].astype(np.int32)
    everything = range(len(names))
    pool, excluded, seen = (random.sample(everything, random.randint(0, len(names))) for _ in range(3))
    unobserved = Unobserved(Graph(np.full((len(names), 1), -1, np.int32), names), Pool(pool), excluded)
    observed = [d for d in seen if d not in excluded]
    unobserved.observe(observed)
    left = set(everything) - set(excluded) - set(observed)
    for group in range(max(names) + 1):
        members = {d for d in left if names[d] == group}
        assert unobserved.has(group) == bool(members)
        order = []
        while (doc := unobserved.next_of_group(group)) is not None:
            order.append(doc)
        assert order == [d for d in pool if d in members] + sorted(members - set(pool))
    assert unobserved.rest_of_pool() == [d for d in pool if d in left]
    rest = []
    while (doc := unobserved.next_of_pool()) is not None:
        rest.append(doc)
    assert rest == [d for d in pool if d in left]
