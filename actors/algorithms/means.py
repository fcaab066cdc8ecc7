"""The direction of a set of documents: the mean of their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def mean_directions(vectors: NDArray[np.floating], members: Sequence[NDArray[np.integer]]) -> NDArray[np.float32]:
    """[n, d] float32, L2-normalised: the mean of the rows of `vectors` that each of `members` names, one at least.

    Where they cancel each other out, it is the first one's direction.
    """
    first = np.cumsum([0, *map(len, members[:-1])])
    taken = vectors[np.concatenate(members)].astype(np.float32)
    means: NDArray[np.float32] = np.add.reduceat(taken, first)
    nothing = ~means.any(axis=1)
    means[nothing] = taken[first[nothing]]
    return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)
