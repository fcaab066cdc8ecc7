"""The sides of the bench of groups, each in a process of its own: ours, and hierarchical Leiden of graspologic-native.

Both get the same neighbour array and start from it; ours counts its union, the rival the list of edges that it takes.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from actors.algorithms import edges, partition
from actors.algorithms.partition import Labels, Leiden
from actors.artifacts.blocks import open_array


class Took(NamedTuple):
    """CPU seconds, the peak of the process' memory in MiB, and the groups: number, smallest, mean, largest, modularity at level 0
    and of the groups themselves."""

    cpu: float
    peak: float
    groups: int
    minimum: int
    mean: float
    maximum: int
    level0: float
    modularity: float


def ours(neighbours: edges.Neighbours, how: Leiden) -> tuple[Labels, Labels]:
    """Level 0 and the groups, as the stage makes them, one batch after the other."""
    labels = partition.level0(neighbours, how).labels
    batches = partition.batches(neighbours, labels, how.max_size)
    return labels, partition.combine(labels, [(rows, partition.refine(neighbours, rows, labels[rows], how)) for rows in batches])


def graspologic(neighbours: edges.Neighbours, how: Leiden) -> tuple[Labels, Labels]:
    """The same by graspologic-native, by one pass, as it does unasked. Its max_cluster_size is the first size that is too large."""
    import graspologic_native  # type: ignore[import-untyped]

    pairs = edges.union(neighbours).pairs
    names = [str(row) for row in range(len(neighbours))]
    named = [(names[low], names[high], 1.0) for low, high in pairs.tolist()]
    del pairs
    found = graspologic_native.hierarchical_leiden(
        named, resolution=how.resolution, randomness=how.randomness, max_cluster_size=how.max_size + 1, seed=how.seed
    )
    top, final = (-1 - np.arange(len(neighbours)) for _ in range(2))  # it leaves out who has no edge: each is alone
    for one in found:
        if one.level == 0:
            top[int(one.node)] = one.cluster
        if one.is_final_cluster:
            final[int(one.node)] = one.cluster
    return partition.by_first_row(top), partition.by_first_row(final)


SIDES = {"ours": ours, "graspologic_native": graspologic}


def measure(side: str, file: Path, how: Leiden, seconds: float | None) -> Took | None:
    """Group the neighbour array of a file in a fresh process; None when it takes more than `seconds`, if any, on the clock."""
    processes = multiprocessing.get_context("spawn")
    here, there = processes.Pipe(duplex=False)
    child = processes.Process(target=_measured, args=(side, file, how, there))
    child.start()
    there.close()
    try:
        return Took(*here.recv()) if here.poll(seconds) else None
    except EOFError:
        raise RuntimeError(f"{side}: its process ended without an answer; its own message stands above") from None
    finally:
        child.kill()
        child.join()


def _measured(side: str, file: Path, how: Leiden, there: Connection) -> None:
    neighbours = open_array(file)
    edges.union(neighbours[:1000] % 1000)  # imports and first calls
    start = time.process_time()
    top, found = SIDES[side](neighbours, how)
    cpu = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sizes = partition.sizes(found, how.max_size)
    measured = (edges.modularity(neighbours, labels) for labels in (top, found))
    there.send((cpu, peak, sizes.groups, sizes.minimum, sizes.mean, sizes.maximum, *measured))
