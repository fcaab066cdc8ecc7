"""How far documents lie from each other on the corpus graph and on the graph of its groups, in hops (section 6.3, C.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

UNREACHABLE = -1
ROWS = 1 << 16  # frontier nodes expanded together: bounds the temporary of their neighbours


@dataclass(frozen=True)
class HopGraph:
    """Built once, walked by every query. A hop follows an arc of any of the matrices.

    arcs: boolean [n, n], a row holds what its node points to. node_of [N]: the node of each document.
    """

    arcs: tuple[csr_array, ...]
    node_of: NDArray[np.int32]

    def nodes(self, docs: Collection[int]) -> NDArray[np.int32]:
        """The nodes of documents. Raises ValueError on a row that the graph does not have."""
        rows = np.fromiter(docs, np.int64, len(docs))
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self.node_of)):
            wrong = rows[(rows < 0) | (rows >= len(self.node_of))][0]
            raise ValueError(f"document {wrong}: expected a row of the graph, 0..{len(self.node_of) - 1}; take both from one index")
        return self.node_of[rows]


def document_graph(neighbours: NDArray[np.int32], directed: bool = False) -> HopGraph:
    """The corpus graph of a neighbour array [N, k], -1 for none; walked both ways unless `directed`. Its nodes are the documents.

    Holds 10 bytes per entry of the array (5 if directed). Raises ValueError on a row beyond N.
    """
    return HopGraph(_both_ways(_arcs(neighbours), directed), np.arange(len(neighbours), dtype=np.int32))


def group_graph(neighbours: NDArray[np.int32], group_of: NDArray[np.int32], directed: bool = False) -> HopGraph:
    """Groups as nodes: an arc from the group of each document to the groups of its neighbours; walked both ways unless `directed`.

    group_of: [N]. Appendix C.1 calls these edges directed. Raises ValueError on a row beyond N.
    """
    if len(group_of) != len(neighbours):
        raise ValueError(f"group_of has {len(group_of)} documents, the graph {len(neighbours)}: take both from one index")
    arcs, groups = _arcs(neighbours), int(group_of.max(initial=-1)) + 1
    documents = np.arange(len(group_of), dtype=np.int32)
    members = csr_array((np.ones(len(group_of), np.bool_), (group_of, documents)), shape=(groups, len(group_of)))
    to_groups = csr_array((arcs.data, group_of[arcs.indices], arcs.indptr), shape=(len(group_of), groups))
    return HopGraph(_both_ways(members @ to_groups, directed), np.asarray(group_of))


def hops(graph: HopGraph, seeds: Collection[int], targets: Collection[int], max_hops: int | None = None) -> NDArray[np.int32]:
    """int32 [targets]: hops from the nearest of the seed documents to each target; 0 at a seed (on groups: in a seed's group).

    UNREACHABLE without a path of at most `max_hops`, and without seeds. Walks only until all targets are reached.
    """
    wanted = graph.nodes(targets)
    distance = np.full(len(wanted), UNREACHABLE, np.int32)
    for hop, reached in _walk(graph, seeds, max_hops):
        distance[reached[wanted] & (distance == UNREACHABLE)] = hop
        if (distance != UNREACHABLE).all():
            break
    return distance


def nearest_hops(graph: HopGraph, seeds: Collection[int], targets: Collection[int], max_hops: int | None = None) -> int:
    """Hops to the nearest target, the smallest that `hops` gives: walks only until one of them is reached."""
    wanted = graph.nodes(targets)
    return next((hop for hop, reached in _walk(graph, seeds, max_hops) if reached[wanted].any()), UNREACHABLE)


def nearest_missed_gold(
    graph: HopGraph, seeds: Mapping[str, Collection[int]], gold: Mapping[str, Collection[int]], max_hops: int | None = None
) -> dict[str, int]:
    """Figure 9: query_id -> hops from its seeds, the pool's first 20, to the nearest of its gold documents that is no seed.

    A query of which every gold document is a seed is left out; one without seeds, since its pool is empty, is UNREACHABLE.
    """
    first = {query_id: frozenset(seeds.get(query_id, ())) for query_id in gold}
    missed = {query_id: [doc for doc in docs if doc not in first[query_id]] for query_id, docs in gold.items()}
    return {query_id: nearest_hops(graph, first[query_id], docs, max_hops) for query_id, docs in missed.items() if docs}


def _arcs(neighbours: NDArray[np.int32]) -> csr_array:
    documents, entries = len(neighbours), neighbours.size
    if entries and (neighbours.max() >= documents or neighbours.min() < -1):
        row = int(np.flatnonzero(((neighbours >= documents) | (neighbours < -1)).any(axis=1))[0])
        raise ValueError(
            f"neighbours of row {row} are {neighbours[row].tolist()}: expected rows of the corpus, 0..{documents - 1}, "
            "or -1 for none; build the graph from this corpus"
        )
    real = neighbours >= 0
    offsets = np.zeros(documents + 1, np.int32 if entries < 1 << 31 else np.int64)  # scipy widens the rows to the offsets' type
    np.cumsum(np.count_nonzero(real, axis=1), out=offsets[1:])
    return csr_array((np.ones(offsets[-1], np.bool_), neighbours[real], offsets), shape=(documents, documents))


def _both_ways(arcs: csr_array, directed: bool) -> tuple[csr_array, ...]:
    return (arcs,) if directed else (arcs, arcs.T.tocsr())


def _walk(graph: HopGraph, seeds: Collection[int], max_hops: int | None) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Breadth first: (hops, the nodes reached so far, bool [n]), until nothing new is reached. The array is one and the same."""
    reached = np.zeros(graph.arcs[0].shape[0], np.bool_)
    frontier, hop = np.unique(graph.nodes(seeds)), 0
    reached[frontier] = True
    while len(frontier):
        yield hop, reached
        if hop == max_hops:
            return
        frontier, hop = _next(graph, frontier, reached), hop + 1


def _next(graph: HopGraph, frontier: NDArray[np.int32], reached: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The nodes one hop beyond the frontier; marks them as reached."""
    before = reached.copy()
    for start in range(0, len(frontier), ROWS):
        for arcs in graph.arcs:
            reached[arcs[frontier[start : start + ROWS]].indices] = True
    return np.flatnonzero(reached & ~before).astype(np.int32)  # five times faster than sorting the neighbours to find the new ones
