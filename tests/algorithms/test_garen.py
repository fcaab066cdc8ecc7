"""GAREN by hand on small graphs, one rule at a time; its properties; and the same method written a second time to compare with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, Navigate, Outcome, Pool
from actors.algorithms.loops.garen import garen
from tests import toy
from tests.toy import Graph, Talk, by, small

PAPER = {"w": 20, "h": 10, "budget": 100, "K_g": 20, "tau_switch": 4, "eligible": "candidates", "group_score": "navigator",
         "sources": {"groups": 10, "neighbours": 0, "pool": 0}, "p": 0.6, "alpha": 0.01}  # fmt: skip
SMALL = PAPER | {"w": 2, "h": 1, "budget": 100, "K_g": 10, "alpha": 0.0}
NAN = math.nan


def run(graph: Graph, docs: list[int] | Pool, talk: Talk | None = None, excluded: tuple[int, ...] = (), **changed: Any) -> Outcome:
    pool = docs if isinstance(docs, Pool) else Pool(docs)
    return (talk or Talk())(garen(pool, graph, excluded, **(SMALL | changed)))


# --- the twelve documents ---------------------------------------------------------------------------------------------


def test_the_toy_from_the_first_window_to_the_answer() -> None:
    talk = Talk(by(toy.DOCUMENT_SCORE), lambda group: toy.GROUP_SCORE[group])
    graph = Graph(toy.NEIGHBOURS, toy.GROUP_OF)
    outcome = talk(garen(toy.pool(), graph, (), **toy.LOOP))
    first, second, last = outcome.iterations

    # t=1. Documents 0, 3, 1, 6 are observed. Neighbours: of 0 in groups 0 and 1, of 3 in 1 and 2, of 1 in 0, of 6 in 2 and 3.
    assert first.window == [0, 3, 1, 6]
    assert dict(zip(first.candidates, first.votes, strict=True)) == {0: 2, 1: 2, 2: 2, 3: 1}
    # K_g = 2 of three groups with two votes: group 2 has document 8 at pool rank 4, groups 0 and 1 have none left in the pool.
    assert first.navigated == [2, 0]
    # Explore: one of group 2 (0.6), then one of group 0 (0.2). In group 2 the pool's 8 comes before 7.
    assert (first.explore, first.eligible, first.added, first.added_from) == (True, [2, 0], [8, 2], [2, 0])

    # t=2. Reranked: 0 .5, 6 .4, 3 .3, 1 .1: 0 and 6 stay. Group 0 is spent, so it is no candidate though 0 and 2 point to it.
    assert (first.ranked, second.window) == ([0, 6, 3, 1], [0, 6, 8, 2])
    assert dict(zip(second.candidates, second.votes, strict=True)) == {1: 1, 2: 2, 3: 1}
    assert (second.navigated, second.reused_scores) == (
        [3, 1],
        1,
    )  # 3 holds the pool's 9, and the score of 2 is there already
    # Exploit: group 1 (0.9) first. Neither 4 nor 5 is in the pool, and BM25 prefers 5.
    assert (second.explore, second.eligible, second.added, second.added_from) == (False, [1, 2, 3], [5, 4], [1, 1])

    # t=3. Eight documents are observed, the budget: one more rerank, no navigation.
    assert (last.window, last.navigated, last.added) == ([8, 2, 5, 4], [], [])
    assert [len(requests) for requests in talk.turns] == [2, 2, 1]
    # The last window 4 8 2 5, then what fell out, latest first: 0 6, then 3 1. b = .4 .24 .144 .0864 .0518 .0311 .0187 .0112;
    # a tenth of its group's sum lifts 3 (.0187 + .0505, with 4 and 5) over 6 (.0311 + .0271, with 8), and nothing else.
    assert outcome.ranking == [4, 8, 2, 5, 0, 3, 6, 1]


def test_the_toy_without_propagation() -> None:
    talk = Talk(by(toy.DOCUMENT_SCORE), lambda group: toy.GROUP_SCORE[group])
    outcome = talk(garen(toy.pool(), Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), **(toy.LOOP | {"alpha": 0.0})))
    assert outcome.ranking == [4, 8, 2, 5, 0, 6, 3, 1]


# --- which groups are scored ------------------------------------------------------------------------------------------


def test_a_group_votes_once_for_each_window_document_and_only_with_an_unobserved_member() -> None:
    graph = small("aabbbcc", {0: [2, 3, 1], 1: [2, 5, 0]})  # group a: both observed; b: from 0 (twice, one vote) and 1; c: from 1
    (first, *_) = run(graph, [0, 1]).iterations
    assert dict(zip(first.candidates, first.votes, strict=True)) == {1: 2, 2: 1}


def test_most_votes_then_best_pool_rank_then_number_and_no_more_than_K_g() -> None:
    # groups b c d e f of documents 2..6; b has two votes; of those with one, d and e are at pool ranks 2 and 3, c and f outside
    graph = small("aabcdef", {0: [2, 3, 4, 5], 1: [2, 6]})
    docs = [0, 1, 4, 5]
    assert run(graph, docs, K_g=10).iterations[0].navigated == [1, 3, 4, 2, 5]
    assert run(graph, docs, K_g=3).iterations[0].navigated == [1, 3, 4]


def test_the_pool_rank_of_a_group_is_that_of_its_unobserved_members() -> None:
    graph = small("abbc", {0: [1, 2, 3], 1: [2, 3]})  # b holds the pool's second, which is observed; 2 is not in the pool
    assert run(graph, [0, 1, 3]).iterations[0].navigated == [2, 1]


def test_too_few_candidates_are_filled_from_the_pool_observed_documents_included() -> None:
    # observed: 0 (group a, which still has 4) and 1 (group b, spent); no candidates at all; then the pool's groups c and d
    graph = small("abcdac", {})
    assert run(graph, [0, 1, 3, 2]).iterations[0].navigated == [0, 3, 2]
    (first, *_) = run(graph, [0, 1, 3, 2], K_g=2).iterations
    assert (first.navigated, first.navigated_from_pool) == ([0, 3], 2)


def test_a_candidate_cut_by_K_g_is_not_expanded_and_may_be_scored_later() -> None:
    graph = small("aabbcc", {0: [2, 4], 1: [2]})
    talk = Talk()
    first, second, *_ = run(graph, [0, 1], talk, K_g=1).iterations
    assert (first.candidates, first.navigated, first.eligible) == ([1, 2], [1], [1])
    assert second.window == [0, 2]  # 0 still votes for b (member 3) and c
    assert (second.navigated, second.reused_scores) == ([2], 1)


def test_a_score_is_asked_for_once() -> None:
    graph = small("aabbbbcccc", {0: [2, 6], 1: [2, 6], 2: [6], 3: [6]})
    talk = Talk()
    outcome = run(graph, [0, 1], talk)
    asked = [group for groups in talk.navigated for group in groups]
    assert sorted(asked) == [1, 2]
    assert sum(turn.reused_scores for turn in outcome.iterations) > 0


def test_eligible_candidates_or_all_that_have_a_score() -> None:
    # t=1: 0 and 1 lead to b (best) and c, whose 2 and 3 come in alone (h=0). t=2: they lead to c only; b has a score and a member.
    graph = small("aabcbc", {0: [2, 3], 1: [2, 3], 2: [5], 3: [5]})
    for eligible, expected in (("candidates", [2]), ("all_scored", [1, 2])):
        first, second, *_ = run(graph, [0, 1], h=0, eligible=eligible).iterations
        assert first.added == [2, 3]
        assert second.eligible == expected


def test_a_group_from_the_pool_may_be_expanded_at_once() -> None:
    graph = small("abcc", {})
    (first, *_) = run(graph, [0, 1, 3], tau_switch=0, w=3, h=1).iterations
    assert first.window == [0, 1, 3]
    assert (first.navigated, first.added, first.added_from) == ([2], [2], [2])


# --- what is added ----------------------------------------------------------------------------------------------------


def test_explore_takes_one_of_each_group_in_turn() -> None:
    graph = small("abbbccd", {0: [1, 4, 6]})
    (first, *_) = run(graph, [0], w=7, h=1).iterations
    assert (first.explore, first.added) == (True, [1, 4, 6, 2, 5, 3])


def test_exploit_empties_the_best_group_first() -> None:
    graph = small("abbbccd", {0: [1, 4, 6]})
    (first, *_) = run(graph, [0], Talk(score=lambda group: {1: 0.5, 2: 0.9, 3: 0.5}[group]), w=6, h=1, tau_switch=0).iterations
    assert (first.explore, first.added) == (
        False,
        [4, 5, 1, 2, 3],
    )  # b and d have the same score: b has the smaller number


def test_members_come_by_pool_rank_then_first_stage_score_then_row() -> None:
    graph = small("abbbbbb", {0: [1]})
    docs = [0, 4, 2]
    score = {1: 0.0, 3: 0.7, 5: 0.0, 6: 0.7}
    (first, *_) = run(graph, Pool(docs, lambda rest: [score[d] for d in rest]), w=10, h=4, budget=7, tau_switch=0).iterations
    assert first.window == [0, 4, 2] and first.added == [3, 6, 1, 5]
    (first, *_) = run(graph, docs, w=10, h=1, budget=7, tau_switch=0).iterations
    assert first.added == [1, 3, 5, 6]  # a pool that was brought in scores nothing else: by row
    (first, *_) = run(graph, docs, w=1, h=0, budget=7, tau_switch=0).iterations
    assert first.added == [4]


def test_the_pool_fills_up_when_the_groups_run_out() -> None:
    # the window 0 1 leads to b with one member; c is not eligible: it is neither a candidate nor found within K_g = 1
    graph = small("aabccc", {0: [2]})
    (first, *_) = run(graph, [0, 1, 4, 5], w=2, h=0, budget=5, K_g=1).iterations
    assert first.added == [2, 4]
    assert first.added_from == [1, POOL]


def test_a_document_of_an_expanded_group_is_not_filled_in_again() -> None:
    graph = small("aabc", {0: [2]})
    (first, *_) = run(graph, [0, 1, 2, 3], w=2, h=0, K_g=1).iterations
    assert first.added == [2, 3] and first.added_from == [1, POOL]


@pytest.mark.parametrize("tau", [0, 1, 2])
def test_tau_is_counted_from_one(tau: int) -> None:
    graph = small("aab" + "b" * 9, {d: [2, 3] for d in range(12)})
    turns = run(graph, [0, 1], tau_switch=tau, budget=5).iterations
    assert [turn.explore for turn in turns[:3]] == [t <= tau for t in (1, 2, 3)]


# --- where it ends ----------------------------------------------------------------------------------------------------


def test_no_navigation_after_the_last_rerank() -> None:
    talk = Talk()
    outcome = run(small("abbbb", {0: [1]}), [0], talk, budget=3)
    assert talk.windows == [[0], [0, 1], [0, 2]]
    assert len(talk.navigated) == 1 and len(talk.turns[-1]) == 1
    assert (outcome.iterations[-1].candidates, outcome.iterations[-1].added) == ([], [])


def test_a_budget_smaller_than_the_window_is_one_call() -> None:
    talk = Talk(by([0.1, 0.2, 0.3, 0.4]))
    assert run(small("abcd", {0: [3]}), [0, 1, 2], talk, w=4, h=2, budget=2).ranking == [1, 0]
    assert talk.windows == [[0, 1]] and not talk.navigated


def test_it_ends_when_nothing_is_added_and_says_so() -> None:
    talk = Talk()
    outcome = run(small("aab", {0: [1], 1: [0]}), [0, 1], talk)
    assert [turn.added for turn in outcome.iterations] == [[]]
    assert outcome.ranking == [0, 1] and talk.windows == [[0, 1]] and talk.navigated == []


def test_fewer_than_asked_do_not_end_it() -> None:
    outcome = run(small("aabbc", {0: [2], 3: [4]}), [0, 1], Talk(by([0, 0, 1, 2, 3])), w=5, h=2, K_g=1, tau_switch=0)
    assert [turn.added for turn in outcome.iterations] == [[2, 3], [4], []]  # three were wanted each time
    assert outcome.ranking == [4, 3, 2, 0, 1]


def test_the_last_navigation_that_adds_nothing_has_still_been_asked() -> None:
    talk = Talk(score=lambda group: NAN)
    outcome = run(small("aab", {0: [2]}), [0, 1], talk)
    assert talk.navigated == [[1]] and [turn.added for turn in outcome.iterations] == [[]]


def test_an_empty_pool_asks_nothing() -> None:
    talk = Talk()
    assert run(small("aab", {0: [2]}), [], talk) == Outcome([], [])
    assert run(small("aab", {0: [2]}), [0, 1], talk, excluded=(0, 1)) == Outcome([], [])
    assert not talk.turns


def test_a_short_pool_is_a_short_window_that_still_grows_by_w_less_h() -> None:
    outcome = run(small("abbbbbb", {0: [1]}), [0], w=5, h=3, tau_switch=0)
    assert [turn.window for turn in outcome.iterations[:2]] == [[0], [0, 1, 2]]


# --- votes instead of a navigator -------------------------------------------------------------------------------------


def test_the_toy_by_votes() -> None:
    talk = Talk(by(toy.DOCUMENT_SCORE))
    outcome = talk(
        garen(toy.pool(), Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), **(toy.LOOP | {"group_score": "votes", "alpha": 0.0}))
    )
    first, second, last = outcome.iterations
    # t=1. Votes as with a navigator: groups 0, 1 and 2 have two, 3 has one; K_g = 2 takes 2 (the pool's 8), then 0. Both have the
    # score 2, and the smaller number comes first.
    assert (first.navigated, first.navigated_scores) == ([2, 0], [2.0, 2.0])
    assert (first.eligible, first.eligible_scores, first.added, first.added_from) == ([0, 2], [2.0, 2.0], [2, 8], [0, 2])
    # t=2. 0 and 6 stay, 2 and 8 are new; group 0 is spent. 0 leads to group 1, 6 to 2 and 3, 8 to 2: group 2 is weighed anew, then
    # 3, which holds the pool's 9. Exploit: 7 is all that is left of group 2.
    assert (second.window, second.candidates, second.votes) == ([0, 6, 2, 8], [1, 2, 3], [1, 2, 1])
    assert (second.navigated, second.navigated_scores, second.reused_scores) == ([2, 3], [2.0, 1.0], 0)
    assert (second.explore, second.added, second.added_from) == (False, [7, 9], [2, 3])
    assert last.window == [8, 2, 7, 9] and outcome.ranking == [8, 2, 7, 9, 0, 6, 3, 1]
    assert not talk.navigated and [len(requests) for requests in talk.turns] == [1, 1, 1]


def test_a_group_of_the_pool_has_no_votes_and_comes_after_all_that_have() -> None:
    # 0 leads to d; b and c come from the pool, in its order, and have the score 0: the smaller number first
    graph = small("aabcdd", {0: [4]})
    (first, *_) = run(graph, [0, 1, 3, 2], group_score="votes", w=2, h=0, budget=5).iterations
    assert (first.navigated, first.navigated_from_pool) == ([3, 2, 1], 2)
    assert (first.navigated_scores, first.eligible, first.eligible_scores) == ([1.0, 0.0, 0.0], [3, 1, 2], [1.0, 0.0, 0.0])
    assert run(graph, [0, 1, 3, 2], group_score="votes", w=5, h=1, budget=6, K_g=2).iterations[0].added == [4, 5]


def test_votes_of_an_iteration_are_forgotten_in_the_next() -> None:
    # b has two votes in the first window and one in the second, when c has two
    graph = small("aabbbbccc", {0: [2, 6], 1: [2], 2: [6], 3: [7]})
    for eligible in ("candidates", "all_scored"):
        first, second, *_ = run(graph, [0, 1], group_score="votes", w=4, h=1, budget=9, tau_switch=0, eligible=eligible).iterations
        assert (first.eligible, first.eligible_scores, first.added) == ([1, 2], [2.0, 1.0], [2, 3, 4])
        assert (second.window, second.eligible, second.eligible_scores) == ([0, 2, 3, 4], [2, 1], [3.0, 1.0])


# --- several sources --------------------------------------------------------------------------------------------------


def quotas(groups: int, neighbours: int, pool: int) -> dict[str, int]:
    return {"groups": groups, "neighbours": neighbours, "pool": pool}


def test_the_toy_from_three_sources() -> None:
    talk = Talk(by(toy.DOCUMENT_SCORE), lambda group: toy.GROUP_SCORE[group])
    mixed = toy.LOOP | {"h": 1, "budget": 10, "sources": quotas(1, 1, 1), "alpha": 0.0}
    outcome = talk(garen(toy.pool(), Graph(toy.NEIGHBOURS, toy.GROUP_OF), (), **mixed))
    first, second, last = outcome.iterations
    # t=1. Groups 2 and 0 are scored, as ever. One document of group 2: the pool's 8. 0 is kept: its neighbour 1 is in the window,
    # 4 is new. The pool's next would be 8, which is in already: 9.
    assert (first.ranked, first.eligible) == ([0, 6, 3, 1], [2, 0])
    assert (first.added, first.added_from) == ([8, 4, 9], [2, NEIGHBOURS, POOL])
    # t=2. 0, 8, 4 and 9 lead to groups 0 (2 is left), 1 (5), 2 (7) and 3 (10, 11); two votes for 1 and 2. 1 and 3 get scores.
    assert (second.window, second.navigated, second.reused_scores) == ([0, 8, 4, 9], [1, 3], 2)
    assert (second.eligible, second.ranked) == ([1, 2, 3, 0], [4, 8, 0, 9])
    # Exploit: 5 of group 1. 4 is kept: its neighbours 3 and 5 are in. The pool is at its end. The groups give what both lack:
    # group 1 is spent, 7 of group 2, then 10 of group 3. That is no fill from the pool.
    assert (second.added, second.added_from, second.pool_fill) == ([5, 7, 10], [1, 2, 3], 0)
    assert last.window == [4, 5, 7, 10] and outcome.ranking == [4, 10, 5, 7, 8, 0, 9, 6, 3, 1]
    assert [len(requests) for requests in talk.turns] == [2, 2, 1]


# 11 documents to start with; 0 has neighbours in group b; the others lead to c, which has most votes; d is in the pool
PLENTY = small("a" * 11 + "b" * 10 + "c" * 10 + "d" * 10, {0: range(11, 21), **{d: [21] for d in range(1, 11)}})


def from_plenty(left: int, **changed: Any) -> list[int]:
    """Where the documents come from when the budget has room for `left` more than the first window."""
    docs = [*range(11), *range(31, 41)]
    return run(PLENTY, docs, **({"w": 11, "h": 1, "K_g": 1, "budget": 11 + left} | changed)).iterations[0].added_from


@pytest.mark.parametrize(
    ("left", "of_each"),
    [(1, (1, 0, 0)), (2, (1, 1, 0)), (3, (2, 1, 0)), (5, (3, 1, 1)), (9, (5, 3, 1)), (10, (5, 3, 2)), (50, (5, 3, 2))],
)
def test_quotas_of_5_3_2_while_the_budget_lasts(left: int, of_each: tuple[int, int, int]) -> None:
    """The bounds 5/10 and 8/10 of what is left, rounded up, are where one source ends and the next begins."""
    groups, neighbours, pool = of_each
    assert from_plenty(left, sources=quotas(5, 3, 2)) == [2] * groups + [NEIGHBOURS] * neighbours + [POOL] * pool


def test_a_source_without_a_share_gives_nothing_while_the_others_last() -> None:
    assert from_plenty(50, sources=quotas(10, 0, 0)) == [2] * 10
    assert from_plenty(50, sources=quotas(0, 10, 0)) == [NEIGHBOURS] * 10
    assert from_plenty(50, sources=quotas(0, 0, 10)) == [POOL] * 10
    assert from_plenty(50, sources=quotas(0, 4, 6)) == [NEIGHBOURS] * 4 + [POOL] * 6


def test_what_a_source_lacks_the_others_give_in_their_order_and_the_pool_without_a_share_comes_last() -> None:
    # c holds 3, 0 has two neighbours; the pool has 1
    graph = small("aaaaaaabbcccd", {0: [7, 8], 1: [9], 2: [9]})
    docs = [*range(7), 12]

    def first(groups: int, neighbours: int, pool: int) -> tuple[list[int], list[int], int]:
        turn = run(graph, docs, w=7, h=1, K_g=1, sources=quotas(groups, neighbours, pool)).iterations[0]
        return turn.added, turn.added_from, turn.pool_fill

    assert first(1, 4, 1) == ([9, 7, 8, 12, 10, 11], [2, NEIGHBOURS, NEIGHBOURS, POOL, 2, 2], 0)
    assert first(5, 1, 0) == ([9, 10, 11, 7, 8, 12], [2, 2, 2, NEIGHBOURS, NEIGHBOURS, POOL], 1)
    assert first(0, 6, 0) == ([7, 8, 12], [NEIGHBOURS, NEIGHBOURS, POOL], 1)
    assert first(0, 0, 6) == ([12], [POOL], 0)


def test_neighbours_are_those_of_the_kept_documents() -> None:
    graph = small("aabbcc", {0: [2, 3], 1: [4, 5]})
    turns = run(graph, [0, 1], Talk(by([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])), w=3, h=1, sources=quotas(0, 2, 0)).iterations
    assert turns[0].added == [4, 5]  # 1 is kept and 0 is not


# --- what may go wrong ------------------------------------------------------------------------------------------------


def test_excluded_documents_are_nowhere() -> None:
    # 2 is all that 0 knows of b, 5 is c's only member, 1 is in the pool
    graph = small("aabbbcd", {0: [2, 5, 6], 3: [2]})
    talk = Talk()
    outcome = run(graph, [0, 1, 6], talk, excluded=(1, 2, 5), w=3, h=1)
    assert outcome.iterations[0].window == [0, 6]
    assert outcome.iterations[0].candidates == []  # no vote for b by 2 alone, none for c; d holds nothing but 6, observed
    shown = {doc for window in talk.windows for doc in window}
    assert shown == set(outcome.ranking) == {0, 6}
    # window 0 3: d is a candidate by 6, b comes from the pool by 3 and has only 4 without 2; b scores higher
    assert run(graph, [0, 1, 3], excluded=(1, 2, 5), w=3, h=1).iterations[1].window == [0, 4, 6]


def test_a_failed_reranker_leaves_the_order_and_is_marked() -> None:
    graph = small("abbb", {0: [1]})
    outcome = run(graph, [0], Talk(lambda docs: None if 1 in docs else docs), w=2, h=1, budget=3)
    assert [turn.rerank_failed for turn in outcome.iterations] == [False, True, False]
    assert outcome.iterations[1].ranked == outcome.iterations[1].window == [0, 1]
    assert outcome.ranking == [0, 2, 1]


def test_a_group_without_a_score_is_not_expanded_and_is_asked_again() -> None:
    asked: list[int] = []

    def navigator(group: int) -> float:
        asked.append(group)
        return NAN if asked.count(group) == 1 and group == 1 else 0.5

    # b fails at first: c and d are expanded; both still lead to b, which has a score the second time
    graph = small("aabcd", {0: [2, 3, 4], 1: [2, 3, 4], 3: [2], 4: [2]})
    outcome = run(graph, [0, 1], Talk(by([0, 0, 0, 1, 1]), navigator), w=4, h=2)
    assert outcome.iterations[0].eligible == [2, 3] and outcome.iterations[0].added == [3, 4]
    assert (outcome.iterations[1].navigated, outcome.iterations[1].added) == ([1], [2])
    assert math.isnan(outcome.iterations[0].navigated_scores[0])


def test_no_answer_from_the_navigator_leaves_all_without_a_score() -> None:
    loop = garen(Pool([0, 1, 3]), small("aabc", {0: [2]}), (), **(SMALL | {"K_g": 1}))
    next(loop)
    requests = loop.send(([0, 1], None))
    assert requests[0].docs == [0, 3]  # from the pool


def test_missing_neighbours_are_no_neighbours() -> None:
    graph = small("aab", {0: [1, -1]})  # -1 must not read the last document's group
    assert run(graph, [0, 1]).iterations[0].candidates == []


# --- the paper's numbers ----------------------------------------------------------------------------------------------


def random_graph(random: np.random.Generator, documents: int, k: int, groups: int) -> Graph:
    """Random neighbours, some missing; every group number below the largest is used."""
    neighbours = random.integers(0, documents, (documents, k))
    neighbours[neighbours == np.arange(documents)[:, None]] = -1
    neighbours[random.random((documents, k)) < 0.1] = -1
    neighbours = np.take_along_axis(neighbours, np.argsort(neighbours < 0, axis=1, kind="stable"), axis=1)
    group_of = np.unique(random.integers(0, groups, documents), return_inverse=True)[1]
    return Graph(neighbours.astype(np.int32), group_of.astype(np.int32))


@pytest.mark.parametrize("seed", range(3))
def test_the_paper_s_parameters_take_9_windows_8_navigations_and_at_most_160_scores(seed: int) -> None:
    random = np.random.default_rng(seed)
    graph = random_graph(random, 5000, 16, 400)
    talk = Talk(by(random.random(5000).tolist()), lambda group: float(np.sin(group) ** 2))
    outcome = run(graph, random.permutation(5000)[:1000].tolist(), talk, **PAPER)
    assert [len(window) for window in talk.windows] == [20] * 9
    assert len(talk.navigated) == 8 and all(len(groups) == 20 for groups in talk.navigated)
    asked = [group for groups in talk.navigated for group in groups]
    assert len(asked) == len(set(asked)) == 160
    assert len(outcome.ranking) == len(set(outcome.ranking)) == 100
    assert [turn.explore for turn in outcome.iterations[:8]] == [True] * 4 + [False] * 4


# --- properties and the second implementation -------------------------------------------------------------------------


@dataclass
class Case:
    """A random corpus and query. `fails` windows (by their sum modulo it) have no order; `silent` groups fail when first asked."""

    graph: Graph
    pool: list[int]
    excluded: tuple[int, ...]
    document: list[float]
    group: list[float]
    first_stage: list[float] | None
    fails: int
    silent: frozenset[int]
    parameters: dict[str, Any]

    def talk(self) -> Talk:
        asked: set[int] = set()

        def score(group: int) -> float:
            fails = group in self.silent and group not in asked
            asked.add(group)
            return NAN if fails else self.group[group]

        return Talk(lambda docs: None if self.fails and sum(docs) % self.fails == 0 else by(self.document)(docs), score)

    def first(self) -> Pool:
        score = self.first_stage
        return Pool(list(self.pool), (lambda docs: [score[d] for d in docs]) if score else None)

    def answer(self) -> tuple[Outcome, Talk]:
        talk = self.talk()
        return talk(garen(self.first(), self.graph, self.excluded, **self.parameters)), talk


def random_quotas(random: np.random.Generator) -> dict[str, int]:
    """The groups alone in two of five cases, else any quotas but none at all."""
    if random.random() < 0.4:
        return quotas(1, 0, 0)
    parts = random.integers(0, 5, 3) * (random.random(3) < 0.7)
    return quotas(*(parts if parts.any() else np.ones(3, int)).tolist())


def random_case(seed: int) -> Case:
    random = np.random.default_rng(seed)

    def below(high: int) -> int:
        return int(random.integers(high))

    documents = 2 + below(29)
    graph = random_graph(random, documents, 1 + below(4), 1 + below(9))
    groups = int(graph.group_of.max()) + 1
    ties = 3 if below(2) else 10**6  # few values: many equal scores
    w = 1 + below(8)
    return Case(
        graph,
        random.permutation(documents)[: below(documents + 1)].tolist(),
        tuple(random.permutation(documents)[: below(documents // 2) if below(3) == 0 else 0].tolist()),
        random.integers(0, ties, documents).astype(float).tolist(),
        (random.integers(0, ties, groups) / ties).tolist(),
        random.integers(0, 4, documents).astype(float).tolist() if below(2) else None,
        below(5),
        frozenset(random.permutation(groups)[: below(groups) if below(3) == 0 else 0].tolist()),
        {"w": w, "h": below(w), "budget": 1 + below(30), "K_g": 1 + below(6), "tau_switch": below(5),
         "eligible": "candidates" if below(2) else "all_scored", "p": 0.6, "alpha": [0.0, 0.01, 0.3][below(3)],
         "group_score": "navigator" if below(4) else "votes", "sources": random_quotas(random)},
    )  # fmt: skip


cases = st.integers(0, 10**9).map(random_case)


@settings(max_examples=50)
@given(cases)
def test_everything_observed_was_shown_and_is_in_the_answer_once(case: Case) -> None:
    outcome, talk = case.answer()
    shown = [doc for window in talk.windows for doc in window]
    assert sorted(outcome.ranking) == sorted(set(shown))
    assert len(outcome.ranking) <= case.parameters["budget"]
    assert all(len(window) == len(set(window)) for window in talk.windows)
    assert not set(shown) & set(case.excluded)
    window, added = (outcome.iterations[0].window, [turn.added for turn in outcome.iterations]) if outcome.iterations else ([], [])
    assert sorted(outcome.ranking) == sorted(sum(added, list(window)))
    assert all(len(groups) <= case.parameters["K_g"] for groups in talk.navigated)
    assert all(len(turn.added) == len(turn.added_from) for turn in outcome.iterations)
    assert case.parameters["group_score"] == "navigator" or not any(isinstance(r, Navigate) for turn in talk.turns for r in turn)


@settings(max_examples=100)
@given(cases)
def test_each_document_comes_from_where_it_is_said(case: Case) -> None:
    outcome, _ = case.answer()
    h, sources = case.parameters["h"], case.parameters["sources"]
    allowed = {name for name, share in sources.items() if share}
    for turn in outcome.iterations:
        near = set(case.graph.neighbours[turn.ranked[:h]].ravel().tolist())
        for doc, source in zip(turn.added, turn.added_from, strict=True):
            if source == NEIGHBOURS:
                assert "neighbours" in allowed and doc in near
            elif source == POOL:
                assert doc in case.pool
            else:
                assert "groups" in allowed and source == case.graph.group_of[doc] and source in turn.eligible
        assert turn.added_from.count(POOL) >= turn.pool_fill
        assert "pool" in allowed or turn.added_from.count(POOL) == turn.pool_fill
        assert turn.pool_fill == 0 or "pool" not in allowed


@settings(max_examples=50)
@given(cases)
def test_the_same_query_has_the_same_answer(case: Case) -> None:
    (one, talk), (other, again) = case.answer(), case.answer()
    assert one.ranking == other.ranking and talk.turns == again.turns


@settings(max_examples=50)
@given(cases, st.randoms(use_true_random=False))
def test_the_numbers_of_the_groups_do_not_matter(case: Case, random: Any) -> None:
    """Where neither scores nor votes with pool ranks are equal: a pool that holds every document ranks every group."""
    case.parameters["group_score"] = "navigator"  # equal votes are told apart by the group's number
    groups = int(case.graph.group_of.max()) + 1
    case.group = random.sample([g / groups for g in range(groups)], groups)
    missing = set(range(len(case.document))) - set(case.pool)
    case.pool += sorted(missing)
    number = random.sample(range(groups), groups)
    renamed_scores = [0.0] * groups
    for old, new in enumerate(number):
        renamed_scores[new] = case.group[old]
    renamed = Case(**{**vars(case), "graph": Graph(case.graph.neighbours, np.array(number, np.int32)[case.graph.group_of]),
                      "group": renamed_scores, "silent": frozenset(number[g] for g in case.silent)})  # fmt: skip
    assert case.answer()[0].ranking == renamed.answer()[0].ranking


@pytest.mark.parametrize("block", range(4))
def test_a_second_implementation_does_the_same(block: int) -> None:
    for seed in range(block * 500, block * 500 + 500):
        case = random_case(seed)
        outcome, talk = case.answer()
        ranking, turns = plain_garen(case, case.talk())
        assert [turn.window for turn in turns] == talk.windows, seed
        asked = [turn.navigated for turn in turns if turn.navigated and case.parameters["group_score"] == "navigator"]
        assert asked == talk.navigated, seed
        for mine, its in zip(turns, outcome.iterations, strict=True):
            assert mine.votes == dict(zip(its.candidates, its.votes, strict=True)), seed
            assert (mine.ranked, mine.eligible, mine.added) == (its.ranked, its.eligible, its.added), seed
            assert (mine.navigated, mine.sources, mine.pool_fill) == (its.navigated, its.added_from, its.pool_fill), seed
        assert ranking == outcome.ranking, seed


@dataclass
class Turn:
    window: list[int]
    ranked: list[int]
    votes: dict[int, int] = field(default_factory=dict)
    navigated: list[int] = field(default_factory=list)
    eligible: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    pool_fill: int = 0


def plain_garen(case: Case, talk: Talk) -> tuple[list[int], list[Turn]]:
    """The method as slowly and plainly as possible: sets, dictionaries and sorted(); every list is made anew where it is needed."""
    w, h, budget = (case.parameters[name] for name in ("w", "h", "budget"))
    group = dict(enumerate(case.graph.group_of.tolist()))
    near = {d: [n for n in row if n >= 0] for d, row in enumerate(case.graph.neighbours.tolist())}
    known = set(group) - set(case.excluded)
    pool = [d for d in case.pool if d in known]
    observed: set[int] = set()
    scores: dict[int, float] = {}
    fallen: list[int] = []
    turns: list[Turn] = []

    def unobserved(g: int) -> list[int]:
        def place(d: int) -> tuple[float, ...]:
            if d in pool:
                return (0, pool.index(d))
            return (1, -case.first_stage[d] if case.first_stage else 0, d)

        return sorted((d for d in known if group[d] == g and d not in observed), key=place)

    window = pool[: min(w, budget)]
    while window:
        observed |= set(window)
        turn = Turn(window, list(talk.rerank(window) or window))
        turns.append(turn)
        if len(observed) == budget:
            break
        for d in window:
            for g in {group[n] for n in near[d] if n in known}:
                if unobserved(g):
                    turn.votes[g] = turn.votes.get(g, 0) + 1
        by_votes = case.parameters["group_score"] == "votes"
        if by_votes:
            scores = {}
        turn.navigated, from_pool = _to_score(turn.votes, scores, pool, group, unobserved, case.parameters["K_g"])
        for g in turn.navigated:
            value = float(turn.votes.get(g, 0)) if by_votes else talk.score(g)
            if not math.isnan(value):
                scores[g] = value
        allowed = set(scores) if case.parameters["eligible"] == "all_scored" else {*turn.votes, *from_pool} & set(scores)
        turn.eligible = sorted((g for g in allowed if unobserved(g)), key=lambda g: (-scores[g], g))
        room = min(w - h, budget - len(observed))
        piles = [unobserved(g) for g in turn.eligible]
        if len(turns) <= case.parameters["tau_switch"]:
            line = [pile[i] for i in range(max(map(len, piles), default=0)) for pile in piles if i < len(pile)]
        else:
            line = [d for pile in piles for d in pile]
        streams = {
            "groups": [(group[d], d) for d in line],
            "neighbours": [(NEIGHBOURS, n) for d in turn.ranked[:h] for n in near[d] if n in known - observed],
            "pool": [(POOL, d) for d in pool if d not in observed],
        }
        turn.added, turn.sources, turn.pool_fill = _from_sources(streams, case.parameters["sources"], room)
        if not turn.added:
            break
        fallen = turn.ranked[h:] + fallen
        window = turn.ranked[:h] + turn.added

    final = (turns[-1].ranked if turns else []) + fallen
    p, alpha = case.parameters["p"], case.parameters["alpha"]
    b = {d: (1 - p) * p**i if i < 10 else 0.0 for i, d in enumerate(final)}
    score = {d: b[d] + alpha * sum(b[e] for e in final[:10] if group[e] == group[d]) for d in final}
    return sorted(final, key=lambda d: -score[d]), turns


def _from_sources(
    streams: dict[str, list[tuple[int, int]]], sources: dict[str, int], room: int
) -> tuple[list[int], list[int], int]:
    new: list[tuple[int, int]] = []

    def take(name: str, count: int) -> int:
        taken = {d for _, d in new}
        found = list(dict.fromkeys((source, d) for source, d in streams[name] if d not in taken))[:count]
        new.extend(found)
        return len(found)

    whole, passed = sum(sources.values()), 0
    for name in ("groups", "neighbours", "pool"):
        first, passed = math.ceil(room * passed / whole), passed + sources[name]
        take(name, math.ceil(room * passed / whole) - first)
    for name in ("groups", "neighbours", "pool"):
        take(name, room - len(new) if sources[name] else 0)
    filled = take("pool", room - len(new))
    return [d for _, d in new], [source for source, _ in new], filled


def _to_score(
    votes: dict[int, int],
    scores: dict[int, float],
    pool: list[int],
    group: dict[int, int],
    unobserved: Callable[[int], list[int]],
    K_g: int,
) -> tuple[list[int], list[int]]:
    def urgency(g: int) -> tuple[float, float, int]:
        return (-votes[g], min((pool.index(d) for d in unobserved(g) if d in pool), default=math.inf), g)

    candidates = sorted((g for g in votes if g not in scores), key=urgency)[:K_g]
    others = list(
        dict.fromkeys(group[d] for d in pool if group[d] not in votes and group[d] not in scores and unobserved(group[d]))
    )
    from_pool = others[: K_g - len(candidates)]
    return candidates + from_pool, from_pool
