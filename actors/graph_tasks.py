"""The tasks of which an approximate graph is made: each opens what it reads memory-mapped and writes its block.

The algorithms are imported where they are used: the job that gives out the tasks need not hold their compiler.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import knn
from actors.artifacts import graph as graph_files
from actors.artifacts.candidates import Candidates, Step
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.lists import open_lists
from conf import schema


def equals(lists: Path, draft: Path, first: int, last: int) -> int:
    """Equal vectors in lists first..last-1; returns the number of positions, as all of these do."""
    from actors.algorithms import list_join

    source = open_lists(lists)
    same = list_join.equals(source.vectors, source.offsets, first, last)
    Candidates(draft).equals.save(int(source.offsets[first]), *same)
    return len(same.leaders)


def places(lists: Path, draft: Path) -> int:
    """The position of every row."""
    rows = open_lists(lists).rows
    found = np.empty(len(rows), np.int32)
    found[rows] = np.arange(len(rows), dtype=np.int32)
    Candidates(draft).places.save(0, found)
    return len(rows)


def exact(embeddings: Path, draft: Path, node: schema.ApproximateGraph, threads: int, first: int, last: int) -> int:
    """The true neighbours of the sampled documents first..last-1."""
    vectors = open_vectors(embeddings)
    found, _ = knn.nearest_of(vectors, sampled(node, len(vectors))[first:last], node.k, threads=threads)
    Candidates(draft).sample.save(first, found)
    return last - first


def sampled(node: schema.ApproximateGraph, documents: int) -> NDArray[np.int64]:
    """The rows by which the recall is measured, ascending."""
    draw = np.random.default_rng(node.seed)
    return np.sort(draw.choice(documents, min(node.sample, documents), replace=False, shuffle=False))


def join(lists: Path, draft: Path, first: int, last: int, probes: int, keep: int) -> int:
    """Candidates of the documents of lists first..last-1, group by group."""
    from actors.algorithms import inverted_lists, list_join

    source, files = open_lists(lists), Candidates(draft)
    (leaders,) = files.equals.open("leaders")
    bounds = inverted_lists.groups(source.offsets)
    bounds = bounds[(bounds >= first) & (bounds <= last)]
    parts = []
    for start, stop in zip(bounds.tolist(), bounds[1:].tolist(), strict=False):
        near, probed = list_join.join(
            source.vectors, source.offsets, source.centroids, leaders, start, stop, probes=probes, keep=keep
        )
        parts.append((probed, *near))
    files.near(probes, 0).save(int(source.offsets[first]), *map(np.concatenate, zip(*parts, strict=True)))
    return int(source.offsets[last] - source.offsets[first])


def backward(draft: Path, before: Step, hubs: int) -> int:
    """Who counts a document among its neighbours, for the pass that follows `before`."""
    from actors.algorithms import refinement

    files = Candidates(draft)
    (positions,) = files.near(before.probes, before.passes).open("positions")
    files.backward(before.probes, before.passes + 1).save(0, refinement.backward(positions, hubs))
    return len(positions)


def refine(lists: Path, draft: Path, first: int, last: int, before: Step) -> int:
    """Candidates of the documents of lists first..last-1 after the pass that follows `before`."""
    from actors.algorithms import list_join, refinement

    source, files, passes = open_lists(lists), Candidates(draft), before.passes + 1
    near = list_join.Near(*files.near(before.probes, before.passes).open("positions", "scores"))
    (back,) = files.backward(before.probes, passes).open("backward")
    (probed,) = files.near(before.probes, 0).open("probed")
    list_of = np.repeat(np.arange(len(source.offsets) - 1, dtype=np.int32), np.diff(source.offsets))
    start, stop = int(source.offsets[first]), int(source.offsets[last])
    better = refinement.refine(source.vectors, near, back, probed, list_of, start, stop)
    files.near(before.probes, passes).save(start, *better)
    return stop - start


def recall(embeddings: Path, lists: Path, draft: Path, node: schema.ApproximateGraph, step: Step) -> float:
    """Of the sample after a step."""
    rows = sampled(node, len(open_vectors(embeddings)))
    found, _ = _ranked(lists, draft, rows, step, node.k)
    return knn.recall(found, Candidates(draft).sample.open("exact")[0])


def rank(lists: Path, draft: Path, step: Step, k: int, first: int, last: int) -> int:
    """The graph's rows first..last-1."""
    graph_files.write_block(draft, first, *_ranked(lists, draft, np.arange(first, last), step, k))
    return last - first


def _ranked(lists: Path, draft: Path, rows: NDArray[np.int64], step: Step, k: int) -> tuple[NDArray[np.int32], NDArray[np.float16]]:
    from actors.algorithms import approximate_knn, list_join

    source, files = open_lists(lists), Candidates(draft)
    same = list_join.Equals(*files.equals.open("leaders", "following"))
    (positions,) = files.near(step.probes, step.passes).open("positions")
    asked = files.places.open("places")[0][rows].astype(np.int64)
    return approximate_knn.rank(source.vectors, source.rows, same, positions, asked, k)
