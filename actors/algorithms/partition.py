"""Groups of documents from the corpus graph: Leiden, repeated inside every group that is larger than `max_size`.

`level0` partitions the whole graph. `batches` packs the groups that are still too large into sets of rows, `refine`
splits one such set until nothing in it is too large or can be split, in any process, and `combine` joins the parts. The
result depends on the arguments only: not on the number of workers nor on the order in which the parts come back.

Another way of partitioning needs nothing of this but a label per row; `by_first_row` turns labels into group ids.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import igraph
import numpy as np
from numpy.typing import NDArray

Neighbours = NDArray[np.int32]
Similarities = NDArray[np.float16] | NDArray[np.float32]
Labels = NDArray[np.int32]

ROWS = 1 << 18  # rows looked at together where a temporary per edge is needed
_IGRAPH_RANDOM = Lock()  # igraph has one random number generator per process


@dataclass(frozen=True)
class Leiden:
    """Traag, Waltman, van Eck 2019, "From Louvain to Leiden": its gamma is `resolution`, its theta `randomness`.

    A group is split while it has more than `max_size` documents. Each call iterates the algorithm `iterations` times.
    """

    max_size: int
    resolution: float
    randomness: float
    iterations: int
    seed: int


class Edges(NamedTuple):
    """The undirected graph: every pair once. What is not an edge is counted."""

    pairs: NDArray[np.int64]  # [M, 2], smaller row first, ascending
    weights: NDArray[np.float64] | None  # [M], None: all 1
    self_loops: int  # entries of the neighbour array that named their own row
    not_positive: int  # entries whose similarity was 0 or less, where similarities are the weights


class Level0(NamedTuple):
    """The partition of the whole graph, and what was met on the way."""

    labels: Labels  # [N]
    edges: int
    isolated: int  # documents without an edge; each stays alone
    self_loops: int
    not_positive: int


class Sizes(NamedTuple):
    groups: int
    minimum: int
    mean: float
    maximum: int
    over_max_size: int
    singletons: int


def union(neighbours: Neighbours, similarities: Similarities | None = None) -> Edges:
    """Undirected edges from a neighbour array [N, k] (-1: none), each once whichever end names it, and however often.

    With `similarities` [N, k] an edge weighs the larger of its two directions. Raises ValueError on a row beyond N.
    """
    documents, self_loops, not_positive = len(neighbours), 0, 0
    keys, weights = [np.empty(0, np.int64)], [np.empty(0)]
    for start, target, source in _blocks(neighbours):
        self_loops += int((target == source).sum())
        real = (target >= 0) & (target != source)
        if similarities is not None:
            weight = similarities[start : start + ROWS].astype(np.float64)
            not_positive += int((real & ~(weight > 0)).sum())
            real &= weight > 0
            weights.append(weight[real])
        keys.append((np.minimum(source, target) * documents + np.maximum(source, target))[real])
    key, strongest = _distinct(np.concatenate(keys), None if similarities is None else np.concatenate(weights))
    pairs = np.empty((len(key), 2), np.int64)
    np.divmod(key, max(documents, 1), out=(pairs[:, 0], pairs[:, 1]))
    return Edges(pairs, strongest, self_loops, not_positive)


def level0(neighbours: Neighbours, how: Leiden, similarities: Similarities | None = None) -> Level0:
    """Leiden on the whole graph; `similarities` given: weighted by them, else all edges weigh 1."""
    edges, documents = union(neighbours, similarities), len(neighbours)
    labels = _split(np.ones(documents, bool), np.zeros(documents, np.int32), edges, how, random.Random(how.seed))
    isolated = int((_strength(documents, edges) == 0).sum())
    return Level0(by_first_row(labels), len(edges.pairs), isolated, edges.self_loops, edges.not_positive)


def batches(neighbours: Neighbours, labels: Labels, max_size: int, nodes_per_batch: int = 25_000) -> list[NDArray[np.int32]]:
    """The rows of all groups larger than `max_size`, in sets of about equal work: most edges first, whole groups only.

    A set has about `nodes_per_batch` rows, ascending; more where one group has more. That number changes the
    result as a seed does, since the groups of a set share one random sequence; the number of workers does not.
    """
    size = np.bincount(labels)
    work = np.zeros(len(size), np.int64)
    for start, target, _ in _blocks(neighbours):
        own = labels[start : start + ROWS, None]
        inside = ((labels[target] == own) & (target >= 0)).sum(axis=1)
        work += np.bincount(own[:, 0], weights=inside, minlength=len(size)).astype(np.int64)
    large = np.flatnonzero(size > max_size)
    large = large[np.argsort(-work[large], kind="stable")]
    before = np.cumsum(work[large]) - work[large]
    work_per_batch = max(1.0, nodes_per_batch * work[large].sum() / max(1, size[large].sum()))
    used, batch = np.unique(before // work_per_batch, return_inverse=True)
    batch_of = np.full(len(size), -1)
    batch_of[large] = batch
    order = np.argsort(batch_of[labels], kind="stable").astype(np.int32)
    starts = np.searchsorted(batch_of[labels[order]], np.arange(len(used)))
    return np.split(order, starts)[1:]


def refine(
    neighbours: Neighbours,
    rows: NDArray[np.int32],
    labels: Labels,
    how: Leiden,
    similarities: Similarities | None = None,
) -> Labels:
    """Split the groups of one batch: int32 labels from 0 for its `rows` [n], ascending, whose level 0 is `labels` [n].

    `neighbours` (and `similarities`) are those of the whole corpus; only the batch's rows are read. All groups of a
    level that are too large go through one call, on the disjoint union of their graphs. A group that comes back
    whole is final, whatever its size.
    """
    edges = _inside(neighbours, rows, similarities)
    generator = random.Random(how.seed)
    group = by_first_row(labels)
    final = np.zeros(len(rows), bool)
    while True:
        open_ = ~final & (np.bincount(group, minlength=1)[group] > how.max_size)
        if not open_.any():
            return group
        split = group.copy()
        split[open_] = _split(open_, group, edges, how, generator) + len(rows)
        # A new group as large as the old one is the old one.
        final |= open_ & (np.bincount(split)[split] == np.bincount(group)[group])
        group = by_first_row(split)


def combine(labels: Labels, parts: Iterable[tuple[NDArray[np.int32], Labels]]) -> NDArray[np.int32]:
    """`group_of` int32 [N]: level-0 `labels`, replaced for the (rows, refined labels) of each part, in any order.

    Group ids count from 0 in the order of the groups' smallest rows. Raises ValueError if two parts share a row.
    """
    joined, used, seen = labels.astype(np.int64), len(labels), np.zeros(len(labels), bool)
    for rows, refined in parts:
        if seen[rows].any():
            row = rows[seen[rows]][0]
            raise ValueError(f"row {row} is in two parts: expected each row in one; pass each batch once")
        seen[rows] = True
        joined[rows] = refined.astype(np.int64) + used
        used += len(rows)
    return by_first_row(joined)


def by_first_row(labels: NDArray[np.integer]) -> NDArray[np.int32]:
    """The same partition with labels 0, 1, 2, ... in the order of each label's smallest row."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    position = np.empty(len(first), np.int32)
    position[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return position[inverse]


def sizes(group_of: NDArray[np.int32], max_size: int) -> Sizes:
    """How many documents the groups have."""
    size = np.bincount(group_of)
    return Sizes(
        len(size), int(size.min()), float(size.mean()), int(size.max()), int((size > max_size).sum()), int((size == 1).sum())
    )


def modularity(
    neighbours: Neighbours,
    group_of: NDArray[np.int32],
    resolution: float = 1.0,
    similarities: Similarities | None = None,
) -> float:
    """Newman 2004: edge weight inside groups / m - resolution * sum of (group's degree / 2m)^2; 0.0 without edges."""
    edges = union(neighbours, similarities)
    low, high = group_of[edges.pairs].T
    weights = np.ones(len(low)) if edges.weights is None else edges.weights
    total = weights.sum()
    if total == 0:
        return 0.0
    degree = np.bincount(group_of, _strength(len(group_of), edges))
    return float(weights[low == high].sum() / total - resolution * np.square(degree / (2 * total)).sum())


def _blocks(neighbours: Neighbours) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """(first row, targets [n, k], sources [n, 1]) of ROWS rows at a time, checked."""
    for start in range(0, len(neighbours), ROWS):
        target = neighbours[start : start + ROWS].astype(np.int64)
        if target.size and (target.max() >= len(neighbours) or target.min() < -1):
            row = start + int(np.flatnonzero(((target >= len(neighbours)) | (target < -1)).any(axis=1))[0])
            raise ValueError(
                f"neighbours of row {row} are {neighbours[row].tolist()}: expected rows of the corpus, "
                f"0..{len(neighbours) - 1}, or -1 for none; build the graph from this corpus"
            )
        yield start, target, np.arange(start, start + len(target))[:, None]


def _distinct(keys: NDArray[np.int64], weights: NDArray[np.float64] | None) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Sorted distinct keys; of equal keys' weights the largest."""
    if weights is None:
        keys.sort()
    else:
        order = np.argsort(keys)
        keys, weights = keys[order], weights[order]
    new = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    if weights is not None and len(keys):
        weights = np.maximum.reduceat(weights, np.flatnonzero(new))
    return keys[new], weights


def _inside(neighbours: Neighbours, rows: NDArray[np.int32], similarities: Similarities | None) -> Edges:
    """Edges among `rows`, by position in `rows`."""
    target = neighbours[rows]
    at = np.minimum(np.searchsorted(rows, target), len(rows) - 1).astype(np.int32)
    inside = (target >= 0) & (rows[at] == target)
    return union(np.where(inside, at, -1).astype(np.int32), None if similarities is None else similarities[rows])


def _split(open_: NDArray[np.bool_], group: Labels, edges: Edges, how: Leiden, generator: random.Random) -> NDArray[np.int64]:
    """Labels of the rows that are `open_`: Leiden inside each of their groups, all in one call.

    Modularity inside a subgraph c with edge weight m_c is CPM with node weights k_i / sqrt(2 m_c): both gain
    w_ij - resolution * k_i * k_j / (2 m_c) by joining i and j. Groups share no edge, so none joins another.
    """
    low, high = edges.pairs.T
    kept = open_[low] & (group[low] == group[high])
    position = np.cumsum(open_) - 1
    inner = Edges(position[edges.pairs[kept]], None if edges.weights is None else edges.weights[kept], 0, 0)
    strength = _strength(int(open_.sum()), inner)
    own = group[open_]
    doubled = np.bincount(own, strength)[own]  # 2 m_c; 0 in a group without edges
    node_weights = strength / np.sqrt(np.where(doubled > 0, doubled, 1.0))
    graph = igraph.Graph(len(own), inner.pairs)
    with _igraph_random(generator):
        found = graph.community_leiden(
            "CPM",
            weights=None if inner.weights is None else inner.weights.tolist(),
            node_weights=node_weights.tolist(),
            resolution=how.resolution,
            beta=how.randomness,
            n_iterations=how.iterations,
        )
    return np.array(found.membership, np.int64)


def _strength(nodes: int, edges: Edges) -> NDArray[np.float64]:
    """Weighted degree of every node."""
    weights = None if edges.weights is None else np.repeat(edges.weights, 2)
    return np.bincount(edges.pairs.ravel(), weights, minlength=nodes).astype(np.float64)


@contextmanager
def _igraph_random(generator: random.Random) -> Iterator[None]:
    """Let igraph draw from `generator`, one thread at a time; afterwards from its default again, Python's `random`."""
    with _IGRAPH_RANDOM:
        igraph.set_random_number_generator(generator)
        try:
            yield
        finally:
            igraph.set_random_number_generator(random)
