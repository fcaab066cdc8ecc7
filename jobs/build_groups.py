"""Partition the documents into groups: the graph by Leiden, or, to compare with it, the vectors by k-means, or at random.

Reads: graph; kmeans and random: also the Leiden groups they are like, which are built first; kmeans: also embeddings.
Writes: groups.   python -m jobs.build_groups corpus=scifact groups.max_size=40   (groups=kmeans groups.like.max_size=40)
Cost: leiden: level 0 in one task (about 2 KB of memory per document), then batches of its communities, each a task; both are
resumed. kmeans: one task; a pass multiplies every centre with every document that they are trained on. random: none.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import ray

from actors.algorithms import partition, regroup
from actors.artifacts import groups as group_files
from actors.artifacts.blocks import blocks_of, save_block
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.graph import open_graph
from actors.artifacts.groups import open_groups
from actors.artifacts.store import Address
from conf import schema
from jobs import building, session
from jobs.batch import run_tasks
from jobs.console import say, table

Made = tuple[np.ndarray, dict[str, int]]  # the group of every document, and what is counted beside its sizes
BYTES_PER_EDGE = 130  # of a directed edge at level 0: 4.6 million documents of 16 neighbours took 8.9 GB


def run(settings: schema.Settings) -> Address:
    """Build the groups artifact, before it the Leiden groups it is like, and show the sizes of its groups."""
    like = _leiden(settings.groups)
    if like is not settings.groups:
        run(replace(settings, groups=like))
    tasks = not isinstance(settings.groups, schema.RandomGroups)
    address = building.build(settings, "groups", make, ray=tasks, needs=_needs(settings))
    if address.built and not settings.plan:
        counts = building.counts(address)
        head = ("groups", "smallest", "mean", "largest", f"over {like.max_size}", "alone", "modularity")
        names = ("groups", "minimum", "mean", "maximum", "over_max_size", "singletons", "modularity")
        say(table(head, [[counts[name] for name in names]]))
    return address


def _leiden(node: schema.Groups) -> schema.Leiden:
    return node if isinstance(node, schema.Leiden) else node.like


def _needs(settings: schema.Settings) -> dict[str, float]:
    node, edges = settings.groups, building.count_of(settings, "graph", "edges")
    memory = edges * BYTES_PER_EDGE
    if isinstance(node, schema.KMeansGroups):
        documents, d = (building.count_of(settings, "embeddings", name) for name in ("documents", "dimension"))
        memory += 6 * min(documents, node.training_documents) * d  # as float16 and as float32
    return {"memory": memory / 2**20, "disk": 30 * edges / settings.graph.k / 2**20}


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    node, cpus = settings.groups, settings.cluster.partition_cpus
    match node:
        case schema.Leiden():
            group_of, more = by_leiden(node, inputs["graph"], folder / "parts", cpus)
        case schema.KMeansGroups():
            group_of, more = by_kmeans(node, inputs["groups"], inputs["embeddings"], cpus)
        case schema.RandomGroups():
            group_of, more = regroup.at_random(open_groups(inputs["groups"]).group_of, node.seed), {}
    group_files.write(folder, group_of)
    shutil.rmtree(folder / "parts", ignore_errors=True)
    sizes = partition.sizes(group_of, _leiden(node).max_size)
    modularity = partition.modularity(open_graph(inputs["graph"]).neighbours, group_of)  # edges weigh the same, whatever the method
    return {**sizes._asdict(), "modularity": modularity, **more}


def by_kmeans(node: schema.KMeansGroups, like: Path, embeddings: Path, cpus: float) -> Made:
    """One task for the whole corpus."""
    groups = open_groups(like).count
    group_of = ray.get(ray.remote(num_cpus=cpus)(kmeans).remote(embeddings, groups, node))
    return group_of, {"empty": groups - 1 - int(group_of.max())}


def kmeans(embeddings: Path, groups: int, node: schema.KMeansGroups) -> np.ndarray:
    how = regroup.KMeans(node.iterations, node.training_documents, node.seed)
    return regroup.by_kmeans(open_vectors(embeddings), groups, how)


def by_leiden(node: schema.Leiden, graph: Path, parts: Path, cpus: float) -> Made:
    """Level 0, then batches of its communities."""
    neighbours, similarities = edges_of(graph, node)
    if 0 not in blocks_of(parts, "level0"):
        told = ("groups, level 0", len(neighbours), "documents")
        run_tasks([ray.remote(num_cpus=cpus)(level0).remote(graph, node, parts)], told)
    labels = np.load(blocks_of(parts, "level0")[0])
    batches = partition.batches(neighbours, labels, node.max_size)
    done = blocks_of(parts, "refined")
    task = ray.remote(num_cpus=cpus)(refine)
    waiting = [task.remote(graph, node, parts, n, rows) for n, rows in enumerate(batches) if n not in done]
    told = ("groups, recursion", sum(map(len, batches)), "documents")
    run_tasks(waiting, told, sum(len(batches[n]) for n in done))
    refined = ((batches[n], np.load(path)) for n, path in blocks_of(parts, "refined").items())
    weightless = 0 if similarities is None else partition.union(neighbours, similarities).not_positive
    return partition.combine(labels, refined), {"not_positive": weightless}


def edges_of(graph: Path, node: schema.Leiden) -> tuple[partition.Neighbours, partition.Similarities | None]:
    """The graph as Leiden is to see it: without similarities all edges weigh the same."""
    neighbours, similarities = open_graph(graph)
    return neighbours, similarities if node.weights == "similarity" else None


def how_of(node: schema.Leiden) -> partition.Leiden:
    return partition.Leiden(node.max_size, node.resolution, node.randomness, node.iterations, node.seed)


def level0(graph: Path, node: schema.Leiden, parts: Path) -> int:
    """Leiden on the whole graph, in one place."""
    neighbours, similarities = edges_of(graph, node)
    found = partition.level0(neighbours, how_of(node), similarities)
    save_block(parts, "level0", 0, found.labels)
    return len(found.labels)


def refine(graph: Path, node: schema.Leiden, parts: Path, number: int, rows: np.ndarray) -> int:
    """Split the communities of one batch; its number, not its worker, is what the result depends on."""
    neighbours, similarities = edges_of(graph, node)
    labels = np.load(blocks_of(parts, "level0")[0])[rows]
    save_block(parts, "refined", number, partition.refine(neighbours, rows, labels, how_of(node), similarities))
    return len(rows)


main = session.job(run)

if __name__ == "__main__":
    main()
