"""Exact k nearest neighbours by inner product: the edges of the corpus graph.

faiss finds a few candidates more than asked in single precision, where the last bits of a score depend on how the
rows were cut into blocks. The candidates are therefore scored again in double precision, and the result is the same
for every cut. For float16 vectors whose norm is at most 5 that second score has no rounding error at all: a product
of two float16 numbers is a multiple of 2**-48, and a sum of such products below 2**5 fits the 53 bits of a double.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float16] | NDArray[np.float32]

Found = tuple[NDArray[np.float32], NDArray[np.int64]]
Search = Callable[[NDArray[np.float32], NDArray[np.float32], int], Found]  # queries, base, how many -> scores and rows

# Candidates beyond k + 1. Rows with more documents than this tied at the k-th place are scored against everything.
SPARE = 16
SCRATCH = 1 << 22  # float64 values of scratch space: 32 MiB


def nearest(
    vectors: Vectors, first: int, last: int, k: int, *, threads: int = 1, base_rows: int = 1 << 15, gpu: bool = False
) -> tuple[NDArray[np.int32], NDArray[np.float16]]:
    """The k nearest of all rows for each of the rows first..last-1, itself excluded.

    `vectors` is [N, d] float16 or float32, L2-normalised for cosine, and only ever sliced, so it may be memory-mapped;
    `base_rows` of it are upcast at a time, which changes memory and never the result. Returns neighbours int32
    [last-first, k] and inner products float16 [last-first, k]: nearest first, equal ones by ascending row, -1 and 0.0
    where there are fewer than k. The order is that of the exact inner product, before it is rounded to float16 (float32
    vectors: up to the rounding of a double-precision sum). `threads` is set for faiss in the whole process
    while the call runs; `gpu` has faiss-gpu propose the candidates. Raises ValueError on a wrong range and on values that are
    not finite.
    """
    documents = vectors.shape[0]
    if k < 1 or base_rows < 1 or not 0 <= first <= last <= documents:
        raise ValueError(
            f"k={k}, base_rows={base_rows}, rows {first}..{last}: expected k >= 1, base_rows >= 1 and "
            f"0 <= first <= last <= {documents} (the vectors' rows)"
        )
    return nearest_of(vectors, np.arange(first, last), k, threads=threads, base_rows=base_rows, gpu=gpu)


def nearest_of(
    vectors: Vectors, asked: NDArray[np.int64], k: int, *, threads: int = 1, base_rows: int = 1 << 15, gpu: bool = False
) -> tuple[NDArray[np.int32], NDArray[np.float16]]:
    """As `nearest`, for the rows `asked` [n]."""
    search = _gpu_search() if gpu else _cpu_search
    queries = finite(vectors[asked], asked)
    scores, rows = np.full((len(asked), k), -np.inf), np.full((len(asked), k), -1, np.int64)
    left_out = np.full(len(asked), -np.inf)
    with faiss_threads(threads):
        for start in range(0, len(vectors), base_rows):
            base = _upcast(vectors, start, min(start + base_rows, len(vectors)))
            found, at, bound = _candidates(search, queries, base, asked - start, k, scores[:, -1])
            scores, rows = _merge(scores, rows, found, at + start, k)
            left_out = np.maximum(left_out, bound)
    unsettled = np.flatnonzero((left_out > -np.inf) & (scores[:, -1] <= left_out))
    if len(unsettled):
        scores[unsettled], rows[unsettled] = _scan(vectors, queries[unsettled], asked[unsettled], k, base_rows)
    missing = scores == -np.inf
    return np.where(missing, -1, rows).astype(np.int32), np.where(missing, 0.0, scores).astype(np.float16)


def recall(neighbours: NDArray[np.int32], exact: NDArray[np.int32]) -> float:
    """Recall@k: the share of the exact neighbours (both int32 [n, k], -1 where fewer) that were found; 1.0 of none."""
    real = exact >= 0
    hits = (exact[:, :, None] == neighbours[:, None, :]).any(axis=2) & real
    return float(hits.sum() / real.sum()) if real.any() else 1.0


def finite(vectors: Vectors, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """The vectors of some rows in single precision. Raises ValueError, naming the row, where one is not finite."""
    block = np.ascontiguousarray(vectors, dtype=np.float32)
    if not np.isfinite(block).all():
        row = rows[np.flatnonzero(~np.isfinite(block).all(axis=1))[0]]
        raise ValueError(f"vector of row {row} holds NaN or infinity, expected finite numbers: embed it again")
    return block


def _upcast(vectors: Vectors, start: int, stop: int) -> NDArray[np.float32]:
    return finite(vectors[start:stop], np.arange(start, stop))


def _cpu_search(queries: NDArray[np.float32], base: NDArray[np.float32], asked: int) -> Found:
    import faiss  # here, so that a job can say which of the two builds of faiss to install

    found: Found = faiss.knn(queries, base, asked, metric=faiss.METRIC_INNER_PRODUCT)
    return found


def _gpu_search() -> Search:
    """The same on a GPU; its memory is held as long as the function is."""
    import faiss

    resources = faiss.StandardGpuResources()

    def search(queries: NDArray[np.float32], base: NDArray[np.float32], asked: int) -> Found:
        found: Found = faiss.knn_gpu(resources, queries, base, asked, metric=faiss.METRIC_INNER_PRODUCT)
        return found

    return search


def _candidates(
    search: Search, queries: NDArray[np.float32], base: NDArray[np.float32], own: NDArray[np.int64], k: int,
    kth: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:  # fmt: skip
    """Exact scores and rows of this block's candidates, and what no document left out can exceed (-inf: none was).

    Query i is row own[i] of the block. A candidate that cannot beat the k-th best so far (`kth`) stays at -inf.
    """
    asked = min(k + 1 + SPARE, len(base))
    rough, at = search(queries, base, asked)
    # Error bound of a single-precision dot product, doubled: d * 2**-24 * |x| |y|.
    error = base.shape[1] * 2.0**-23 * np.linalg.norm(queries, axis=1) * np.linalg.norm(base, axis=1).max()
    itself = at == own[:, None]
    query, place = np.nonzero((at >= 0) & ~itself & (rough >= (kth - error)[:, None]))
    scores = np.full(at.shape, -np.inf)
    scores[query, place] = _products(queries, query, base, at[query, place])
    bound = rough[:, -1] + error if asked < len(base) else np.full(len(queries), -np.inf)
    return scores, at, bound


def _products(
    left: NDArray[np.float32], i: NDArray[np.int64], right: NDArray[np.float32], j: NDArray[np.int64]
) -> NDArray[np.float64]:
    """left[i] . right[j] pair by pair, in double precision."""
    products, step = np.empty(len(i)), max(1, SCRATCH // left.shape[1])
    for start in range(0, len(i), step):
        part = slice(start, start + step)
        products[part] = np.einsum("pd,pd->p", left[i[part]], right[j[part]], dtype=np.float64)
    return products


def _merge(
    scores: NDArray[np.float64], rows: NDArray[np.int64], more: NDArray[np.float64], at: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    scores, rows = np.concatenate([scores, more], axis=1), np.concatenate([rows, at], axis=1)
    order = np.lexsort((rows, -scores), axis=-1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _scan(
    vectors: Vectors, queries: NDArray[np.float32], itself: NDArray[np.int64], k: int, base_rows: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Double-precision scores against every row, for the queries (rows `itself`) whose k-th place is a wide tie."""
    scores, rows = np.full((len(queries), k), -np.inf), np.full((len(queries), k), -1, np.int64)
    for start in range(0, len(vectors), base_rows):
        base = _upcast(vectors, start, min(start + base_rows, len(vectors))).astype(np.float64)
        step = max(1, SCRATCH // len(base))
        for part in (slice(low, low + step) for low in range(0, len(queries), step)):
            products = queries[part].astype(np.float64) @ base.T
            products[itself[part][:, None] == np.arange(start, start + len(base))] = -np.inf
            at = _largest(products, min(k, len(base)))
            found = np.take_along_axis(products, at, axis=1)
            scores[part], rows[part] = _merge(scores[part], rows[part], found, at + start, k)
    return scores, rows


def _largest(scores: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Columns of each row's k largest values, equal ones by ascending column; [n, k] in ascending column order."""
    kth = np.partition(scores, scores.shape[1] - k, axis=1)[:, [scores.shape[1] - k]]
    above, equal = scores > kth, scores == kth
    wanted = k - above.sum(axis=1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, axis=1) <= wanted))
    return np.nonzero(chosen)[1].reshape(len(scores), k)


@contextmanager
def faiss_threads(threads: int) -> Iterator[None]:
    """So many threads for faiss, in the whole process while it lasts."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
