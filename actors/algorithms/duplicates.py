"""Near-duplicates: documents that say what another one says already."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def distinct(vectors: NDArray[np.float32], similarity: float) -> list[int]:
    """Positions of vectors [n, d], L2-normalised, none of which has a cosine of `similarity` or more to one kept before it."""
    kept: list[int] = []
    for position, vector in enumerate(vectors):
        if not kept or float((vectors[kept] @ vector).max()) < similarity:
            kept.append(position)
    return kept
