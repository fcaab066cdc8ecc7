"""Inverted lists (IVF): the vectors around each of many centroids, so that a search looks at the nearest lists only.

The centroids come from k-means at two levels (a coarse one, then one inside each coarse cell), so that thousands of lists over
millions of vectors take minutes of one core: a vector is compared with the coarse centroids and with those in its nearest cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.knn import Vectors, faiss_threads, finite

Wide = NDArray[np.float32]

CHUNK = 4096  # rows that are compared together, counted from row 0: the last bits of a product may depend on who is beside it
GROUP = 8192  # documents of the lists that are searched together
CELLS = 8  # nearest coarse cells whose lists are compared
CLOSE = 1e-5  # two lists nearer to each other than this are told apart in double precision
SAMPLE_PER_CELL = 256  # training documents of a coarse centroid


@dataclass(frozen=True)
class How:
    """lists: their number, 0: by the number of documents. training_documents: at most, drawn by `seed`."""

    lists: int
    iterations: int
    training_documents: int
    seed: int


class Cells(NamedTuple):
    """Coarse cells over centroids: cell c holds the centroids `members[offsets[c]:offsets[c+1]]`."""

    coarse: Wide  # [C, d]
    offsets: NDArray[np.int64]  # [C + 1]
    members: NDArray[np.int64]  # [L]


def number_of_lists(documents: int) -> int:
    """N**0.6: lists short enough for a join of millions, and long enough that few of them hold most neighbours."""
    return max(1, min(documents, int(documents**0.6 + 0.5)))


def centroids(vectors: Vectors, how: How) -> Wide:
    """[L, d] float32 of length 1, coarse cell after coarse cell: lists that stand together are near each other.

    `vectors` [N, d], L2-normalised, may be memory-mapped: training documents are read from it. In one thread, since faiss' last
    bits may depend on their number.
    """
    documents = len(vectors)
    lists = how.lists or number_of_lists(documents)
    if not 1 <= lists <= documents:
        raise ValueError(f"lists={lists} of {documents} documents: expected from 1 to as many as there are documents")
    draw = np.random.default_rng(how.seed)
    size = min(documents, max(how.training_documents, lists))
    rows = np.sort(draw.choice(documents, size, replace=False, shuffle=False))
    sample = vectors[rows]
    for start in range(0, size, CHUNK):
        finite(sample[start : start + CHUNK], rows[start:])
    cells = round(math.sqrt(lists))
    with faiss_threads(1):
        some = np.sort(draw.choice(size, min(size, cells * SAMPLE_PER_CELL), replace=False, shuffle=False))
        coarse = _kmeans(sample[some], cells, how)
        cell_of = np.concatenate(
            [(_wide(sample[start : start + CHUNK]) @ coarse.T).argmax(axis=1) for start in range(0, size, CHUNK)]
        )
        sizes = np.bincount(cell_of, minlength=cells)
        shares = _shares(sizes, lists)
        members = np.split(np.argsort(cell_of, kind="stable"), np.cumsum(sizes)[:-1])
        return np.concatenate(
            [_kmeans(sample[rows], count, how) for rows, count in zip(members, shares.tolist(), strict=True) if count]
        )


def assign(vectors: Vectors, centroids: Wide, first: int, last: int) -> NDArray[np.int32]:
    """[last-first] the list of each of the rows first..last-1: of the centroids in the nearest cells, the one with the largest
    inner product, of equal ones the first.

    Works in chunks of CHUNK rows that count from row 0, and so does not depend on first and last; multiples of CHUNK waste nothing.
    """
    coarse = _cells(centroids)
    start = first - first % CHUNK
    found = [
        _assign(finite(vectors[row : row + CHUNK], np.arange(row, row + CHUNK)), centroids, coarse)
        for row in range(start, last, CHUNK)
    ]
    return np.concatenate([np.empty(0, np.int32), *found])[first - start : last - start]


def groups(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Boundaries, from 0 to L, of groups of consecutive lists that hold GROUP documents or, each but for its last list, fewer."""
    found = [0]
    for number in range(1, len(offsets)):
        if offsets[number] - offsets[found[-1]] >= GROUP or number == len(offsets) - 1:
            found.append(number)
    return np.array(found)


def _cells(centroids: Wide) -> Cells:
    """About sqrt(L) cells over given centroids, the same whoever asks."""
    count = max(1, round(math.sqrt(len(centroids))))
    with faiss_threads(1):
        coarse = _kmeans(centroids, count, How(count, 10, len(centroids), 0))
    cell_of = (centroids @ coarse.T).argmax(axis=1)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(cell_of, minlength=count))])
    return Cells(coarse, offsets, np.argsort(cell_of, kind="stable"))


def _assign(block: Wide, centroids: Wide, cells: Cells) -> NDArray[np.int32]:
    best, second = np.full((2, len(block)), -np.inf, np.float32)
    found = np.zeros(len(block), np.int64)
    runner = np.zeros(len(block), np.int64)
    count = min(CELLS, len(cells.coarse))
    near = np.argpartition(block @ cells.coarse.T, -count, axis=1)[:, -count:]
    for cell in range(len(cells.coarse)):
        lists = cells.members[cells.offsets[cell] : cells.offsets[cell + 1]]
        rows = np.flatnonzero((near == cell).any(axis=1))
        if not len(lists) or not len(rows):
            continue
        scores = block[rows] @ centroids[lists].T
        for _ in range(2):  # the best list of the cell, then its second best
            at = scores.argmax(axis=1)
            score, number = scores[np.arange(len(rows)), at], lists[at]
            scores[np.arange(len(rows)), at] = -np.inf
            better = score > best[rows]
            up, down = rows[better], rows[~better]
            second[up], runner[up] = best[up], found[up]
            best[up], found[up] = score[better], number[better]
            after = score[~better] > second[down]
            second[down[after]], runner[down[after]] = score[~better][after], number[~better][after]
    close = np.flatnonzero(best - second <= CLOSE)
    pair = np.sort(np.stack([found[close], runner[close]], axis=1), axis=1)
    exact = np.einsum("nd,ncd->nc", block[close], centroids[pair], dtype=np.float64)
    found[close] = pair[np.arange(len(close)), exact.argmax(axis=1)]
    return found.astype(np.int32)


def _kmeans(vectors: Vectors, count: int, how: How) -> Wide:
    """Lloyd's algorithm on the unit sphere (Dhillon and Modha 2001)."""
    import faiss  # here, as in `knn`

    wide = _wide(vectors)
    if count >= len(wide):
        return wide
    kmeans = faiss.Kmeans(
        wide.shape[1], count, niter=how.iterations, seed=how.seed, spherical=True,
        min_points_per_centroid=1, max_points_per_centroid=len(wide),  # it neither warns nor samples once more
    )  # fmt: skip
    kmeans.train(wide)
    return np.asarray(kmeans.centroids)


def _shares(sizes: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """`total` dealt in proportion to `sizes`, none above its size, at least one where a size is above 0 (largest remainder)."""
    exact = sizes * (total / sizes.sum())
    shares: NDArray[np.int64] = np.minimum(np.maximum(exact.astype(np.int64), sizes > 0), sizes)
    while (short := total - int(shares.sum())) != 0:
        able = np.flatnonzero(shares < sizes) if short > 0 else np.flatnonzero(shares > 1)
        order = able[np.argsort((shares - exact)[able] * np.sign(short), kind="stable")]
        shares[order[: abs(short)]] += np.sign(short)
    return shares


def _wide(vectors: Vectors) -> Wide:
    wide: Wide = np.ascontiguousarray(vectors, dtype=np.float32)
    return wide
