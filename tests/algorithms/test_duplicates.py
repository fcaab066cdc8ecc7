"""Which documents of a group are shown: each at least a little unlike every one shown before it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from actors.algorithms.duplicates import distinct


def turned(*degrees: float) -> NDArray[np.float32]:
    """Unit vectors at these angles."""
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_by_hand() -> None:
    """cos 10 = .985, cos 20 = .940, cos 30 = .866."""
    assert distinct(turned(0, 10, 90, 80, 20), 0.95) == [0, 2, 4], "20 is near to 10 only, which was left out"
    assert distinct(turned(0, 10, 90, 80, 20), 0.90) == [0, 2]
    assert distinct(turned(0, 10, 90, 80, 20), 0.99) == [0, 1, 2, 3, 4]
    assert distinct(turned(20, 0, 10), 0.95) == [0, 1], "the first of alike ones is kept"


def test_as_similar_as_that_is_a_duplicate() -> None:
    pair = np.array([[1, 0], [0.5, 0.8660254]], np.float32)
    assert distinct(pair, 0.5) == [0] and distinct(pair, 0.5000001) == [0, 1]


def test_copies_and_the_ends() -> None:
    assert distinct(turned(5, 5, 5), 0.95) == [0]
    assert distinct(turned(5), 0.0) == [0], "something is always shown"
    assert distinct(np.zeros((0, 2), np.float32), 0.95) == []


@given(st.lists(st.floats(0, 360), min_size=1, max_size=12), st.floats(-0.99, 0.99))
def test_what_is_kept_is_apart_and_what_is_not_lies_near_it(degrees: list[float], similarity: float) -> None:
    vectors = turned(*degrees)
    kept = distinct(vectors, similarity)
    assert kept[0] == 0 and kept == sorted(set(kept))
    for position in range(len(vectors)):
        nearest = max((float(vectors[earlier] @ vectors[position]) for earlier in kept if earlier < position), default=-2.0)
        assert nearest < similarity + 1e-5 if position in kept else nearest >= similarity - 1e-5
