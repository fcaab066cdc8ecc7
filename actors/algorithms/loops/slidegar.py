"""SlideGAR (Rathee et al., ECIR 2025): the window takes new documents from the graph's neighbours and from the pool in turn.

It follows the paper's alternation. The published code rebuilds a frontier of at most ten entries in every iteration, so that
in practice only the best document's neighbours get in; here a turn takes the neighbours of all kept documents in rank order.
"""

from __future__ import annotations

from collections.abc import Iterable

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, CorpusGraph, Iteration, Loop, Outcome, Pool, Rerank
from actors.algorithms.loops.unobserved import Unobserved


def slidegar(pool: Pool, graph: CorpusGraph, excluded: Iterable[int], *, w: int, h: int, budget: int) -> Loop:
    """w, h: window and keep size (the paper's w and w - b). budget: distinct documents shown to the reranker (the paper's c)."""
    unobserved = Unobserved(graph, pool, excluded)
    fallen: list[int] = []
    iterations: list[Iteration] = []
    W = unobserved.pool[: min(w, budget)]
    ranked: list[int] = []
    while W:
        unobserved.observe(W if not iterations else iterations[-1].added)
        turn = Iteration(window=W)
        iterations.append(turn)
        (answer,) = yield (Rerank(W),)
        ranked = turn.keep_ranking(answer)
        if len(unobserved.observed) >= budget:
            break
        count = min(w - h, budget - len(unobserved.observed))
        from_graph = (NEIGHBOURS, unobserved.neighbours_of(ranked[:h]))
        from_pool = (POOL, unobserved.rest_of_pool())
        first, second = (from_graph, from_pool) if len(iterations) % 2 else (from_pool, from_graph)
        source, found = first if first[1] else second  # the turns alternate even when a source is empty
        if not found:
            break
        turn.added = found[:count]
        turn.added_from = [source] * len(turn.added)
        W, fallen = ranked[:h] + turn.added, ranked[h:] + fallen
    return Outcome(ranked + fallen, iterations)
