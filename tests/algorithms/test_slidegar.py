"""SlideGAR by hand: neighbours and pool in turn."""

from __future__ import annotations

import numpy as np

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, Pool
from actors.algorithms.loops.slidegar import slidegar
from tests.toy import Graph, Talk, by, small


def test_a_hundred_documents_are_sixty_of_the_pool_and_forty_of_the_graph_in_nine_calls() -> None:
    near = (16 * np.arange(2000)[:, None] + 300 + np.arange(16)).astype(np.int32) % 2000  # nobody's neighbours are another's
    talk = Talk()
    outcome = talk(slidegar(Pool(list(range(200))), Graph(near, np.zeros(2000, np.int32)), (), w=20, h=10, budget=100))
    sources = [source for turn in outcome.iterations for source in turn.added_from]
    assert len(talk.windows) == 9 and len(set(outcome.ranking)) == len(outcome.ranking) == 100
    assert (20 + sources.count(POOL), sources.count(NEIGHBOURS)) == (60, 40)


def test_neighbours_first_best_document_first_nearest_first() -> None:
    # pool 0 1 2 3 4; window (0 1), ranked 1 0; of the kept 1: its neighbours 6, 0 (in the window already) and 5
    graph = small("a" * 8, {1: [6, 0, 5], 0: [7]})
    talk = Talk(by([0.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    outcome = talk(slidegar(Pool([0, 1, 2, 3, 4]), graph, (), w=2, h=1, budget=4))
    assert talk.windows == [[0, 1], [1, 6], [1, 2]]  # the graph's turn, then the pool's
    assert [turn.added_from for turn in outcome.iterations] == [[NEIGHBOURS], [POOL], []]
    assert outcome.ranking == [1, 2, 6, 0]  # the last window, then the fallen, latest first


def test_an_empty_source_is_served_by_the_other_and_the_turns_go_on() -> None:
    # no document has a neighbour: every turn is the pool's, and the loop ends when the pool is empty
    outcome = Talk()(slidegar(Pool([0, 1, 2, 3]), small("a" * 6, {}), (), w=2, h=1, budget=100))
    assert [turn.added for turn in outcome.iterations] == [[2], [3], []]
    assert sorted(outcome.ranking) == [0, 1, 2, 3]


def test_excluded_documents_are_neither_pool_nor_neighbours() -> None:
    outcome = Talk()(slidegar(Pool([0, 1, 2]), small("a" * 6, {0: [4, 5]}), (1, 4), w=2, h=1, budget=100))
    assert sorted(outcome.ranking) == [0, 2, 5]


def test_a_failed_reranker_keeps_the_windows_order() -> None:
    outcome = Talk(lambda docs: None)(slidegar(Pool([2, 0, 1]), small("aaa", {}), (), w=2, h=1, budget=3))
    assert [turn.rerank_failed for turn in outcome.iterations] == [True, True]
    assert outcome.ranking == [2, 1, 0]
