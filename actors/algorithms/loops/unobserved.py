"""What one query has not seen yet: the documents that a loop may still add, by group and by pool."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.loops.dialogue import CorpusGraph, Pool


class Unobserved:
    """The unobserved documents of one query. Excluded documents do not exist: not as neighbours, not as members, not in the pool.

    Everything is kept by group and only for groups that were touched, so that its cost does not depend on N.
    """

    def __init__(self, graph: CorpusGraph, pool: Pool, excluded: Iterable[int]) -> None:
        self.graph = graph
        self.excluded = frozenset(excluded)
        self._excluded_rows = np.array(sorted(self.excluded), np.int64)
        self.pool = [doc for doc in pool.docs if doc not in self.excluded] if self.excluded else pool.docs
        groups = graph.group_of[self.pool] if self.pool else np.empty(0, np.int32)
        self.pool_groups: list[int] = list(dict.fromkeys(groups.tolist()))  # in the order of their best pool rank
        self.observed: dict[int, None] = {}  # in the order of observation
        self._score = pool.score
        self._rank = dict(zip(self.pool, range(len(self.pool)), strict=True))
        self._pool_of_group = _by_group(self.pool, groups)
        self._gone = Counter(graph.group_of[self._excluded_rows].tolist())  # documents of a group that cannot be added any more
        self._size: dict[int, int] = {}
        self._next_in_pool = 0
        self._queue: dict[int, Iterator[int]] = {}

    def observe(self, docs: Sequence[int]) -> None:
        """Take documents out of the unobserved: they are in a window now."""
        self._gone.update(self.graph.group_of[list(docs)].tolist())
        self.observed.update(dict.fromkeys(docs))

    def votes(self, window: Sequence[int]) -> dict[int, int]:
        """Groups of the window's neighbours that still have an unobserved member (Eq. 5), with how many of the window's documents
        have a neighbour in the group (Eq. 11)."""
        near = self.graph.neighbours[list(window)]
        exists = near >= 0
        if self.excluded:
            exists &= ~np.isin(near, self._excluded_rows)
        groups = np.where(exists, self.graph.group_of[near], -1)
        groups.sort(axis=1)
        once = np.ones(groups.shape, bool)  # a document votes once for a group, however many of its neighbours are there
        np.not_equal(groups[:, 1:], groups[:, :-1], out=once[:, 1:])
        found, votes = np.unique(groups[once], return_counts=True)
        with_members: dict[int, int] = {}
        size, gone, members = self._size, self._gone, self.graph.members  # `has`, without a call for each of some eighty groups
        for group, count in zip(found.tolist(), votes.tolist(), strict=True):
            if group < 0:
                continue
            documents = size.get(group)
            if documents is None:
                documents = size[group] = len(members(group))
            if documents > gone.get(group, 0):
                with_members[group] = count
        return with_members

    def has(self, group: int) -> bool:
        """Whether the group still has an unobserved member."""
        if group not in self._size:
            self._size[group] = len(self.graph.members(group))
        return self._size[group] > self._gone.get(group, 0)

    def best_pool_rank(self, group: int) -> float:
        """The best pool rank among the group's unobserved members; infinite when the pool holds none."""
        for doc in self._pool_of_group.get(group, ()):
            if doc not in self.observed:
                return self._rank[doc]
        return math.inf

    def next_of_group(self, group: int) -> int | None:
        """The group's next unobserved member: by pool rank, then by first-stage score where there is one, then by row."""
        if group not in self._queue:
            first = self._pool_of_group.get(group, ())
            self._queue[group] = _in_order(first, self.graph.members(group), self._rank, self.excluded, self._score)
        return next((doc for doc in self._queue[group] if doc not in self.observed), None)

    def next_of_pool(self) -> int | None:
        """The pool's next unobserved document."""
        while self._next_in_pool < len(self.pool):
            doc = self.pool[self._next_in_pool]
            self._next_in_pool += 1
            if doc not in self.observed:
                return doc
        return None

    def rest_of_pool(self) -> list[int]:
        """The pool's unobserved documents, best first."""
        return [doc for doc in self.pool if doc not in self.observed]

    def neighbours_of(self, docs: Sequence[int]) -> list[int]:
        """The unobserved neighbours of documents: in the documents' order, each one's nearest first, each once."""
        near = dict.fromkeys(self.graph.neighbours[list(docs)].ravel().tolist())
        return [doc for doc in near if doc >= 0 and doc not in self.observed and doc not in self.excluded]


def _in_order(
    first: Sequence[int],
    members: NDArray[np.int32],
    in_pool: Container[int],
    excluded: Container[int],
    score: Callable[[list[int]], Sequence[float]] | None,
) -> Iterator[int]:
    """A group's documents: those of the pool as they come, then the others by score, which is asked for when it is needed.

    Not a method: it would hold the object that holds it, and a query's half megabyte would stay until the garbage collector comes.
    """
    yield from first
    rest = [d for d in members.tolist() if d not in in_pool and d not in excluded]
    if score is not None and len(rest) > 1:
        scores = score(rest)
        rest = [rest[i] for i in sorted(range(len(rest)), key=lambda i: (-scores[i], rest[i]))]
    yield from rest


def _by_group(docs: Sequence[int], groups: NDArray[np.int32]) -> dict[int, list[int]]:
    """Group -> its documents in the order they came."""
    order = np.argsort(groups, kind="stable")
    sorted_docs = np.asarray(docs, np.int64)[order].tolist()
    found, first = np.unique(groups[order], return_index=True)
    bounds = pairwise([*first.tolist(), len(sorted_docs)])
    return {group: sorted_docs[start:end] for group, (start, end) in zip(found.tolist(), bounds, strict=True)}
