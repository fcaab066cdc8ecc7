"""The direction of a group: worked by hand, and where its documents cancel each other out."""

from __future__ import annotations

import numpy as np

from actors.algorithms.means import mean_directions

VECTORS = np.array([[1, 0], [0, 1], [-1, 0], [0.6, 0.8]], np.float16)


def test_worked_by_hand() -> None:
    found = mean_directions(VECTORS, [np.array([0, 1]), np.array([3]), np.array([2, 0, 1])])
    assert found.dtype == np.float32
    assert np.allclose(found, [[0.5**0.5, 0.5**0.5], [0.6, 0.8], [0, 1]], atol=1e-3)


def test_documents_that_cancel_each_other_out_have_the_first_one_s_direction() -> None:
    assert mean_directions(VECTORS, [np.array([2, 0])]).tolist() == [[-1.0, 0.0]]
