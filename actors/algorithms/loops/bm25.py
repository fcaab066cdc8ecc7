"""The first stage alone: the pool's first documents as they are, without any model."""

from __future__ import annotations

from collections.abc import Iterable

from actors.algorithms.loops.dialogue import CorpusGraph, Loop, Outcome, Pool


def bm25(pool: Pool, graph: CorpusGraph, excluded: Iterable[int], *, budget: int) -> Loop:
    """The pool's first `budget` documents; asks nothing."""
    gone = frozenset(excluded)
    return Outcome([doc for doc in pool.docs if doc not in gone][:budget], [])
    yield ()
