"""Retrieve-and-rerank, and the first stage alone, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from actors.algorithms.loops.bm25 import bm25
from actors.algorithms.loops.dialogue import POOL, Outcome, Pool
from actors.algorithms.loops.retrieve_and_rerank import retrieve_and_rerank
from tests.toy import Talk, by, small

GRAPH = small("a" * 200, {})


def test_a_hundred_documents_take_nine_windows_from_the_bottom_up() -> None:
    talk = Talk()
    outcome = talk(retrieve_and_rerank(Pool(list(range(150))), GRAPH, (), w=20, h=10, budget=100))
    assert [(window[0], window[-1] + 1) for window in talk.windows] == [(start, start + 20) for start in range(80, -1, -10)]
    assert outcome.ranking == list(range(100))


def test_the_best_of_the_bottom_climbs_to_the_top() -> None:
    # windows of 3, two of them shared: the best of five, at the bottom, is carried up; the second best is carried two places
    talk = Talk(by([3.0, 1.0, 0.0, 2.0, 4.0]))
    outcome = talk(retrieve_and_rerank(Pool([0, 1, 2, 3, 4]), GRAPH, (), w=3, h=1, budget=100))
    # (2 3 4) -> 4 3 2, then (0 1 4) -> 4 0 1; 3 has not met 0
    assert talk.windows == [[2, 3, 4], [0, 1, 4]]
    assert outcome.ranking == [4, 0, 1, 3, 2]


def test_the_topmost_window_may_be_short() -> None:
    talk = Talk()
    talk(retrieve_and_rerank(Pool(list(range(5))), GRAPH, (), w=4, h=2, budget=100))
    assert talk.windows == [[1, 2, 3, 4], [0, 1, 2]]


@pytest.mark.parametrize(("documents", "calls"), [(0, 0), (1, 1), (20, 1), (21, 2), (30, 2), (100, 9)])
def test_calls_for_so_many_documents(documents: int, calls: int) -> None:
    talk = Talk()
    talk(retrieve_and_rerank(Pool(list(range(documents))), GRAPH, (), w=20, h=10, budget=100))
    assert len(talk.windows) == calls


def test_excluded_documents_do_not_count() -> None:
    talk = Talk()
    outcome = talk(retrieve_and_rerank(Pool([5, 1, 3, 2]), GRAPH, (1, 5), w=20, h=10, budget=2))
    assert talk.windows == [[3, 2]] and outcome.ranking == [3, 2]


def test_a_failed_window_keeps_its_order_and_is_marked() -> None:
    talk = Talk(lambda docs: None if 4 in docs else docs[::-1])
    outcome = talk(retrieve_and_rerank(Pool([0, 1, 2, 3, 4]), GRAPH, (), w=3, h=1, budget=100))
    assert [turn.rerank_failed for turn in outcome.iterations] == [True, False]
    assert outcome.ranking == [2, 1, 0, 3, 4]


def test_all_come_from_the_pool() -> None:
    outcome = Talk()(retrieve_and_rerank(Pool([0, 1, 2, 3, 4]), GRAPH, (), w=3, h=1, budget=100))
    assert [turn.added for turn in outcome.iterations] == [[0, 1, 2, 3, 4], []]
    assert outcome.iterations[0].added_from == [POOL] * 5


@settings(max_examples=50)
@given(st.integers(0, 60), st.integers(1, 9), st.integers(0, 8), st.integers(1, 60), st.randoms(use_true_random=False))
def test_every_document_is_shown_and_stays_in_the_answer(documents: int, w: int, h: int, budget: int, random) -> None:
    pool = random.sample(range(200), documents)
    talk = Talk(lambda docs: random.sample(docs, len(docs)))
    outcome = talk(retrieve_and_rerank(Pool(list(pool)), GRAPH, (), w=w, h=min(h, w - 1), budget=budget))
    assert sorted(outcome.ranking) == sorted(pool[:budget])
    assert {doc for window in talk.windows for doc in window} == set(pool[:budget])
    assert all(len(window) <= w for window in talk.windows)


def test_the_first_stage_alone_asks_nothing() -> None:
    talk = Talk()
    assert talk(bm25(Pool([4, 1, 3, 2]), GRAPH, (1,), budget=2)) == Outcome([4, 3], [])
    assert not talk.turns
