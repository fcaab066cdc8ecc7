"""Sort the vectors into inverted lists, in which approximate search looks: lists of documents near each of many centroids.

Reads: embeddings. Writes: lists.   python -m jobs.build_lists corpus=scifact lists.number=100
Cost: k-means in one task; each document with its nearest centroids; one more copy of the vectors. The last two are resumed by
blocks of cluster.knn.block_rows documents, or 65,536 where documents get their lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import ray

from actors.algorithms import inverted_lists
from actors.artifacts import lists as list_files
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.store import Address
from conf import schema
from conf.load import BadConfig
from jobs import building, session
from jobs.batch import run_tasks

ASSIGN_CHUNKS = 16  # chunks of a task at least: it first finds coarse cells over all centroids


def run(settings: schema.Settings) -> Address:
    """Build the lists artifact."""
    documents, dimension = (building.count_of(settings, "embeddings", name) for name in ("documents", "dimension"))
    if settings.lists.number > documents > 0:
        expected = f"at most as many as there are documents: {documents}"
        raise BadConfig("lists.number", settings.lists.number, expected, "Lower it, or let 0 choose.")
    vectors = 2 * documents * dimension  # bytes
    sample = 4 * min(documents, settings.lists.training_documents) * dimension  # float16, and float32 of the coarse level
    needs = {"disk": (2 * vectors + 16 * documents) / 2**20, "memory": sample / 2**20}
    return building.build(settings, "lists", make, needs=needs)


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    source, documents, tasks = inputs["embeddings"], len(open_vectors(inputs["embeddings"])), settings.cluster.knn
    task = ray.remote(num_cpus=tasks.num_cpus)
    if list_files.missing_centroids(folder):
        waiting = [task(train).remote(source, folder, settings.lists)]
        run_tasks(waiting, ("lists, centroids", documents, "documents"))
    chunks = max(ASSIGN_CHUNKS, -(-tasks.block_rows // inverted_lists.CHUNK))
    step = chunks * inverted_lists.CHUNK
    for name, spans, work in (
        ("assignment", list_files.missing_assignments(folder, documents, step), assign),
        ("copy", list_files.missing_vectors(folder, documents, tasks.block_rows), copy),
    ):
        waiting = [task(work).remote(source, folder, first, last) for first, last in spans]
        done = documents - sum(last - first for first, last in spans)
        run_tasks(waiting, (f"lists, {name}", documents, "documents"), done)
        if work is assign:
            ray.get(task(order).remote(folder, documents))
    ray.get(task(list_files.join).remote(folder, documents))
    sizes = np.diff(list_files.open_lists(folder).offsets)
    counts = {"lists": len(sizes), "empty": int((sizes == 0).sum()), "mean": documents / len(sizes), "largest": int(sizes.max())}
    return {"documents": documents, **counts}


def train(embeddings: Path, folder: Path, node: schema.Lists) -> int:
    """The centroids; returns the number of documents."""
    vectors = open_vectors(embeddings)
    how = inverted_lists.How(node.number, node.iterations, node.training_documents, node.seed)
    list_files.write_centroids(folder, inverted_lists.centroids(vectors, how))
    return len(vectors)


def assign(embeddings: Path, folder: Path, first: int, last: int) -> int:
    """The lists of rows first..last; returns the number of rows."""
    vectors, centroids = open_vectors(embeddings), list_files.unfinished_centroids(folder)
    list_files.write_assignment(folder, first, inverted_lists.assign(vectors, centroids, first, last))
    return last - first


def order(folder: Path, documents: int) -> None:
    """The rows in the order of their lists."""
    list_files.order(folder, documents)


def copy(embeddings: Path, folder: Path, first: int, last: int) -> int:
    """The vectors of positions first..last; returns their number."""
    rows = list_files.unfinished_rows(folder)[first:last]
    list_files.write_vectors(folder, first, open_vectors(embeddings)[rows])
    return last - first


main = session.job(run)

if __name__ == "__main__":
    main()
