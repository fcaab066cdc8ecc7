"""The tasks of Leiden's groups: level 0 of the whole graph, its batches, their end. What they make for each other is in `parts`.

`level0@0` the labels [N], `rows@0` the rows of all batches, batch after batch, of which batch n begins at `starts@0`[n];
`refined@n` its labels. A task is told a batch's number and reads its rows alone.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import partition
from actors.algorithms.edges import Neighbours, Similarities
from actors.algorithms.partition import Labels
from actors.artifacts.blocks import blocks_of, load_block, save_block
from actors.artifacts.graph import open_graph
from conf import schema


def edges_of(graph: Path, node: schema.Leiden) -> tuple[Neighbours, Similarities | None]:
    """The graph as Leiden is to see it: without similarities all edges weigh the same."""
    neighbours, similarities = open_graph(graph)
    return neighbours, similarities if node.weights == "similarity" else None


def how_of(node: schema.Leiden) -> partition.Leiden:
    """The parameters as the algorithm takes them."""
    return partition.Leiden(node.max_size, node.resolution, node.randomness, node.iterations, node.seed)


def level0(graph: Path, node: schema.Leiden, parts: Path) -> int:
    """Leiden on the whole graph, in one place, and the batches that are left to do. Their starts come last: they are its end."""
    neighbours, similarities = edges_of(graph, node)
    if not all(blocks_of(parts, name) for name in ("level0", "not_positive")):
        found = partition.level0(neighbours, how_of(node), similarities)
        save_block(parts, "level0", 0, found.labels)
        save_block(parts, "not_positive", 0, np.array([found.not_positive]))
    batches = partition.batches(neighbours, load_block(parts, "level0", 0), node.max_size)
    save_block(parts, "rows", 0, np.concatenate([np.empty(0, np.int32), *batches]))
    save_block(parts, "starts", 0, np.cumsum([0, *map(len, batches)]))
    return len(neighbours)


def remove(parts: Path) -> None:
    """Their end goes first: a removal that is killed is no work that is done."""
    for path in blocks_of(parts, "starts").values():
        path.unlink()
    shutil.rmtree(parts, ignore_errors=True)


def refine(graph: Path, node: schema.Leiden, parts: Path, number: int) -> int:
    """Split the communities of one batch; its number, not its worker, is what the result depends on."""
    neighbours, similarities = edges_of(graph, node)
    rows = rows_of(parts, number)
    labels = load_block(parts, "level0", 0)[rows]
    save_block(parts, "refined", number, partition.refine(neighbours, rows, labels, how_of(node), similarities))
    return len(rows)


def rows_of(parts: Path, number: int) -> NDArray[np.int32]:
    """The rows of a batch, memory-mapped."""
    first, last = load_block(parts, "starts", 0)[number : number + 2]
    return load_block(parts, "rows", 0)[first:last]


def joined(parts: Path) -> tuple[Labels, dict[str, int]]:
    """The group of every document when all batches are done, and what is counted beside their sizes."""
    refined = ((rows_of(parts, n), np.load(path)) for n, path in blocks_of(parts, "refined").items())
    group_of = partition.combine(load_block(parts, "level0", 0), refined)
    return group_of, {"not_positive": int(load_block(parts, "not_positive", 0)[0])}
