"""The approximate graph as tasks over memory-mapped arrays: a join of inverted lists, passes of refinement until the recall of a
sample is high enough, and the exact ranking of what was found.

The lists are cut into groups that depend on them alone; a task takes whole groups, and its block on disk is their positions.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray

from actors import graph_tasks
from actors.algorithms.inverted_lists import groups
from actors.artifacts.candidates import Arrays, Candidates, Spans, Step
from actors.artifacts.lists import open_lists
from conf import schema
from conf.load import BadConfig
from jobs.batch import run_tasks
from jobs.console import say

SAMPLE_ROWS = 500  # sampled documents that one task compares with all; at d=384 faiss multiplies matrices for so many, not for 250


class Making:
    """One draft of an approximate graph. lists: folder of the inverted lists of `embeddings`."""

    def __init__(self, settings: schema.Settings, embeddings: Path, lists: Path, folder: Path) -> None:
        assert isinstance(settings.graph, schema.ApproximateGraph)
        self._node, self._tasks = settings.graph, settings.cluster.knn
        self._embeddings, self._lists, self._folder = embeddings, lists, folder
        self._files = Candidates(folder)
        offsets = open_lists(lists).offsets
        self._documents, self._sampled = int(offsets[-1]), min(self._node.sample, int(offsets[-1]))
        self._list_at = {int(offsets[number]): number for number in groups(offsets).tolist()}  # first position -> list

    def candidates(self) -> Step:
        """Make candidates until they are good enough. Returns the last step. Raises BadConfig when the attempts are used up."""
        node, files = self._node, self._files
        if next_step(node, files.steps()):  # else all of it is there, or perhaps no longer needed
            self._by_lists("equal vectors", graph_tasks.equals, files.equals)
            self._alone(graph_tasks.places, files.places, self._documents, self._lists, self._folder)
            self._true_neighbours()
        while step := next_step(node, files.steps()):
            step = replace(step, recall=self._made(step))
            files.add(step)
            what = f"pass {step.passes}" if step.passes else f"{step.probes} lists a document"
            say(f"  graph, {what}: recall@{node.k} {step.recall:.4f} of {self._sampled:,} documents")
        return files.steps()[-1]

    def rank(self, spans: Spans, step: Step) -> None:
        """Write the blocks of the graph itself."""
        calls = [(self._lists, self._folder, step, self._node.k, *span) for span in spans]
        self._run("ranking", graph_tasks.rank, calls, spans, self._documents)

    def _true_neighbours(self) -> None:
        arrays, total = self._files.sample, self._sampled
        spans = split(arrays.missing(total), [*range(0, total, SAMPLE_ROWS), total], SAMPLE_ROWS)
        threads = max(1, round(self._tasks.num_cpus))
        calls = [(self._embeddings, self._folder, self._node, threads, *span) for span in spans]
        self._run("exact neighbours of a sample", graph_tasks.exact, calls, spans, total)
        self._join(arrays, total)

    def _made(self, step: Step) -> float:
        """Do one join or one pass. Returns its recall."""
        files, node = self._files, self._node
        near = files.near(step.probes, step.passes)
        if step.passes:
            before, back = replace(step, passes=step.passes - 1), files.backward(step.probes, step.passes)
            self._alone(graph_tasks.backward, back, self._documents, self._folder, before, node.hubs)
            self._by_lists(f"pass {step.passes}", graph_tasks.refine, near, before)
        else:
            self._by_lists(f"join of {step.probes} lists", graph_tasks.join, near, step.probes, node.k + node.spare)
        task = self._remote(graph_tasks.recall)
        return ray.get(task.remote(self._embeddings, self._lists, self._folder, node, step))

    def _by_lists(self, what: str, work: Callable[..., int], arrays: Arrays, *more: Any) -> None:
        """Make what is missing of arrays by position, group of lists by group of lists."""
        spans = split(arrays.missing(self._documents), sorted(self._list_at), self._tasks.block_rows)
        calls = [(self._lists, self._folder, self._list_at[first], self._list_at[last], *more) for first, last in spans]
        self._run(what, work, calls, spans, self._documents)
        self._join(arrays, self._documents)

    def _alone(self, work: Callable[..., int], arrays: Arrays, rows: int, *arguments: Any) -> None:
        """Make an array in one task."""
        if arrays.missing(rows):
            ray.get(self._remote(work).remote(*arguments))
        self._join(arrays, rows)

    def _join(self, arrays: Arrays, rows: int) -> None:
        ray.get(self._remote(Arrays.join).remote(arrays, rows))

    def _run(self, what: str, work: Callable[..., int], calls: Sequence[tuple[Any, ...]], spans: Spans, total: int) -> None:
        task, done = self._remote(work), total - sum(last - first for first, last in spans)
        run_tasks([task.remote(*call) for call in calls], (f"graph, {what}", total, "documents"), done)

    def _remote(self, work: Callable[..., Any]) -> Any:
        return ray.remote(num_cpus=self._tasks.num_cpus)(work)


def next_step(node: schema.ApproximateGraph, steps: Sequence[Step]) -> Step | None:
    """What to do after these steps; None when they are good enough. Raises BadConfig when the attempts are used up.

    A join with `passes` passes is an attempt; so is every further pass, made where the last one brought as much as is missing:
    a pass brings about half of what the one before it did, so all that follow bring about as much as the last. Elsewhere a join
    with twice the probes follows.
    """
    if not steps:
        return Step(node.probes, 0, 0.0)
    last = steps[-1]
    if last.passes < node.passes:
        return replace(last, passes=last.passes + 1)
    missing = node.minimum_recall - last.recall
    if missing <= 0:
        return None
    if sum(step.passes >= node.passes for step in steps) >= node.attempts:
        found = f"{last.recall:.4f} was reached, with {last.probes} probes and {last.passes} passes"
        expected = f"a recall@{node.k} that graph.attempts={node.attempts} reach; {found}"
        remedy = "Raise graph.probes, graph.hubs or graph.attempts, lower graph.minimum_recall, or choose graph=exact."
        raise BadConfig("graph.minimum_recall", node.minimum_recall, expected, remedy)
    if last.passes and last.recall - steps[-2].recall >= missing:
        return replace(last, passes=last.passes + 1)
    return Step(2 * last.probes, 0, 0.0)


def split(gaps: Spans, bounds: Sequence[int], step: int) -> Spans:
    """The gaps cut at some of the ascending `bounds`, into spans of at least `step` where they are that long."""
    spans = []
    for first, end in gaps:
        while first < end:
            last = min(end, bounds[min(bisect.bisect_left(bounds, first + step), len(bounds) - 1)])
            spans.append((first, last))
            first = last
    return spans
