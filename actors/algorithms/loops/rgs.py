"""RGS, reranker-guided search (Xu and Chen, 2025): a greedy walk over the graph whose distances are the reranker's orders.

It follows the published scripts: neighbours in stored order, windows from the bottom that stop where no new document came up, and a
document that fell out of Q never returns. The two scripts differ at the top of Q: one ends with the window that reaches it,
the other goes on with windows that shrink, and so ranks the first documents once more. Here the first is followed.
The seeds are the first stage's, as when GAREN compares its methods; the scripts find them in the graph. The scripts return
the first ten of Q; the answer here is every observed document.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, Answer, CorpusGraph, Iteration, Loop, Outcome, Pool, Requests, Rerank
from actors.algorithms.loops.unobserved import Unobserved


def rgs(pool: Pool, graph: CorpusGraph, excluded: Iterable[int], *, w: int, h: int, budget: int, seeds: int, beam: int) -> Loop:
    """w, h: window and the documents that two windows share. budget: distinct documents shown to the reranker.

    seeds: the pool's first documents, where the walk starts. beam: documents that Q keeps after an insertion (the scripts' L).
    The number of calls depends on the orders: an insertion takes as many windows as its documents rise through.
    """
    unobserved = Unobserved(graph, pool, excluded)
    Q: list[int] = []
    fallen: list[int] = []  # latest first
    iterations: list[Iteration] = []
    V = unobserved.pool[: min(seeds, budget)]
    while V:
        unobserved.observe(V)
        Q = yield from _insert(Q, V, w, h, iterations)
        Q, fallen = Q[:beam], Q[beam:] + fallen
        V = _expand(Q, unobserved, budget - len(unobserved.observed))
        if V:
            iterations[-1].added, iterations[-1].added_from = V, [NEIGHBOURS] * len(V)
    return Outcome(Q + fallen, iterations)


def _insert(
    Q: Sequence[int], V: Sequence[int], w: int, h: int, iterations: list[Iteration]
) -> Generator[Requests, tuple[Answer, ...], list[int]]:
    """Q with V ranked into it: windows of w from the bottom up, each w-h above the one before, as long as they hold one of V."""
    ranking, new = [*Q, *V], set(V)
    end = len(ranking)
    while end > 0 and new.intersection(ranking[max(0, end - w) : end]):
        start = max(0, end - w)
        turn = Iteration(window=ranking[start:end])
        if not iterations:  # seeds that the first window does not hold
            turn.added, turn.added_from = ranking[:start], [POOL] * start
        iterations.append(turn)
        (answer,) = yield (Rerank(turn.window),)
        ranking[start:end] = turn.keep_ranking(answer)
        end = end - (w - h) if start > 0 else 0
    return ranking


def _expand(Q: Sequence[int], unobserved: Unobserved, left: int) -> list[int]:
    """The new neighbours of the first unexpanded document, at most `left`; none when all are expanded.

    All neighbours of an expanded document were inserted: the first that has a new one is the first unexpanded that adds anything.
    """
    for doc in Q:
        if V := unobserved.neighbours_of([doc])[:left]:
            return V
    return []
