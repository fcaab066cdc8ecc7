"""GAR (MacAvaney et al., CIKM 2022, Algorithm 1): batches of the pool and of the frontier in turn, each document scored by itself.

Where the paper is silent it follows the published code: a source that is empty is passed over, so that the other serves again and
the turns go on from there; a document of the frontier has the best score among its scored parents; equal ones keep the order in
which they came in. That code also leaves out documents that the remaining budget cannot reach any more, which changes no more than
the order of equals, and orders equal scores by document id; here they keep the batch's order. Its backfill has nothing to
add: below the budget the loop ends only when the pool is used up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from actors.algorithms.loops.dialogue import NEIGHBOURS, POOL, Answer, CorpusGraph, Iteration, Loop, Outcome, Pool, Score
from actors.algorithms.loops.unobserved import Unobserved


def gar(pool: Pool, graph: CorpusGraph, excluded: Iterable[int], *, batch: int, budget: int) -> Loop:
    """batch: documents scored at a time (the paper's b). budget: distinct documents scored (c).

    A document without a score (ours: the reranker failed) counts in the budget, brings in no neighbours and ends up behind all that
    have one.
    """
    unobserved = Unobserved(graph, pool, excluded)  # its pool is R_0
    R1: dict[int, float] = {}  # scores, in the order of observation
    F: dict[int, float] = {}  # frontier: the best score of a scored parent
    P = POOL  # the source of the batch
    iterations: list[Iteration] = []
    B = unobserved.pool[: min(batch, budget)]
    while B:
        unobserved.observe(B)
        turn = Iteration(window=B)
        iterations.append(turn)
        (answer,) = yield (Score(B),)
        _keep_scores(turn, R1, answer)
        for doc in B:
            F.pop(doc, None)
        _extend(F, turn.ranked, R1, unobserved)
        R0 = unobserved.rest_of_pool()
        P = NEIGHBOURS if F and (P == POOL or not R0) else POOL
        line = R0 if P == POOL else sorted(F, key=F.__getitem__, reverse=True)  # stable
        B = line[: min(batch, budget - len(unobserved.observed))]
        turn.added, turn.added_from = B, [P] * len(B)
    scored = sorted(R1, key=R1.__getitem__, reverse=True)
    return Outcome(scored + [doc for doc in unobserved.observed if doc not in R1], iterations)


def _keep_scores(turn: Iteration, R1: dict[int, float], scores: Answer) -> None:
    """Scores of the batch into R1, and its order: best first, then those without one."""
    values = [math.nan] * len(turn.window) if scores is None else [float(s) for s in scores]
    found = {doc: value for doc, value in zip(turn.window, values, strict=True) if not math.isnan(value)}
    R1.update(found)
    scored = sorted(found, key=found.__getitem__, reverse=True)
    turn.keep_ranking(scored + [doc for doc in turn.window if doc not in found] if found else None)


def _extend(F: dict[int, float], ranked: Sequence[int], R1: dict[int, float], unobserved: Unobserved) -> None:
    """The neighbours of the batch's scored documents into the frontier, best parent first, nearest first."""
    for parent in ranked:
        if parent in R1:
            for doc in unobserved.neighbours_of([parent]):
                F[doc] = max(F.get(doc, -math.inf), R1[parent])
