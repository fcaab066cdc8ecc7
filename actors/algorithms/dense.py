"""Dense retrieval: the documents whose vectors have the largest inner products with a query's, all compared or some lists of them.

Candidates come from single-precision products, whose last bits depend on how rows and queries were cut into blocks. They
are scored again in double precision, and there nothing is rounded: documents are float16, and a query is first brought to
multiples of 2**-24, so a product is a multiple of 2**-48 and a sum of such products below 2**5 fits the 53 bits of a double.
Rankings and scores therefore do not depend on blocks or batches, and equal documents are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK = 1 << 23  # float32 values of the document vectors that are upcast at a time: 32 MiB
GRID = 2.0**24
GPU_DEPTH = 2048  # the most that faiss finds on a GPU


class Ranked(NamedTuple):
    """The best documents: rows int32 and their inner products float64, largest first, equal ones by row."""

    rows: NDArray[np.int32]
    scores: NDArray[np.float64]


class Lists(Protocol):
    """Inverted lists of N vectors: L centroids, and the vectors list after list. Arrays may be memory-mapped."""

    @property
    def centroids(self) -> NDArray[np.float32]:
        """[L, d]"""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """[L + 1] where a list begins, and its end."""

    @property
    def rows(self) -> NDArray[np.int32]:
        """[N] which document each vector is."""

    @property
    def vectors(self) -> NDArray[np.float16]:
        """[N, d]"""


def on_grid(query: NDArray[np.float32]) -> NDArray[np.float64]:
    """[d] the query as multiples of 2**-24, float64: what every score here is computed with."""
    grid: NDArray[np.float64] = np.rint(np.asarray(query, np.float64) * GRID) / GRID
    return grid


def scores(vectors: NDArray[np.float16], rows: ArrayLike, query: NDArray[np.float32]) -> NDArray[np.float64]:
    """[n] inner products of these rows with the query, float64: bit for bit those of `exact` and `probed`."""
    found: NDArray[np.float64] = vectors[np.asarray(rows, np.int64)].astype(np.float64) @ on_grid(query)
    return found


def exact(
    vectors: NDArray[np.float16],
    queries: Sequence[NDArray[np.float32]],
    depth: int,
    excluded: Sequence[Sequence[int]],
    block_rows: int = 0,
) -> list[Ranked]:
    """The `depth` best of all documents for each query [d], without its excluded rows; the queries share one pass over the vectors.

    `vectors` is [N, d] float16, L2-normalised, and only ever sliced, so it may be memory-mapped; `block_rows` of it (0: 32 MiB
    as float32) are upcast at a time, which changes memory and never the result. Raises ValueError for a depth below 1 or vectors of
    different lengths.
    """
    _check(vectors, queries, depth)
    best = [_Best(query, depth, gone) for query, gone in zip(queries, excluded, strict=True)]
    together = np.stack([one.rough for one in best]) if best else np.empty((0, vectors.shape[1]), np.float32)
    step = block_rows or max(1, BLOCK // vectors.shape[1])
    for first in range(0, len(vectors) if best else 0, step):
        block = vectors[first : first + step].astype(np.float32)
        rows = np.arange(first, first + len(block), dtype=np.int32)
        for one, rough in zip(best, together @ block.T, strict=True):
            one.add(rows, block, rough)
    return [one.ranked() for one in best]


def probed(
    lists: Lists, queries: Sequence[NDArray[np.float32]], depth: int, excluded: Sequence[Sequence[int]], probes: int
) -> list[Ranked]:
    """The `depth` best documents of the `probes` lists whose centroids have the largest inner products with each query [d].

    Raises ValueError for a depth or probes below 1, or vectors of different lengths.
    """
    _check(lists.centroids, queries, depth)
    if probes < 1:
        raise ValueError(f"probes: {probes}; expected 1 or more lists")
    found = []
    for query, gone in zip(queries, excluded, strict=True):
        best = _Best(query, depth, gone)
        nearest = np.argsort(-(lists.centroids @ best.rough), kind="stable")[:probes]
        for rows, block in _read(lists, nearest.tolist()):
            best.add(rows, block, block @ best.rough)
        found.append(best.ranked())
    return found


class OnGpu:
    """Exact search with the vectors in the memory of one GPU, as float16; what it finds is scored again in double precision."""

    def __init__(self, vectors: NDArray[np.float16]) -> None:
        """vectors: [N, d], copied to the GPU in blocks. Raises RuntimeError (faiss' own) when they do not fit."""
        import faiss

        config = faiss.GpuIndexFlatConfig()
        config.useFloat16 = True
        self._vectors, self._resources = vectors, faiss.StandardGpuResources()
        self._index = faiss.GpuIndexFlatIP(self._resources, vectors.shape[1], config)
        step = max(1, BLOCK // vectors.shape[1])
        for first in range(0, len(vectors), step):
            self._index.add(vectors[first : first + step].astype(np.float32))

    def search(self, queries: Sequence[NDArray[np.float32]], depth: int, excluded: Sequence[Sequence[int]]) -> list[Ranked]:
        """As `exact`, up to documents whose scores are equal in single precision at the last place."""
        spare = 16 + max((len(gone) for gone in excluded), default=0)  # so many may go before the last place does
        asked = min(depth + spare, len(self._vectors))
        if asked > GPU_DEPTH:
            return exact(self._vectors, queries, depth, excluded)
        _check(self._vectors, queries, depth)
        best = [_Best(query, depth, gone) for query, gone in zip(queries, excluded, strict=True)]
        _, found = self._index.search(np.stack([one.rough for one in best]), asked)
        for one, rows in zip(best, found, strict=True):
            rows = np.sort(rows[rows >= 0]).astype(np.int32)
            block = self._vectors[rows].astype(np.float32)
            one.add(rows, block, block @ one.rough)
        return [one.ranked() for one in best]


class _Best:
    """The best documents of one query so far, at most `depth`, by their exact scores."""

    def __init__(self, query: NDArray[np.float32], depth: int, excluded: Sequence[int]) -> None:
        self._query = on_grid(query)
        self.rough = self._query.astype(np.float32)  # for the single-precision products
        # Twice the error bound of such a product, d * 2**-24 |x| |y|; rounding to float16 may have lengthened x by 2**-11.
        self._error = len(query) * 2.0**-23 * 1.01 * float(np.linalg.norm(self._query))
        self._depth = depth
        self._excluded = np.unique(np.asarray(excluded, np.int64))
        self._rows = np.empty(0, np.int32)
        self._scores = np.empty(0)

    def add(self, rows: NDArray[np.int32], block: NDArray[np.float32], rough: NDArray[np.float32]) -> None:
        """Take in documents that were not seen before: rows [n], their vectors [n, d] and single-precision scores [n]."""
        if len(self._excluded):
            rough = np.where(np.isin(rows, self._excluded), -np.inf, rough)
        full = len(self._scores) == self._depth
        kept = np.flatnonzero(rough >= self._scores[-1] - self._error if full else rough > -np.inf)
        if len(kept) > 2 * self._depth:  # else finding the place costs more than it saves
            some = rough[kept]
            kept = kept[some >= np.partition(some, -self._depth)[-self._depth] - self._error]
        if not len(kept):
            return
        found = block[kept].astype(np.float64) @ self._query
        every, values = np.concatenate([self._rows, rows[kept]]), np.concatenate([self._scores, found])
        order = np.lexsort((every, -values))[: self._depth]
        self._rows, self._scores = every[order], values[order]

    def ranked(self) -> Ranked:
        return Ranked(self._rows, self._scores)


def _read(lists: Lists, numbers: Sequence[int]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.float32]]]:
    """The rows and float32 vectors of some lists, as many together as one block holds: lists are small."""
    step = max(1, BLOCK // lists.vectors.shape[1])
    spans = [
        (start, min(start + step, int(lists.offsets[number + 1])))
        for number in numbers
        for start in range(int(lists.offsets[number]), int(lists.offsets[number + 1]), step)
    ]
    while spans:
        size, count = 0, 0
        while count < len(spans) and (not count or size + spans[count][1] - spans[count][0] <= step):
            size += spans[count][1] - spans[count][0]
            count += 1
        rows, block = np.empty(size, np.int32), np.empty((size, lists.vectors.shape[1]), np.float32)
        at = 0
        for start, stop in spans[:count]:
            rows[at : at + stop - start] = lists.rows[start:stop]
            block[at : at + stop - start] = lists.vectors[start:stop]
            at += stop - start
        yield rows, block
        spans = spans[count:]


def _check(vectors: NDArray[Any], queries: Sequence[NDArray[np.float32]], depth: int) -> None:
    if depth < 1:
        raise ValueError(f"depth: {depth}; expected 1 or more documents in the pool")
    for query in queries:
        if query.shape != vectors.shape[1:]:
            raise ValueError(f"query vector: shape {query.shape}; expected {vectors.shape[1:]}, as the documents' vectors have")
