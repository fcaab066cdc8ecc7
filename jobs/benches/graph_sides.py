"""The sides of bench_graph: each finds the neighbours of the first documents of the embeddings, in a process of its own, and says
what CPU time that took and what share of a sample's neighbours is as near as the true ones.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import inverted_lists, knn
from actors.artifacts.embeddings import open_vectors
from conf import schema

Vectors = NDArray[np.float16]
Rows = NDArray[np.int32]

EXACT_ROWS = 1024  # documents whose neighbours the exact side finds; it is charged for all, as each costs the same
WARM = 600  # documents of a small run beforehand, in which compiled code is loaded
RANK_ROWS = 4096  # documents whose candidates are ranked at once


@dataclass(frozen=True)
class Task:
    """side: ours, NN-descent or exact; rival_k: documents that NN-Descent keeps of each."""

    side: str
    node: schema.ApproximateGraph
    embeddings: Path
    documents: int
    rival_k: int = 0


@dataclass(frozen=True)
class Took:
    """CPU seconds; recall of the sample; MiB of the process at most."""

    seconds: float
    recall: float
    memory: float


def measure(task: Task) -> Took:
    """Run a side, in the only thread that the process is told to use. The sample is compared beside the clock."""
    vectors = open_vectors(task.embeddings)[: task.documents]
    side = SIDES[task.side]
    side(vectors[:WARM], task)
    start = time.process_time()
    found = side(vectors, task)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if task.side == "exact":
        return Took(seconds * len(vectors) / len(found), 1.0, memory)
    draw = np.random.default_rng(task.node.seed)
    rows = np.sort(draw.choice(len(vectors), min(task.node.sample, len(vectors)), replace=False, shuffle=False))
    return Took(seconds, as_near(vectors, rows, found[rows], task.node.k), memory)


def ours(vectors: Vectors, task: Task) -> Rows:
    """The first attempt that build_graph makes, and the lists for it."""
    from actors.algorithms import approximate_knn

    node, lists = task.node, task.node.lists
    how = inverted_lists.How(min(lists.number, len(vectors)), lists.iterations, lists.training_documents, lists.seed)
    return approximate_knn.nearest(vectors, node.k, approximate_knn.How(how, node.probes, node.passes, node.spare, node.hubs))[0]


def nn_descent(vectors: Vectors, task: Task) -> Rows:
    """faiss' NN-Descent (Dong, Moses and Li 2011): the best of its graph's rows, ranked exactly."""
    import faiss

    wide = vectors.astype(np.float32)
    index = faiss.IndexNNDescentFlat(wide.shape[1], task.rival_k, faiss.METRIC_L2)
    index.add(wide)
    graph = faiss.vector_to_array(index.nndescent.final_graph).reshape(len(wide), task.rival_k)
    found = np.empty((len(wide), task.node.k), np.int32)
    for row in range(0, len(wide), RANK_ROWS):
        near = graph[row : row + RANK_ROWS]
        products = np.einsum("nd,nkd->nk", wide[row : row + RANK_ROWS], wide[near])
        best = np.argsort(-products, axis=1)[:, : task.node.k]
        found[row : row + RANK_ROWS] = np.take_along_axis(near, best, axis=1)
    return found


def exact(vectors: Vectors, task: Task) -> Rows:
    """The exact neighbours of the first documents."""
    return knn.nearest(vectors, 0, min(EXACT_ROWS, len(vectors)), task.node.k)[0]


SIDES: dict[str, Callable[[Vectors, Task], Rows]] = {"ours": ours, "NN-Descent": nn_descent, "exact": exact}


def as_near(vectors: Vectors, rows: NDArray[np.int64], found: Rows, k: int) -> float:
    """The share of the neighbours found [n, k] of `rows` [n] that are at least as near as the k-th true one: of equal ones, any
    will do. Raises ValueError when some are no neighbours.
    """
    wide = vectors[rows].astype(np.float64)
    true, _ = knn.nearest_of(vectors, rows, k)
    least = np.einsum("nd,nd->n", wide, vectors[true[:, -1]].astype(np.float64))
    products = np.einsum("nd,nkd->nk", wide, vectors[found].astype(np.float64))
    distinct = np.array([len(set(near.tolist()) - {row, -1}) == k for near, row in zip(found, rows.tolist(), strict=True)])
    if not distinct.all():
        raise ValueError(f"{int((~distinct).sum())} documents have themselves, none, or one document twice as neighbours")
    return float((products >= least[:, None]).mean())
