"""Fusion of two rankings: a weighted sum of their scores, each brought to 0..1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Scale(NamedTuple):
    """Min-max normalisation by one pool: its best score becomes 1, its worst 0, and the line goes on below 0 for others."""

    high: float
    span: float

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        found: NDArray[np.float64] = 1.0 - (self.high - np.asarray(scores, np.float64)) / self.span
        return found


def min_max(scores: ArrayLike) -> Scale:
    """The scale of a pool's scores; where they are all equal, they are 1: to be found counts for more than not to be."""
    pool = np.asarray(scores, np.float64)
    if not len(pool):
        return Scale(0.0, 1.0)
    return Scale(float(pool.max()), float(pool.max() - pool.min()) or 1.0)


def weighted_sum(
    one: tuple[NDArray[np.int32], ArrayLike], other: tuple[NDArray[np.int32], ArrayLike], weight: float, depth: int
) -> NDArray[np.int32]:
    """Rows int32 [<= depth] of `weight` * one + (1 - weight) * other, largest first, equal ones by row.

    one, other: the rows of two pools and their scores. Each is normalised by `min_max` within itself, and a document that it does
    not hold counts as its worst, 0. BM25 has no upper end and cosines of one model lie close together, so neither can be added as
    it is; min-max keeps the distances within a pool, which ranks throw away, and needs nothing to be known of either score.
    """
    rows = np.union1d(one[0], other[0])
    total = np.zeros(len(rows))
    for (held, scores), share in ((one, weight), (other, 1.0 - weight)):
        total[np.searchsorted(rows, held)] += share * min_max(scores)(scores)
    return rows[np.lexsort((rows, -total))[:depth]].astype(np.int32)
