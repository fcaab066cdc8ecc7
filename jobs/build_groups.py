"""Partition the graph into groups by Leiden.

Reads: graph. Writes: groups.   python -m jobs.build_groups corpus=scifact groups.max_size=40
Cost: level 0 in one task (about 2 KB of memory per document), then batches of its communities, each a task; both are resumed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import ray

from actors.algorithms import partition
from actors.artifacts import groups as group_files
from actors.artifacts.blocks import blocks_of, save_block
from actors.artifacts.graph import open_graph
from actors.artifacts.store import Address
from conf import schema
from jobs import building, session
from jobs.batch import run_tasks
from jobs.console import say, table

BYTES_PER_EDGE = 130  # of a directed edge at level 0: 4.6 million documents of 16 neighbours took 8.9 GB


def run(settings: schema.Settings) -> Address:
    """Build the groups artifact and show the sizes of its groups."""
    edges = building.count_of(settings, "graph", "edges")
    needs = {"memory": edges * BYTES_PER_EDGE / 2**20, "disk": 30 * edges / settings.graph.k / 2**20}
    address = building.build(settings, "groups", make, needs=needs)
    if address.built and not settings.plan:
        counts = building.counts(address)
        head = ("groups", "smallest", "mean", "largest", f"over {settings.groups.max_size}", "alone", "modularity")
        names = ("groups", "minimum", "mean", "maximum", "over_max_size", "singletons", "modularity")
        say(table(head, [[counts[name] for name in names]]))
    return address


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    how = partition.Leiden(**{k: v for k, v in schema.identity(settings.groups).items() if k != "method"})
    parts, cpus = folder / "parts", settings.cluster.partition_cpus
    if 0 not in blocks_of(parts, "level0"):
        documents = len(open_graph(inputs["graph"]).neighbours)
        run_tasks(
            [ray.remote(num_cpus=cpus)(level0).remote(inputs["graph"], how, parts)], ("groups, level 0", documents, "documents")
        )
    labels = np.load(blocks_of(parts, "level0")[0])
    neighbours = open_graph(inputs["graph"]).neighbours
    batches = partition.batches(neighbours, labels, how.max_size)
    done = blocks_of(parts, "refined")
    task = ray.remote(num_cpus=cpus)(refine)
    waiting = [task.remote(inputs["graph"], how, parts, n, rows) for n, rows in enumerate(batches) if n not in done]
    told = ("groups, recursion", sum(map(len, batches)), "documents")
    run_tasks(waiting, told, sum(len(batches[n]) for n in done))
    refined = ((batches[n], np.load(path)) for n, path in blocks_of(parts, "refined").items())
    group_of = partition.combine(labels, refined)
    group_files.write(folder, group_of)
    shutil.rmtree(parts)
    sizes = partition.sizes(group_of, how.max_size)
    return {**sizes._asdict(), "modularity": partition.modularity(neighbours, group_of)}


def level0(graph: Path, how: partition.Leiden, parts: Path) -> int:
    """Leiden on the whole graph, in one place."""
    found = partition.level0(open_graph(graph).neighbours, how)
    save_block(parts, "level0", 0, found.labels)
    return len(found.labels)


def refine(graph: Path, how: partition.Leiden, parts: Path, number: int, rows: np.ndarray) -> int:
    """Split the communities of one batch; its number, not its worker, is what the result depends on."""
    labels = np.load(blocks_of(parts, "level0")[0])[rows]
    save_block(parts, "refined", number, partition.refine(open_graph(graph).neighbours, rows, labels, how))
    return len(rows)


main = session.job(run)

if __name__ == "__main__":
    main()
