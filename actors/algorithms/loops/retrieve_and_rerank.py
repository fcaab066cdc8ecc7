"""Retrieve-and-rerank: sliding windows over the pool's first documents, from the bottom up (Sun et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterable

from actors.algorithms.loops.dialogue import POOL, CorpusGraph, Iteration, Loop, Outcome, Pool, Rerank


def retrieve_and_rerank(pool: Pool, graph: CorpusGraph, excluded: Iterable[int], *, w: int, h: int, budget: int) -> Loop:
    """Rerank the pool's first `budget` documents: windows of w, each w-h above the one before, the last one starting at 0."""
    gone = frozenset(excluded)
    ranking = [doc for doc in pool.docs if doc not in gone][:budget]
    iterations: list[Iteration] = []
    end = len(ranking)
    while end > 0:
        start = max(0, end - w)
        turn = Iteration(window=ranking[start:end], added=[] if iterations else list(ranking))
        turn.added_from = [POOL] * len(turn.added)
        (answer,) = yield (Rerank(turn.window),)
        iterations.append(turn)
        ranking[start:end] = turn.keep_ranking(answer)
        end = end - (w - h) if start > 0 else 0
    return Outcome(ranking, iterations)
