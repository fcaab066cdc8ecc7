"""Groups that do not come from the graph, to be compared with those that do: by k-means over the vectors, and at random.

Both are made like given groups: k-means makes as many, and chance deals the documents over groups of the very same sizes.
Group ids count from 0 in the order of the groups' smallest rows. The result depends on the arguments only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.knn import Vectors, faiss_threads
from actors.algorithms.partition import Labels, by_first_row

CANDIDATES = 8  # groups that single precision proposes for a document; more are only told apart by it when more are that close
ROWS = 4096  # documents assigned at once: 50 MB of their candidates' centres at 384 dimensions


@dataclass(frozen=True)
class KMeans:
    """Lloyd's algorithm on the unit sphere (Dhillon and Modha 2001), stopped after `iterations` or when it stands still.

    The centres are trained on `training_documents` drawn by `seed`: all where there are fewer, one per group at least.
    """

    iterations: int
    training_documents: int
    seed: int


def at_random(group_of: Labels, seed: int) -> Labels:
    """The documents dealt at random over groups of the sizes that `group_of` [N] has: int32 [N]."""
    draw = np.random.default_rng(seed)
    return by_first_row(draw.permutation(group_of))


def by_kmeans(vectors: Vectors, groups: int, how: KMeans) -> Labels:
    """int32 [N]: the group of each of the `vectors` [N, d], normalised, only ever sliced or sampled, so perhaps memory-mapped.

    Nothing bounds a group's size. A centre that is nearest to no document makes no group, so there may be fewer than
    `groups`. Raises ValueError unless 1 <= groups <= N.
    """
    return by_first_row(assign(vectors, centres(vectors, groups, how)))


def centres(vectors: Vectors, groups: int, how: KMeans) -> NDArray[np.float16]:
    """The groups' centres [groups, d], of length 1 up to rounding. In one thread: faiss' last bits may depend on their number."""
    import faiss  # here, as in `knn`

    if not 1 <= groups <= len(vectors):
        raise ValueError(f"groups={groups} of {len(vectors)} documents: expected from 1 to as many as there are documents")
    size = min(len(vectors), max(how.training_documents, groups))
    draw = np.random.default_rng(how.seed)
    rows = draw.choice(len(vectors), size, replace=False, shuffle=False)
    sample = vectors[np.sort(rows)].astype(np.float32)
    kmeans = faiss.Kmeans(
        sample.shape[1], groups, niter=how.iterations, seed=how.seed, spherical=True,
        min_points_per_centroid=1, max_points_per_centroid=size,  # it neither warns nor samples once more
    )  # fmt: skip
    with faiss_threads(1):
        kmeans.train(sample)
    return np.asarray(kmeans.centroids, np.float16)


def assign(vectors: Vectors, centres: NDArray[np.float16], rows: int = ROWS) -> NDArray[np.int64]:
    """[N]: the centre with the largest inner product with each vector, of equal ones the first.

    faiss proposes CANDIDATES and double precision decides, for float16 without a rounding error (see `knn`): neither
    `rows`, the documents upcast at a time, nor the number of threads changes the result.
    """
    import faiss

    found, wide = np.empty(len(vectors), np.int64), centres.astype(np.float32)
    for start in range(0, len(vectors), rows):
        block = np.ascontiguousarray(vectors[start : start + rows], dtype=np.float32)
        _, near = faiss.knn(block, wide, min(CANDIDATES, len(wide)), metric=faiss.METRIC_INNER_PRODUCT)
        near.sort(axis=1)
        products = np.einsum("nd,ncd->nc", block, wide[near], dtype=np.float64)
        found[start : start + rows] = near[np.arange(len(near)), products.argmax(axis=1)]
    return found
