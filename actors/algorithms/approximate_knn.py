"""Approximate k nearest neighbours: a join of inverted lists, passes of refinement, and an exact ranking of what they found.

`nearest` is the whole of it in one process; a job does the same steps as tasks. Only offline tasks import this module: it brings
numba.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import inverted_lists, list_join, refinement
from actors.algorithms.compiled import Halves, as_halves, kernel, widened
from actors.algorithms.list_join import Equals, Near, Positions

Neighbours = tuple[NDArray[np.int32], NDArray[np.float16]]


@dataclass(frozen=True)
class How:
    """lists: of the inverted lists; probes: lists that a document is compared with; passes: of refinement;
    spare: candidates kept beyond k; hubs: neighbours followed in each direction.
    """

    lists: inverted_lists.How
    probes: int
    passes: int
    spare: int
    hubs: int


def nearest(vectors: NDArray[np.float16], k: int, how: How) -> Neighbours:
    """Neighbours int32 [N, k] and inner products float16 [N, k] of float16 `vectors` [N, d], L2-normalised: as `knn.nearest`
    gives them, but for neighbours that were not found.
    """
    documents = len(vectors)
    centroids = inverted_lists.centroids(vectors, how.lists)
    list_of = inverted_lists.assign(vectors, centroids, 0, documents)
    rows = np.argsort(list_of, kind="stable").astype(np.int32)
    list_of, vectors = list_of[rows], vectors[rows]
    offsets = np.searchsorted(list_of, np.arange(len(centroids) + 1))
    same = list_join.equals(vectors, offsets, 0, len(centroids))
    bounds = inverted_lists.groups(offsets).tolist()
    parts = [
        list_join.join(vectors, offsets, centroids, same.leaders, *span, probes=how.probes, keep=k + how.spare)
        for span in zip(bounds, bounds[1:], strict=False)
    ]
    near = Near(*(np.concatenate(arrays) for arrays in zip(*(part for part, _ in parts), strict=True)))
    probed = np.concatenate([lists for _, lists in parts])
    for _ in range(how.passes):
        back = refinement.backward(near.positions, how.hubs)
        near = refinement.refine(vectors, near, back, probed, list_of, 0, documents)
    return rank(vectors, rows, same, near.positions, np.argsort(rows), k)


def rank(
    vectors: NDArray[np.float16], rows: NDArray[np.int32], same: Equals, candidates: Positions, asked: NDArray[np.int64], k: int
) -> Neighbours:
    """The k best candidates of the positions `asked` [n] by double-precision products, equal ones by ascending row.

    vectors: [N, d] and rows: [N] by position; candidates: [N, K] positions. Each candidate stands for all documents with its
    vector. The products have no rounding error (see `knn`). Returns rows and products [n, k]; -1 and 0.0 where there are fewer.
    """
    found = np.full((len(asked), k), -1, np.int32)
    scores = np.full((len(asked), k), -np.inf)
    _rank(as_halves(vectors), rows, same.leaders, same.following, candidates, asked, found, scores)
    return found, np.where(found < 0, 0.0, scores).astype(np.float16)


@kernel
def _rank(
    halves: Halves, rows: NDArray[np.int32], leaders: Positions, following: Positions, candidates: Positions,
    asked: NDArray[np.int64], found: NDArray[np.int32], scores: NDArray[np.float64],
) -> None:  # fmt: skip
    for i in range(len(asked)):
        own = asked[i]
        leader = leaders[own]
        for t in range(-1, candidates.shape[1]):
            x = leader if t < 0 else candidates[leader, t]
            if x < 0:
                continue
            score = 0.0
            for d in range(halves.shape[1]):
                score += np.float64(widened(halves[own, d])) * np.float64(widened(halves[x, d]))
            members = 0
            while x >= 0 and members <= found.shape[1]:  # one more than k: the document itself may be among them
                if x != own:
                    _place(found[i], scores[i], rows[x], score)
                x = following[x]
                members += 1


@kernel
def _place(found: NDArray[np.int32], scores: NDArray[np.float64], row: int, score: float) -> None:
    """Put a row in its place by score, then by row; the last one goes."""
    at = len(found)
    while at > 0 and (scores[at - 1] < score or (scores[at - 1] == score and (found[at - 1] > row or found[at - 1] < 0))):
        at -= 1
    for t in range(len(found) - 1, at, -1):
        scores[t] = scores[t - 1]
        found[t] = found[t - 1]
    if at < len(found):
        scores[at] = score
        found[at] = row
