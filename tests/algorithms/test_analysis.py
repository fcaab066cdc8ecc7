"""The figures by hand: what the loops did on the twelve documents, and lines made up for the rest."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, strategies as st

from actors.algorithms.analysis import (
    OUTCOMES,
    DistanceHits,
    HitByDistance,
    Point,
    Setting,
    count_distances,
    count_fates,
    first_windows,
    frontier,
    gold_group_fate,
    hit_by_distance,
    observed_by_iteration,
    recall_by_iteration,
    sensitivity,
)
from actors.algorithms.distances import document_graph, nearest_missed_gold
from actors.algorithms.loops.dialogue import POOL, Iteration
from tests import toy


@pytest.fixture(scope="module")
def trace() -> list[dict[str, Any]]:
    """GAREN on the twelve documents, worked by hand in test_garen."""
    turns = [
        Iteration([0, 3, 1, 6], navigated=[2, 0], navigated_scores=[0.6, 0.2], eligible=[2, 0], added=[8, 2], added_from=[2, 0]),
        Iteration([0, 6, 8, 2], navigated=[3, 1], navigated_scores=[0.4, 0.9], eligible=[1, 2, 3], added=[5, 4], added_from=[1, 1]),
        Iteration([8, 2, 5, 4]),
    ]
    return [asdict(turn) for turn in turns]


@pytest.fixture(scope="module")
def bottom_up() -> list[dict[str, Any]]:
    """Retrieve-and-rerank with windows of 4 and 2 kept: 8 and 6 rise out of the first one."""
    return [asdict(turn) for turn in (Iteration([1, 6, 8, 9], added=toy.POOL, added_from=[POOL] * 6), Iteration([0, 3, 8, 6]))]


# --- recall -----------------------------------------------------------------------------------------------------------


def test_observed_are_all_windows_so_far(trace: list[dict[str, Any]], bottom_up: list[dict[str, Any]]) -> None:
    assert observed_by_iteration(trace) == [{0, 1, 3, 6}, {0, 1, 2, 3, 6, 8}, {0, 1, 2, 3, 4, 5, 6, 8}]
    assert observed_by_iteration(bottom_up) == [{1, 6, 8, 9}, {0, 1, 3, 6, 8, 9}]
    assert observed_by_iteration([]) == []


def test_recall_carries_the_last_value_of_what_ended_earlier(trace: list[dict[str, Any]], bottom_up: list[dict[str, Any]]) -> None:
    gold = {"long": [6, 8, 4, 7], "short": [9, 0]}  # .25 .5 .75 and .5 1
    assert recall_by_iteration({"long": trace, "short": bottom_up}, gold) == [0.375, 0.75, 0.875]
    assert recall_by_iteration({"long": trace, "not asked": bottom_up}, {"long": [6, 8, 4, 7]}) == [0.25, 0.5, 0.75]


def test_an_empty_pool_counts_as_nothing_found(trace: list[dict[str, Any]]) -> None:
    assert recall_by_iteration({"found": trace}, {"found": [6], "empty": [0]}) == [0.5, 0.5, 0.5]
    assert recall_by_iteration({}, {"empty": [0]}) == [0.0]
    assert recall_by_iteration({}, {}) == []


def test_a_query_without_gold_is_refused(trace: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match="query 'q' has no gold document"):
        recall_by_iteration({"q": trace}, {"q": []})
    with pytest.raises(ValueError, match="query 'q' has no gold document"):
        hit_by_distance({"q": trace}, {"q": []}, {}, {})


# --- distance ---------------------------------------------------------------------------------------------------------


def test_hits_by_distance_over_queries_without_gold_among_the_seeds(trace: list[dict[str, Any]]) -> None:
    gold = {
        "hit": [8],  # one hop from 6
        "missed": [7],  # one hop from 3 and 6
        "nearer one hit": [10, 4],  # two hops from 6, one from 0 and 3
        "far": [11],  # three hops from 6
        "found at once": [6, 11],
        "empty pool": [5],
    }
    traces = dict.fromkeys(gold.keys() - {"empty pool"}, trace)
    seeds = first_windows(traces | {"empty pool": []})
    assert seeds == dict.fromkeys(traces, [0, 3, 1, 6])
    distance = nearest_missed_gold(document_graph(toy.NEIGHBOURS), seeds, gold)
    expected = [DistanceHits(1, 3, 2), DistanceHits(3, 1, 0), DistanceHits(-1, 1, 0)]
    assert hit_by_distance(traces, gold, seeds, distance) == HitByDistance(expected, gold_among_seeds=1)
    assert [line.share for line in expected] == pytest.approx([2 / 3, 0, 0])
    assert list(count_distances(distance).items()) == [(1, 3), (3, 2), (-1, 1)]  # the missed gold of "found at once", too


def test_seeds_of_another_method_serve_a_method_that_begins_at_the_bottom(bottom_up: list[dict[str, Any]]) -> None:
    gold, seeds = {"q": [9]}, {"q": [0, 3, 1, 6]}
    found = hit_by_distance({"q": bottom_up}, gold, seeds, nearest_missed_gold(document_graph(toy.NEIGHBOURS), seeds, gold))
    assert found == HitByDistance([DistanceHits(1, 1, 1)], 0)


# --- gold groups ------------------------------------------------------------------------------------------------------


def test_the_fate_of_gold_groups(trace: list[dict[str, Any]]) -> None:
    fates = gold_group_fate({"q": trace}, {"q": [6, 8, 7, 11, 5], "empty": [10]}, toy.GROUP_OF)  # 6 is in the first window
    flags = {(f.query_id, f.doc): (f.group, f.scored, f.eligible, f.expanded, f.observed) for f in fates}
    assert flags == {
        ("q", 8): (2, True, True, True, True),
        ("q", 7): (2, True, True, True, False),
        ("q", 11): (3, True, True, False, False),
        ("q", 5): (1, True, True, True, True),
        ("empty", 10): (3, False, False, False, False),
    }
    assert list(count_fates(fates).items()) == list(zip(OUTCOMES, [2, 1, 1, 1], strict=True))


def test_a_failed_score_is_none_and_the_pool_expands_no_group() -> None:
    turns = [
        Iteration([0], navigated=[1, 2], navigated_scores=[math.nan, 0.5], eligible=[2], added=[3], added_from=[POOL]),
        Iteration([0, 3]),
    ]
    fates = gold_group_fate({"q": [asdict(turn) for turn in turns]}, {"q": [3, 4, 7]}, toy.GROUP_OF)
    assert [(f.doc, f.scored, f.eligible, f.expanded, f.observed) for f in fates] == [
        (3, False, False, False, True),  # observed, though its group was neither scored nor expanded
        (4, False, False, False, False),
        (7, True, True, False, False),
    ]
    assert [f.outcome for f in fates] == [OUTCOMES[0], OUTCOMES[3], OUTCOMES[2]]


# --- cost and parameters ----------------------------------------------------------------------------------------------


def test_the_frontier_by_hand() -> None:
    lines = [
        ("cheap", 0.2, 1.0),
        ("worse and dearer", 0.1, 2.0),
        ("best", 0.5, 9.0),
        ("as good, dearer", 0.5, 10.0),
        ("worse", 0.1, 1.0),
    ]
    assert [point.name for point in frontier(lines) if point.optimal] == ["cheap", "best"]
    assert frontier([("one", 0.5, 1.0), ("its equal", 0.5, 1.0)]) == [
        Point("one", 0.5, 1.0, True),
        Point("its equal", 0.5, 1.0, True),
    ]
    assert frontier([]) == []


def test_what_was_not_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="bm25: value 0.1 and cost nan"):
        frontier([("bm25", 0.1, math.nan)])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_frontier_is_the_staircase(points: list[tuple[int, int]]) -> None:
    """Another way: going from the cheapest, a point is optimal when it raises the best value so far; its equals are too."""
    best, stairs = -1, set()
    for value, cost in sorted(points, key=lambda point: (point[1], -point[0])):
        if value > best:
            best = value
            stairs.add((value, cost))
    found = frontier([("", value, cost) for value, cost in points])
    assert [point.optimal for point in found] == [point in stairs for point in points]


def test_parameters_pivot_and_repeated_runs_are_averaged() -> None:
    lines = [
        ("tau_switch", 8, 0.25),
        ("K_g", 20, 0.5),
        ("tau_switch", 0, 0.5),
        ("tau_switch", 8, 0.75),
        ("eligible", "candidates", 0.125),
        ("eligible", "all_scored", 0.25),
    ]
    assert sensitivity(lines) == {
        "tau_switch": [Setting(0, 0.5, 1), Setting(8, 0.5, 2)],
        "K_g": [Setting(20, 0.5, 1)],
        "eligible": [Setting("candidates", 0.125, 1), Setting("all_scored", 0.25, 1)],
    }
