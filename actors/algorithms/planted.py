"""A corpus graph without a corpus, for measuring what a graph's size costs: documents are points of few dimensions.

Points lie around centres that lie around centres, each level half as wide, the lowest as wide as it was drawn; neighbours are
the nearest points, exactly. So edges are returned and groups nest as in a graph of embeddings, at a hundredth of its cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 5
FAN = 16  # centres around a centre
GROUP = 12  # documents around a lowest centre, on average


class Planted(NamedTuple):
    neighbours: NDArray[np.int32]  # [N, k] nearest first
    group_of: NDArray[np.int32]  # [N] the centre that a document was drawn around; from 0 without gaps


def plant(documents: int, k: int, seed: int) -> Planted:
    """A graph of so many documents, in no order. Raises ValueError unless documents > k."""
    from scipy.spatial import cKDTree  # heavy, and only benches plant

    if documents <= k:
        raise ValueError(f"{documents} documents of {k} neighbours: expected more documents than neighbours")
    draw = np.random.default_rng(seed)
    centres, width = np.zeros((1, DIMENSIONS)), 1.0
    while len(centres) * GROUP < documents:
        around = min(FAN, -(-documents // (GROUP * len(centres))))
        centres = np.repeat(centres, around, axis=0)
        centres += width * draw.standard_normal(centres.shape)
        width /= 2
    group = draw.integers(0, len(centres), documents)
    own = width * np.exp(draw.normal(0.0, 0.5, len(centres)))
    points = centres[group] + own[group, None] * draw.standard_normal((documents, DIMENSIONS))
    near = cKDTree(points).query(points, k + 1)[1]
    self_last = np.argsort(near == np.arange(documents)[:, None], axis=1, kind="stable")
    neighbours = np.take_along_axis(near, self_last, axis=1)[:, :k]
    _, group_of = np.unique(group, return_inverse=True)
    return Planted(neighbours.astype(np.int32), group_of.astype(np.int32))
