"""The weighted sum of two rankings, by hand and against a plain formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from actors.algorithms.fusion import min_max, weighted_sum

POOL = st.dictionaries(st.integers(0, 20), st.sampled_from([-1.0, 0.0, 0.5, 0.75, 3.0]), max_size=12)


def arrays(pool: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(list(pool), np.int32), np.array(list(pool.values()), np.float64)


def normalised(pool: dict[int, float], row: int) -> float:
    if row not in pool:
        return 0.0
    low, high = min(pool.values()), max(pool.values())
    return 1.0 if low == high else (pool[row] - low) / (high - low)


@given(POOL, POOL, st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(1, 30))
def test_the_formula(one: dict[int, float], other: dict[int, float], weight: float, depth: int) -> None:
    total = {row: weight * normalised(one, row) + (1 - weight) * normalised(other, row) for row in {*one, *other}}
    rows = weighted_sum(arrays(one), arrays(other), weight, depth).tolist()
    assert len(rows) == min(depth, len(total)) == len(set(rows))
    assert [total[row] for row in rows] == pytest.approx(sorted(total.values(), reverse=True)[:depth])


def test_by_hand() -> None:
    # one: 7 -> 1, 3 -> .5, 5 -> 0; other: 5 -> 1, 9 -> .75, 3 -> 0; equal weights: 5 .5, 7 .5, 9 .375, 3 .25
    one, other = arrays({7: 12.0, 3: 11.0, 5: 10.0}), arrays({5: 0.5, 9: 0.4375, 3: 0.25})
    assert weighted_sum(one, other, 0.5, 9).tolist() == [5, 7, 9, 3]
    assert weighted_sum(one, other, 0.5, 2).tolist() == [5, 7]
    assert weighted_sum(one, other, 0.75, 9).tolist() == [7, 3, 5, 9]
    assert weighted_sum(one, arrays({}), 0.5, 9).tolist() == [7, 3, 5]
    assert weighted_sum(arrays({}), arrays({}), 0.5, 9).tolist() == []


def test_the_scale_goes_on_below_the_pool() -> None:
    scale = min_max([4.0, 2.0, 3.0])
    assert scale([4.0, 3.0, 2.0, 0.0]).tolist() == [1.0, 0.5, 0.0, -1.0]
    assert min_max([0.25, 0.25])([0.25, 0.0]).tolist() == [1.0, 0.75], "what is found counts for more than what is not"
