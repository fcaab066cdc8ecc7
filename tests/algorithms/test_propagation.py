"""Evidence propagation: the weights, the worked examples, and what never changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from actors.algorithms.propagation import base_weights, propagate


@pytest.mark.parametrize(
    ("p", "weights"),
    [
        (0.6, [0.4, 0.24, 0.144, 0.0864, 0.0518, 0.0311, 0.0187, 0.0112, 0.0067, 0.0040]),
        (0.5, [0.5, 0.25, 0.125, 0.0625, 0.0313, 0.0156, 0.0078, 0.0039, 0.0020, 0.0010]),
    ],
)
def test_weights_of_the_first_ten(p: float, weights: list[float]) -> None:
    assert base_weights(12, p) == pytest.approx([*weights, 0.0, 0.0], abs=6e-5)


def groups(*same: int, count: int = 12) -> np.ndarray:
    """Every document alone, but those named, which share a group."""
    group_of = np.arange(count, dtype=np.int32)
    group_of[list(same)] = same[0]
    return group_of


def test_a_mate_of_rank_1_stays_just_below_rank_10_at_p_06() -> None:
    # 0.01 * 0.4 = 0.004 against 0.00403 + 0.01 * 0.00403: rank 12 passes rank 11, which has nothing, and not rank 10
    assert propagate(range(12), groups(0, 11), 0.6, 0.01) == [*range(10), 11, 10]


def test_a_mate_of_ranks_1_and_2_passes_rank_10_at_p_06() -> None:
    # 0.01 * (0.4 + 0.24) = 0.0064: above rank 10's 0.0041, below rank 9's 0.0067
    assert propagate(range(12), groups(0, 1, 11), 0.6, 0.01) == [*range(9), 11, 9, 10]


def test_a_mate_of_rank_1_lands_between_ranks_7_and_8_at_p_05() -> None:
    # 0.01 * 0.5 = 0.005: ranks 7 and 8 have 0.0078 and 0.0039
    assert propagate(range(12), groups(0, 11), 0.5, 0.01) == [*range(7), 11, *range(7, 11)]


def test_a_document_is_its_own_support() -> None:
    # 4 and 9 share a group; b = .25 .1875 .1406. With alpha = 3: 7 has .25 + .75, 4 .1875 + .9844, 9 .1406 + .9844.
    # Counting only the others, 4 would have .1875 + .4219 and 9 .1406 + .5625, so that 9 came first.
    assert propagate([7, 4, 9], groups(4, 9), 0.75, 3.0) == [4, 9, 7]
    assert propagate([7, 4, 9], groups(4, 9), 0.6, 3.0) == [7, 4, 9]  # .4 + 1.2, .24 + 1.152, .144 + 1.152


def test_support_comes_from_the_first_ten_only() -> None:
    assert propagate(range(12), groups(10, 11), 0.6, 5.0) == list(range(12))


rankings = st.lists(st.integers(0, 30), unique=True, max_size=20)
group_of = st.lists(st.integers(0, 5), min_size=31, max_size=31).map(lambda g: np.array(g, np.int32))


@settings(max_examples=50)
@given(rankings, group_of, st.floats(0, 1))
def test_alpha_0_changes_nothing(ranking: list[int], group_of: np.ndarray, p: float) -> None:
    assert propagate(ranking, group_of, p, 0.0) == ranking


@settings(max_examples=50)
@given(rankings, group_of, st.floats(0, 1), st.floats(0, 5))
def test_it_reorders_and_keeps_the_order_within_a_group(ranking: list[int], group_of: np.ndarray, p: float, alpha: float) -> None:
    result = propagate(ranking, group_of, p, alpha)
    assert sorted(result) == sorted(ranking)
    for group in set(group_of.tolist()):
        assert [d for d in result if group_of[d] == group] == [d for d in ranking if group_of[d] == group]


@settings(max_examples=50)
@given(rankings, group_of)
def test_documents_without_weight_and_support_keep_their_order(ranking: list[int], group_of: np.ndarray) -> None:
    result = propagate(ranking, group_of, 0.6, 0.01)
    supported = set(group_of[ranking[:10]].tolist())
    rest = [d for d in ranking[10:] if group_of[d] not in supported]
    assert result[len(result) - len(rest) :] == rest
