"""What an iteration of garen costs as the corpus grows: look-ups alone, on planted graphs, beside the same with dictionaries."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.loops.dialogue import Navigate, Pool
from actors.algorithms.loops.garen import garen
from actors.algorithms.planted import plant
from actors.artifacts.groups import Groups
from conf import schema
from jobs.benches.loop_rival import Dictionaries, Score, rival

Side = Callable[..., tuple[list[int], int]]

QUERIES = 100
POOL = 1000  # documents of a query's pool
ROUNDS = 5


class Graph(NamedTuple):
    """The arrays that a loop reads, as an index has them."""

    neighbours: NDArray[np.int32]
    groups: Groups

    @property
    def group_of(self) -> NDArray[np.int32]:
        return self.groups.group_of

    def members(self, group: int) -> NDArray[np.int32]:
        return self.groups.members(group)


class Cost(NamedTuple):
    """Milliseconds of CPU of one iteration, by round."""

    ours: list[float]
    dictionaries: list[float]

    @property
    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.dictionaries, strict=True)]


def is_the_papers(loop: schema.Loop) -> bool:
    """Whether the rival knows this loop."""
    if not isinstance(loop, schema.GarenLoop):
        return False
    return (loop.eligible, loop.group_score, loop.sources.groups) == ("candidates", "navigator", loop.w - loop.h)


def measure(documents: int, k: int, loop: schema.GarenLoop, seed: int) -> Cost:
    """Both sides in turn, all queries in each round. Raises ValueError when they do not answer alike."""
    planted = plant(documents, k, seed)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(planted.group_of))])
    rows = np.argsort(planted.group_of, kind="stable").astype(np.int32)
    graph = Graph(planted.neighbours, Groups(planted.group_of, offsets, rows))
    draw = np.random.default_rng(seed)
    pools = [pool_of(graph.neighbours, draw) for _ in range(QUERIES)]
    tables: list[list[float]] = [draw.random(count).tolist() for count in (documents, graph.groups.count)]
    scores = [table.__getitem__ for table in tables]
    parameters = {name: given for name, given in asdict(loop).items() if name != "method"}
    dictionaries = Dictionaries.of(graph, graph.groups.count)
    sides: list[Side] = [partial(ours, graph), partial(rival, dictionaries)]
    gc.freeze()  # else the collector walks the dictionaries, in either side's time
    try:
        return _in_turn(sides, pools, scores, parameters)
    except ValueError as error:
        raise ValueError(f"{documents:,} documents: {error}") from None
    finally:
        gc.unfreeze()


def _in_turn(sides: Sequence[Side], pools: Sequence[list[int]], scores: Sequence[Score], parameters: Mapping[str, Any]) -> Cost:
    cost = Cost([], [])
    for turn in range(ROUNDS + 1):
        answers = []
        for side, times in zip(sides, cost, strict=True):
            start = time.process_time()
            found = [side(pool, *scores, parameters) for pool in pools]
            took = 1e3 * (time.process_time() - start) / sum(turns for _, turns in found)
            if turn:  # the first round warms caches
                times.append(took)
            answers.append(found)
        if answers[0] != answers[1]:
            raise ValueError("the loop and its rival do not answer alike: one of them is wrong")
    return cost


def pool_of(neighbours: NDArray[np.int32], draw: np.random.Generator) -> list[int]:
    """A pool as a first stage gives it: half of it from around one document, which tend to stand further up, half from anywhere."""
    near, before = draw.integers(0, len(neighbours), 1), 0
    while before < len(near) < POOL // 2:  # a part of the graph may be smaller
        before, near = len(near), np.unique(np.concatenate([near, neighbours[near].ravel()]))
    near = draw.permutation(near)[: POOL // 2]
    far = np.setdiff1d(draw.integers(0, len(neighbours), POOL // 2), near)
    place = np.concatenate([draw.random(len(near)), 2 * draw.random(len(far))])
    pool: list[int] = np.concatenate([near, far])[np.argsort(place)].tolist()
    return pool


def ours(graph: Graph, pool: list[int], of_document: Score, of_group: Score, loop: Mapping[str, Any]) -> tuple[list[int], int]:
    """The ranking, and how many iterations it took."""
    running = garen(Pool(pool), graph, (), **loop)
    answers: tuple[Any, ...] | None = None
    while True:
        try:
            requests = next(running) if answers is None else running.send(answers)
        except StopIteration as end:
            return end.value.ranking, len(end.value.iterations)
        answers = tuple(
            [of_group(group) for group in request.groups]
            if isinstance(request, Navigate)
            else sorted(request[0], key=of_document, reverse=True)
            for request in requests
        )
