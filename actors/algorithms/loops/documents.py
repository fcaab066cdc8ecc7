"""GAREN's document-level variant (section 6.2): the navigator scores the window's neighbour documents, not groups.

Everything else stays as in the paper, as if each document were a group of its own: explore and exploit are then the same, and
propagation changes nothing. The limit K_g and the walk down the pool give way to the paper's footnote: all neighbours, up to w*k
in a step. Ours: equal scores by row; the pool fills up what is missing, as in GAREN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from actors.algorithms.loops.dialogue import (
    NEIGHBOURS,
    POOL,
    Answer,
    CorpusGraph,
    Iteration,
    Loop,
    NavigateDocuments,
    Outcome,
    Pool,
    Requests,
    Rerank,
)
from actors.algorithms.loops.unobserved import Unobserved


def documents(pool: Pool, graph: CorpusGraph, excluded: Iterable[int], *, w: int, h: int, budget: int) -> Loop:
    """w, h: window and keep size. budget: distinct documents shown to the reranker; the navigator's are not counted in it."""
    unobserved = Unobserved(graph, pool, excluded)
    S: dict[int, float] = {}  # navigator scores of this query, kept over its iterations
    fallen: list[int] = []  # documents that left the window, latest first
    iterations: list[Iteration] = []
    W = unobserved.pool[: min(w, budget)]
    unobserved.observe(W)
    ranked: list[int] = []

    while W:
        turn = Iteration(window=W)
        iterations.append(turn)
        if len(unobserved.observed) >= budget:  # the last rerank: nothing is left to navigate for
            ranked = turn.keep_ranking((yield (Rerank(W),))[0])
            break
        near = unobserved.neighbours_of(W)
        turn.navigated = [doc for doc in near if doc not in S]
        turn.reused_scores = len(near) - len(turn.navigated)
        requests: Requests = (Rerank(W), NavigateDocuments(turn.navigated)) if turn.navigated else (Rerank(W),)
        answers = yield requests
        ranked = turn.keep_ranking(answers[0])
        if turn.navigated:
            _keep_scores(turn, S, answers[1])

        turn.eligible = sorted((doc for doc in near if doc in S), key=lambda doc: (-S[doc], doc))
        turn.eligible_scores = [S[doc] for doc in turn.eligible]
        X = _expand(turn, unobserved, min(w - h, budget - len(unobserved.observed)))
        if not X:
            break
        unobserved.observe(X)
        W, fallen = ranked[:h] + X, ranked[h:] + fallen  # Eq. 7

    return Outcome(ranked + fallen, iterations)


def _keep_scores(turn: Iteration, S: dict[int, float], scores: Answer) -> None:
    turn.navigated_scores = [math.nan] * len(turn.navigated) if scores is None else [float(s) for s in scores]
    S.update((doc, s) for doc, s in zip(turn.navigated, turn.navigated_scores, strict=True) if not math.isnan(s))


def _expand(turn: Iteration, unobserved: Unobserved, count: int) -> list[int]:
    """X_t: the `count` best neighbours; the pool's next ones when they are too few."""
    best = turn.eligible[:count]
    fill = [doc for doc in unobserved.rest_of_pool() if doc not in best][: count - len(best)]
    turn.pool_fill = len(fill)
    turn.added = best + fill
    turn.added_from = [NEIGHBOURS] * len(best) + [POOL] * len(fill)
    return turn.added
