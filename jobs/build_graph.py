"""Connect every document with its nearest neighbours.

Reads: embeddings. Writes: graph.   python -m jobs.build_graph corpus=scifact graph.k=32
Cost: exact, N*N*d multiplications; resumed by blocks of cluster.knn.block_rows documents.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import ray

from actors.algorithms import knn
from actors.artifacts import graph as graph_files
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.store import Address
from conf import schema
from conf.load import BadConfig
from jobs import building, session
from jobs.batch import run_tasks


def run(settings: schema.Settings) -> Address:
    """Build the graph artifact."""
    check_faiss()
    documents = building.count_of(settings, "embeddings", "documents")
    return building.build(settings, "graph", make, needs={"disk": 2 * documents * settings.graph.k * 6 / 2**20})


def check_faiss() -> None:
    """The two builds of faiss install the same module: with both, the one that came last wins without a word."""
    found = []
    for name in ("faiss-cpu", "faiss-gpu"):
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    if len(found) != 1:
        remedy = "pip install -e '.[cpu]' or, on a GPU machine, '.[gpu]'; remove the other with pip uninstall."
        raise BadConfig("installation", ", ".join(found) or "no faiss", "exactly one of faiss-cpu and faiss-gpu", remedy)


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    documents, k = len(open_vectors(inputs["embeddings"])), settings.graph.k
    tasks = settings.cluster.knn
    spans = graph_files.missing_blocks(folder, documents, tasks.block_rows)
    task = ray.remote(num_cpus=tasks.num_cpus)(block)
    threads = max(1, round(tasks.num_cpus))
    waiting = [task.remote(inputs["embeddings"], folder, first, last, k, threads) for first, last in spans]
    run_tasks(waiting, ("graph", documents, "documents"), documents - sum(last - first for first, last in spans))
    graph_files.join(folder, documents, k)
    graph = graph_files.open_graph(folder)
    return {"documents": documents, "k": k, "edges": int((graph.neighbours >= 0).sum())}


def block(embeddings: Path, folder: Path, first: int, last: int, k: int, threads: int) -> int:
    """The neighbours of rows first..last, written to disk; returns the number of rows."""
    neighbours, similarities = knn.nearest(open_vectors(embeddings), first, last, k, threads=threads)
    graph_files.write_block(folder, first, neighbours, similarities)
    return last - first


main = session.job(run)

if __name__ == "__main__":
    main()
