"""Group-driven evidence propagation (GAREN, section 4.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TOP = 10  # |R_final|


def base_weights(count: int, p: float) -> list[float]:
    """b(d) of Eq. 8 for ranks 1..count: (1-p) * p^(rank-1) for the first ten, 0 after them."""
    return [(1 - p) * p**rank if rank < TOP else 0.0 for rank in range(count)]


def propagate(ranking: Sequence[int], group_of: NDArray[np.int32], p: float, alpha: float) -> list[int]:
    """Sort `ranking` by Eq. 9: score(d) = b(d) + alpha * sum of b(d') over the documents d' of d's group, d included.

    Stable, so that documents of equal score keep their order; alpha = 0 changes nothing.
    """
    b = base_weights(len(ranking), p)
    groups = group_of[np.asarray(ranking, dtype=np.int64)].tolist()
    support: dict[int, float] = defaultdict(float)
    for group, weight in zip(groups[:TOP], b, strict=False):
        support[group] += weight
    score = [b[rank] + alpha * support[groups[rank]] if groups[rank] in support else b[rank] for rank in range(len(ranking))]
    return [ranking[rank] for rank in sorted(range(len(ranking)), key=lambda rank: -score[rank])]
