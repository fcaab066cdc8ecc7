"""Connect every document with its nearest neighbours.

Reads: embeddings; where the graph is approximate also lists, which are built first. Writes: graph.
python -m jobs.build_graph corpus=scifact graph.k=32   (graph=exact, graph=approximate; graph=auto, which the configuration has,
is exact up to graph.exact_up_to documents)
Cost: exact, N*N*d multiplications; resumed by blocks of cluster.knn.block_rows documents. approximate, about N**1.4 * d
multiplications; resumed by such blocks within each of its steps. It says the recall of each and stops below graph.minimum_recall.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import ray

from actors.algorithms import knn
from actors.artifacts import graph as graph_files
from actors.artifacts.candidates import Candidates, Spans
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.store import Address
from conf import schema
from conf.load import BadConfig
from jobs import brought, build_lists, building, session
from jobs.approximate_graph import Making
from jobs.batch import run_tasks
from jobs.stages import Addresses

REMEDY = "pip install -e '.[cpu]' or, on a GPU machine, '.[gpu]'; remove the other with pip uninstall."
EDGE_ROWS = 1 << 18  # rows counted at once
GPU_ROWS = 1 << 18  # documents that a GPU is given at once to compare a block with


def run(settings: schema.Settings) -> Address:
    """Build the graph artifact, before it the inverted lists where it takes them."""
    documents = building.count_of(settings, "embeddings", "documents")
    approximates = is_approximate(settings.graph, documents)
    check_faiss(0.0 if approximates else settings.cluster.knn.num_gpus)
    if approximates and not Addresses(settings)["graph"].built:
        build_lists.run(with_lists(settings))
    return building.build(settings, "graph", make, needs=_needs(settings.graph, documents))


def is_approximate(node: schema.Graph, documents: int) -> bool:
    """Whether the graph of so many documents is approximate: a question of their number, never of the machine."""
    small = isinstance(node, schema.AutoGraph) and documents <= node.exact_up_to
    return isinstance(node, schema.ApproximateGraph) and not small


def with_lists(settings: schema.Settings) -> schema.Settings:
    """The settings with the lists that the graph names."""
    assert isinstance(settings.graph, schema.ApproximateGraph)
    return replace(settings, lists=settings.graph.lists)


def _needs(node: schema.Graph, documents: int) -> dict[str, float]:
    """Foreseen megabytes."""
    disk = 2 * node.k * 6
    memory = 0
    if isinstance(node, schema.ApproximateGraph) and is_approximate(node, documents):
        disk += 3 * (node.k + node.spare) * 8 + 2 * node.probes * 4 + 12 + 2 * node.hubs * 4  # of two steps, one twice
        memory = 4 * (2 * node.hubs + node.k + node.spare)  # to turn edges round
    return {"disk": documents * disk / 2**20, "memory": documents * memory / 2**20}


def check_faiss(gpus: float) -> None:
    """The two builds of faiss install the same module: with both, the one that came last wins without a word."""
    found = []
    for name in ("faiss-cpu", "faiss-gpu"):
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    if len(found) != 1:
        raise BadConfig("installation", ", ".join(found) or "no faiss", "exactly one of faiss-cpu and faiss-gpu", REMEDY)
    if gpus and not found[0].startswith("faiss-gpu"):
        raise BadConfig("cluster.knn.num_gpus", gpus, f"0 with {found[0]}", f"Set it, or {REMEDY}")


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    if isinstance(settings.graph, schema.BroughtGraph):
        return brought.graph(settings.graph, inputs["embeddings"], folder, settings.cluster.knn)
    documents, k = len(open_vectors(inputs["embeddings"])), settings.graph.k
    spans = graph_files.missing_blocks(folder, documents, settings.cluster.knn.block_rows)
    if is_approximate(settings.graph, documents):
        lists = Addresses(with_lists(settings))["lists"].folder
        made = approximate(settings, inputs["embeddings"], lists, folder, spans)
    else:
        made = {"method": "exact"}
        exact(settings, inputs["embeddings"], folder, spans, documents)
    edges = ray.get(ray.remote(num_cpus=settings.cluster.knn.num_cpus)(join).remote(folder, documents, k))
    Candidates(folder).remove()
    return {"documents": documents, "k": k, "edges": edges, **made}


def exact(settings: schema.Settings, embeddings: Path, folder: Path, spans: Spans, documents: int) -> None:
    """Compare every pair, block by block."""
    tasks, k = settings.cluster.knn, settings.graph.k
    task = ray.remote(num_cpus=tasks.num_cpus, num_gpus=tasks.num_gpus or None)(block)
    threads, gpu = max(1, round(tasks.num_cpus)), tasks.num_gpus > 0
    waiting = [task.remote(embeddings, folder, first, last, k, threads, gpu) for first, last in spans]
    run_tasks(waiting, ("graph", documents, "documents"), documents - sum(last - first for first, last in spans))


def approximate(settings: schema.Settings, embeddings: Path, lists: Path, folder: Path, spans: Spans) -> dict[str, Any]:
    """Find candidates and rank them. Returns what the manifest tells of it."""
    making = Making(settings, embeddings, lists, folder)
    last = making.candidates()
    making.rank(spans, last)
    return {"method": "approximate", "recall": last.recall, "probes": last.probes, "passes": last.passes, "lists": lists.name}


def block(embeddings: Path, folder: Path, first: int, last: int, k: int, threads: int, gpu: bool) -> int:
    """The neighbours of rows first..last, written to disk; returns the number of rows."""
    size = {"base_rows": GPU_ROWS} if gpu else {}
    neighbours, similarities = knn.nearest(open_vectors(embeddings), first, last, k, threads=threads, gpu=gpu, **size)
    graph_files.write_block(folder, first, neighbours, similarities)
    return last - first


def join(folder: Path, documents: int, k: int) -> int:
    """Make the graph of its blocks; returns the number of edges."""
    graph_files.join(folder, documents, k)
    neighbours = graph_files.open_graph(folder).neighbours
    return sum(int((neighbours[row : row + EDGE_ROWS] >= 0).sum()) for row in range(0, documents, EDGE_ROWS))


main = session.job(run)

if __name__ == "__main__":
    main()
