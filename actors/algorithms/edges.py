"""The undirected graph of a neighbour array: which pairs of documents are joined, and how well groups keep them together.

A document names its nearest; two documents are joined when either names the other. Temporaries are bounded by blocks of rows,
except `union`, which holds every pair: 8 bytes of each, and 8 of every entry of the array while it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Neighbours = NDArray[np.int32]
Similarities = NDArray[np.float16] | NDArray[np.float32]

ENTRIES = 1 << 20  # entries of the neighbour array, or edges, that are looked at together


class Edges(NamedTuple):
    """The undirected graph: every pair once. What is not an edge is counted."""

    pairs: NDArray[np.int32]  # [M, 2], smaller row first, ascending
    weights: NDArray[np.float64] | None  # [M], None: all 1
    self_loops: int  # entries of the neighbour array that named their own row
    not_positive: int  # entries whose similarity was 0 or less, where similarities are the weights


def union(neighbours: Neighbours, similarities: Similarities | None = None) -> Edges:
    """Undirected edges from a neighbour array [N, k] (-1: none), each once whichever end names it, and however often.

    With `similarities` [N, k] an edge weighs the larger of its two directions; they cost an order of all entries more.
    Raises ValueError on a row beyond N.
    """
    documents, self_loops, not_positive, used = len(neighbours), 0, 0, 0
    keys = np.empty(neighbours.size, np.int64)
    weights = None if similarities is None else np.empty(neighbours.size, similarities.dtype)
    for start, target, source in blocks(neighbours):
        self_loops += int((target == source).sum())
        real = (target >= 0) & (target != source)
        if similarities is not None and weights is not None:
            weight = similarities[start : start + len(target)]
            not_positive += int((real & ~(weight > 0)).sum())
            real &= weight > 0
            weights[used : used + int(real.sum())] = weight[real]
        key = (np.minimum(source, target) * documents + np.maximum(source, target))[real]
        keys[used : used + len(key)] = key
        used += len(key)
    keys = keys[:used]
    if weights is None:
        keys.sort()
        return Edges(_pairs(keys, documents), None, self_loops, not_positive)
    order = np.argsort(keys)
    keys, weights = keys[order], weights[:used][order]
    strongest = _strongest(keys, weights)
    return Edges(_pairs(keys, documents), strongest, self_loops, not_positive)


def _strongest(keys: NDArray[np.int64], weights: NDArray[np.floating]) -> NDArray[np.float64]:
    """The largest of the weights of each key; equal keys stand together."""
    if not len(keys):
        return np.empty(0)
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return np.maximum.reduceat(weights, first).astype(np.float64)


def _pairs(keys: NDArray[np.int64], documents: int) -> NDArray[np.int32]:
    """The distinct ones of sorted keys as pairs, in the memory of the keys."""
    pairs = keys.view(np.int32).reshape(len(keys), 2)
    count, last = 0, -1
    for start in range(0, len(keys), ENTRIES):
        block = keys[start : start + ENTRIES]
        found = block[np.concatenate([[block[0] != last], block[1:] != block[:-1]])]
        last = int(block[-1])  # before it may be overwritten
        pairs[count : count + len(found)] = np.stack(np.divmod(found, documents), axis=1)
        count += len(found)
    return pairs[:count]


def strength(nodes: int, edges: Edges) -> NDArray[np.float64]:
    """Weighted degree of every node."""
    found = np.zeros(nodes)
    for start in range(0, len(edges.pairs), ENTRIES):
        ends = edges.pairs[start : start + ENTRIES].ravel()
        weights = None if edges.weights is None else np.repeat(edges.weights[start : start + ENTRIES], 2)
        found += np.bincount(ends, weights, minlength=nodes)
    return found


def modularity(neighbours: Neighbours, group_of: NDArray[np.int32], resolution: float = 1.0) -> float:
    """Newman 2004, all edges weighing 1: those inside groups / m - resolution * sum of (group's degree / 2m)^2; 0.0 without edges.

    Block by block: the union is never held.
    """
    inside = total = 0
    degree = np.zeros(int(group_of.max(initial=-1)) + 1, np.int64)
    for ends in each_once(neighbours):
        groups = group_of[ends]
        total += len(ends)
        inside += int((groups[:, 0] == groups[:, 1]).sum())
        degree += np.bincount(groups.ravel(), minlength=len(degree))
    if total == 0:
        return 0.0
    return float(inside / total - resolution * np.square(degree / (2 * total)).sum())


def each_once(neighbours: Neighbours) -> Iterator[NDArray[np.int64]]:
    """The pairs of `union` in no order, [n, 2] at a time: one that both ends name comes from its smaller end."""
    for _, target, source in blocks(neighbours, of=neighbours.shape[1]):
        named = np.sort(np.where(target == source, -1, target), axis=1)
        named[:, 1:][named[:, 1:] == named[:, :-1]] = -1
        rows, columns = np.nonzero(named >= 0)
        pairs = np.stack([source[rows, 0], named[rows, columns]], axis=1)
        later = np.flatnonzero(pairs[:, 0] > pairs[:, 1])
        returned = (neighbours[pairs[later, 1]] == pairs[later, :1]).any(axis=1)
        yield np.delete(pairs, later[returned], axis=0)


def foreseen(neighbours: Neighbours, sample: int = 4096) -> int:
    """About how many pairs `union` will give, from `sample` rows, evenly spread."""
    rows = np.arange(0, len(neighbours), max(1, len(neighbours) // sample))
    target = neighbours[rows]
    real = target >= 0
    returned = (neighbours[np.where(real, target, 0)] == rows[:, None, None]).any(axis=2)
    return round(float((real / (1 + returned)).sum()) * len(neighbours) / max(1, len(rows)))


def blocks(neighbours: Neighbours, of: int = 1) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """(first row, targets [n, k], sources [n, 1]), checked, of ENTRIES / `of` entries at a time."""
    step = max(1, ENTRIES // max(1, neighbours.shape[1] * of))
    for start in range(0, len(neighbours), step):
        target = neighbours[start : start + step].astype(np.int64)
        if target.size and (target.max() >= len(neighbours) or target.min() < -1):
            row = start + int(np.flatnonzero(((target >= len(neighbours)) | (target < -1)).any(axis=1))[0])
            raise ValueError(
                f"neighbours of row {row} are {neighbours[row].tolist()}: expected rows of the corpus, "
                f"0..{len(neighbours) - 1}, or -1 for none; build the graph from this corpus"
            )
        yield start, target, np.arange(start, start + len(target))[:, None]
