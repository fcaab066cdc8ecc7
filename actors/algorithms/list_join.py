"""Near documents by a join of inverted lists: each document is compared with those of the lists whose centroids are nearest.

It is IVF search with the queries taken list by list, so that the comparisons of two lists are one matrix product. A position is
a place in the order of the lists (actors/artifacts/lists.py). Documents with equal vectors stand in one list; the first of them,
their leader, is compared for all. The work is cut where `groups` says, never by a task, so that results are the same whoever does
it: the last bits of a single-precision product depend on the shape of the matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.compiled import Halves, as_halves, kernel
from actors.algorithms.inverted_lists import Wide

Positions = NDArray[np.int32]

CHUNK = 4096  # rows and columns of a matrix product at most: 64 MiB
AROUND = 128  # lists nearest to a list's centroid that its documents may probe; twice the probes where that is more


class Equals(NamedTuple):
    """Equal vectors as chains, by position: [n] the leader, itself where there is no equal one before; [n] the next, -1: none."""

    leaders: Positions
    following: Positions


class Near(NamedTuple):
    """[n, K] candidates by position, best first, and their scores in single precision; -1 and -inf where there are fewer."""

    positions: Positions
    scores: Wide


def equals(vectors: NDArray[np.float16], offsets: NDArray[np.int64], first: int, last: int) -> Equals:
    """The equal vectors of each of the lists first..last-1."""
    parts = [_equals(vectors[offsets[number] : offsets[number + 1]], int(offsets[number])) for number in range(first, last)]
    leaders, following = (np.concatenate([np.empty(0, np.int32), *part]) for part in zip(*parts, strict=True))
    return Equals(leaders, following)


def _equals(vectors: NDArray[np.float16], start: int) -> Equals:
    count = len(vectors)
    leaders, following = np.arange(count), np.full(count, -1)
    _, which, sizes = np.unique(_hashes(as_halves(vectors)), return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(sizes[which] > 1)
    if len(suspects):
        bits = np.ascontiguousarray(vectors[suspects]).view(np.dtype((np.void, 2 * vectors.shape[1]))).ravel()
        _, which = np.unique(bits, return_inverse=True)
        order = np.argsort(which, kind="stable")
        same = which[order][1:] == which[order][:-1]
        following[suspects[order][:-1][same]] = suspects[order][1:][same]
        heads = np.concatenate([[True], ~same])
        leaders[suspects[order]] = suspects[order][heads][np.cumsum(heads) - 1]
    following[following >= 0] += start
    return Equals((leaders + start).astype(np.int32), following.astype(np.int32))


@kernel
def _hashes(halves: Halves) -> NDArray[np.int64]:
    """[n] alike for equal vectors, and seldom for others."""
    found = np.empty(len(halves), np.int64)
    for row in range(len(halves)):
        total, factor = np.int64(0), np.int64(1)
        for half in halves[row]:
            factor *= np.int64(6364136223846793005)
            total += (np.int64(half) + 1) * (factor >> np.int64(20))
        found[row] = total
    return found


def join(
    vectors: NDArray[np.float16], offsets: NDArray[np.int64], centroids: Wide, leaders: Positions, first: int, last: int, *,
    probes: int, keep: int,
) -> tuple[Near, NDArray[np.int32]]:  # fmt: skip
    """The best `keep` candidates of the documents of lists first..last-1, a group, and the lists [n, probes] they were sought in.

    vectors: float16 [N, d] by position, perhaps memory-mapped; offsets: [L+1]; centroids: [L, d]; leaders: [N]. Documents that
    are not their own leaders have no candidates. There are fewer than `probes` where fewer lists are.
    """
    start, stop = int(offsets[first]), int(offsets[last])
    own = np.flatnonzero(leaders[start:stop] == np.arange(start, stop))
    near = Near(np.full((stop - start, keep), -1, np.int32), np.full((stop - start, keep), -np.inf, np.float32))
    probes = min(probes, len(centroids))
    hood = _neighbourhood(centroids, first, last, max(AROUND, 2 * probes))
    probed = np.full((stop - start, probes), -1, np.int32)
    queries = vectors[start:stop].astype(np.float32)[own]
    rank = np.argpartition(queries @ centroids[hood].T, -probes, axis=1)[:, -probes:]
    probed[own] = hood[rank]
    by_list = np.argsort(rank, axis=None, kind="stable")
    ends = np.searchsorted(rank.ravel()[by_list], np.arange(len(hood) + 1))
    for place in np.flatnonzero(np.diff(ends)).tolist():
        who = by_list[ends[place] : ends[place + 1]] // probes
        for low in range(int(offsets[hood[place]]), int(offsets[hood[place] + 1]), CHUNK):
            high = min(low + CHUNK, int(offsets[hood[place] + 1]))
            these = low + np.flatnonzero(leaders[low:high] == np.arange(low, high))
            base = vectors[low:high].astype(np.float32)
            base = base.T if len(these) == len(base) else base[these - low].T
            for part in range(0, len(who), CHUNK):
                some = who[part : part + CHUNK]
                _offer(queries[some] @ base, own[some], these, start, near.positions, near.scores)
    return near, probed


def _neighbourhood(centroids: Wide, first: int, last: int, around: int) -> NDArray[np.int64]:
    """The lists nearest to each of some lists, all together, ascending."""
    around = min(around, len(centroids))
    return np.unique(np.argpartition(centroids[first:last] @ centroids.T, -around, axis=1)[:, -around:])


@kernel
def _offer(
    products: Wide, who: NDArray[np.int64], these: NDArray[np.int64], start: int, positions: Positions, scores: Wide
) -> None:
    """Let documents `these` enter the candidates of `who`, counted from `start`; products: [who, these]."""
    for i in range(len(who)):
        row = who[i]
        least = scores[row, -1]
        for j in range(len(these)):
            if products[i, j] > least and these[j] != start + row:
                insert(positions[row], scores[row], these[j], products[i, j])
                least = scores[row, -1]


@kernel
def insert(positions: Positions, scores: Wide, position: int, score: np.float32) -> None:
    """Put a candidate in its place, behind those with the same score; the last one goes."""
    at = len(scores) - 1
    while at > 0 and scores[at - 1] < score:
        scores[at] = scores[at - 1]
        positions[at] = positions[at - 1]
        at -= 1
    scores[at] = score
    positions[at] = position
