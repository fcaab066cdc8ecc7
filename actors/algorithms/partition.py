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

from actors.algorithms.edges import Edges, Neighbours, Similarities, blocks, strength, union

Labels = NDArray[np.int32]

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


def level0(neighbours: Neighbours, how: Leiden, similarities: Similarities | None = None) -> Level0:
    """Leiden on the whole graph; `similarities` given: weighted by them, else all edges weigh 1."""
    edges = union(neighbours, similarities)
    counts = len(edges.pairs), edges.self_loops, edges.not_positive
    degree, weights = strength(len(neighbours), edges), edges.weights
    graph = _graph(len(neighbours), edges)
    del edges  # igraph has its own
    labels = _communities(graph, np.zeros(len(neighbours), np.int32), degree, weights, how, random.Random(how.seed))
    return Level0(by_first_row(labels), counts[0], int((degree == 0).sum()), *counts[1:])


def batches(neighbours: Neighbours, labels: Labels, max_size: int, nodes_per_batch: int = 25_000) -> list[NDArray[np.int32]]:
    """The rows of all groups larger than `max_size`, in sets of about equal work: most edges first, whole groups only.

    A set has about `nodes_per_batch` rows, ascending; more where one group has more. That number changes the
    result as a seed does, since the groups of a set share one random sequence; the number of workers does not.
    """
    size = np.bincount(labels)
    work = np.zeros(len(size), np.int64)
    for start, target, _ in blocks(neighbours):
        own = labels[start : start + len(target), None]
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


def _inside(neighbours: Neighbours, rows: NDArray[np.int32], similarities: Similarities | None) -> Edges:
    """Edges among `rows`, by position in `rows`."""
    target = neighbours[rows]
    at = np.minimum(np.searchsorted(rows, target), len(rows) - 1).astype(np.int32)
    inside = (target >= 0) & (rows[at] == target)
    return union(np.where(inside, at, -1).astype(np.int32), None if similarities is None else similarities[rows])


def _split(open_: NDArray[np.bool_], group: Labels, edges: Edges, how: Leiden, generator: random.Random) -> NDArray[np.int64]:
    """Labels of the rows that are `open_`: Leiden inside each of their groups, all in one call."""
    low, high = edges.pairs.T
    kept = open_[low] & (group[low] == group[high])
    position = np.cumsum(open_, dtype=np.int32) - 1
    inner = Edges(position[edges.pairs[kept]], None if edges.weights is None else edges.weights[kept], 0, 0)
    own = group[open_]
    graph = _graph(len(own), inner)
    return _communities(graph, own, strength(len(own), inner), inner.weights, how, generator)


def _graph(nodes: int, edges: Edges) -> igraph.Graph:
    """igraph makes a list of lists of an array, 140 bytes an edge and most of the time; of an iterator it takes pair by pair."""
    low, high = edges.pairs.T
    return igraph.Graph(nodes, zip(memoryview(low), memoryview(high), strict=True))


def _communities(
    graph: igraph.Graph,
    own: Labels,
    degree: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    how: Leiden,
    generator: random.Random,
) -> NDArray[np.int64]:
    """Labels of a graph's nodes [n] whose groups so far are `own` [n], `degree` [n] being weighted: Leiden inside each group.

    Modularity inside a subgraph c with edge weight m_c is CPM with node weights k_i / sqrt(2 m_c): both gain
    w_ij - resolution * k_i * k_j / (2 m_c) by joining i and j. Groups share no edge, so none joins another.
    """
    doubled = np.bincount(own, degree)  # 2 m_c; 0 in a group without edges
    node_weights = degree / np.sqrt(np.where(doubled > 0, doubled, 1.0))[own]
    with _igraph_random(generator):
        found = graph.community_leiden(
            "CPM",
            weights=None if weights is None else memoryview(weights),  # type: ignore[arg-type]
            node_weights=memoryview(node_weights),  # type: ignore[arg-type]
            resolution=how.resolution,
            beta=how.randomness,
            n_iterations=how.iterations,
        )
    return np.array(found.membership, np.int64)


@contextmanager
def _igraph_random(generator: random.Random) -> Iterator[None]:
    """Let igraph draw from `generator`, one thread at a time; afterwards from its default again, Python's `random`."""
    with _IGRAPH_RANDOM:
        igraph.set_random_number_generator(generator)
        try:
            yield
        finally:
            igraph.set_random_number_generator(random)
