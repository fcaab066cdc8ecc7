"""Partition the documents into groups: the graph by Leiden, or, to compare with it, the vectors by k-means, or at random.

Reads: graph; kmeans and random: also the Leiden groups they are like, built first; kmeans: also embeddings; brought: also corpus.
Writes: groups.   python -m jobs.build_groups corpus=scifact groups.max_size=40   (groups=kmeans groups.like.max_size=40)
Cost: leiden: level 0 in one task (about 0.8 KB of memory per document), then batches of its communities, each a task; both are
resumed. kmeans: one task; a pass multiplies every centre with every document that they are trained on. random: none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import ray

from actors.algorithms import edges, partition, regroup
from actors.artifacts import groups as group_files
from actors.artifacts.blocks import blocks_of, load_block
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.graph import open_graph
from actors.artifacts.groups import open_groups
from actors.artifacts.store import Address
from conf import schema
from jobs import brought, building, leiden_parts, session
from jobs.batch import run_tasks
from jobs.console import say, table
from jobs.stages import Addresses

Made = tuple[np.ndarray, dict[str, int]]  # the group of every document, and what is counted beside its sizes
BYTES_PER_EDGE = {"none": 100, "similarity": 112}  # of an undirected one at level 0: 80 with clear communities, more without
BYTES_PER_DOCUMENT = 60  # of the task that joins the batches
BASE = 400 * 2**20  # a task's process, and what is looked at block by block


def run(settings: schema.Settings) -> Address:
    """Build the groups artifact, before it the Leiden groups it is like, and show the sizes of its groups."""
    like = _like(settings.groups)
    if like is not settings.groups:
        run(replace(settings, groups=like))
    address = building.build(settings, "groups", make, needs=_needs(settings))
    if address.built and not settings.plan:
        counts = building.counts(address)
        head = ("groups", "smallest", "mean", "largest", f"over {like.max_size}", "alone", "modularity")
        names = ("groups", "minimum", "mean", "maximum", "over_max_size", "singletons", "modularity")
        say(table(head, [[counts[name] for name in names]]))
    return address


def _like(node: schema.Groups) -> schema.Leiden | schema.BroughtGroups:
    return node.like if isinstance(node, schema.KMeansGroups | schema.RandomGroups) else node


def _needs(settings: schema.Settings) -> dict[str, float]:
    """Foreseen when there is a graph: its undirected edges are counted from a sample of its documents."""
    node, graph = settings.groups, Addresses(settings)["graph"]
    if not graph.built:
        return {}
    neighbours = open_graph(graph.folder).neighbours
    documents = len(neighbours)
    memory = BASE + BYTES_PER_DOCUMENT * documents
    if isinstance(node, schema.Leiden):
        memory = max(memory, BASE + BYTES_PER_EDGE[node.weights] * edges.foreseen(neighbours))
    elif isinstance(node, schema.KMeansGroups):
        d = building.count_of(settings, "embeddings", "dimension")
        memory += 6 * min(documents, node.training_documents) * d  # as float16 and as float32
    return {"memory": memory / 2**20, "disk": 30 * documents / 2**20}


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    """What is as long as the corpus is made in tasks; they return numbers."""
    node, cpus = settings.groups, settings.cluster.partition_cpus
    if isinstance(node, schema.Leiden):
        by_leiden(node, inputs["graph"], folder / "parts", cpus)
    counts: dict[str, Any] = ray.get(ray.remote(num_cpus=cpus)(conclude).remote(node, inputs, folder))
    leiden_parts.remove(folder / "parts")
    return counts


def conclude(node: schema.Groups, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    """Write the groups, and measure them."""
    match node:
        case schema.Leiden():
            group_of, more = leiden_parts.joined(folder / "parts")
        case schema.KMeansGroups():
            group_of, more = kmeans(inputs["embeddings"], open_groups(inputs["groups"]).count, node)
        case schema.RandomGroups():
            group_of, more = regroup.at_random(open_groups(inputs["groups"]).group_of, node.seed), {}
        case schema.BroughtGroups():
            group_of, more = brought.groups(node, inputs["corpus"])
    group_files.write(folder, group_of)
    sizes = partition.sizes(group_of, _like(node).max_size)
    modularity = edges.modularity(open_graph(inputs["graph"]).neighbours, group_of)  # edges weigh the same, whatever the method
    return {**sizes._asdict(), "modularity": modularity, **more}


def kmeans(embeddings: Path, groups: int, node: schema.KMeansGroups) -> Made:
    how = regroup.KMeans(node.iterations, node.training_documents, node.seed)
    group_of = regroup.by_kmeans(open_vectors(embeddings), groups, how)
    return group_of, {"empty": groups - 1 - int(group_of.max())}


def by_leiden(node: schema.Leiden, graph: Path, parts: Path, cpus: float) -> None:
    """Level 0, then batches of its communities."""
    documents = len(open_graph(graph).neighbours)
    if not blocks_of(parts, "starts"):
        whole = ray.remote(num_cpus=cpus)(leiden_parts.level0).remote(graph, node, parts)
        run_tasks([whole], ("groups, level 0", documents, "documents"))
    starts = load_block(parts, "starts", 0)
    done = blocks_of(parts, "refined")
    task = ray.remote(num_cpus=cpus)(leiden_parts.refine)
    waiting = [task.remote(graph, node, parts, n) for n in range(len(starts) - 1) if n not in done]
    sizes = np.diff(starts)
    run_tasks(waiting, ("groups, recursion", int(sizes.sum()), "documents"), int(sizes[list(done)].sum()))


main = session.job(run)

if __name__ == "__main__":
    main()
