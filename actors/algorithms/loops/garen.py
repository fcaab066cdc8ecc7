"""GAREN (section 4.2, Algorithm 1, Appendix E): rerank the window, let the navigator choose groups, add their documents.

Where the paper is silent the rule stands beside the line that settles it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from actors.algorithms.loops.dialogue import (
    NEIGHBOURS,
    POOL,
    Answer,
    CorpusGraph,
    Iteration,
    Loop,
    Navigate,
    Outcome,
    Pool,
    Requests,
    Rerank,
)
from actors.algorithms.loops.unobserved import Unobserved
from actors.algorithms.propagation import propagate


def garen(
    pool: Pool,
    graph: CorpusGraph,
    excluded: Iterable[int],
    *,
    w: int,
    h: int,
    budget: int,
    K_g: int,
    tau_switch: int,
    eligible: str,
    group_score: str,
    sources: Mapping[str, int],
    p: float,
    alpha: float,
) -> Loop:
    """Find evidence for one query.

    w, h: window and keep size. budget: distinct documents shown to the reranker. K_g: groups newly scored per iteration.
    tau_switch: explore up to this iteration (counted from 1), exploit after it. eligible: "candidates" (this iteration's) or
    "all_scored". group_score: "navigator", or "votes" (Table 8) without a model: a group's votes are its score and a group from the
    pool has 0, anew in every iteration. sources: how many of the w-h new documents come from "groups", from "neighbours" of the
    kept documents and from the "pool" (ours; {groups: w-h} is the paper). p, alpha: propagation, Eq. 8 and 9.
    """
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
        if group_score == "votes":
            S.clear()
        new_groups = _groups_to_score(turn, unobserved, S, K_g)
        asks_navigator = bool(new_groups) and group_score == "navigator"
        requests: Requests = (Rerank(W), Navigate(new_groups)) if asks_navigator else (Rerank(W),)
        answers = yield requests
        ranked = turn.keep_ranking(answers[0])
        _keep_scores(turn, S, answers[1] if asks_navigator else _votes(turn))

        turn.explore = len(iterations) <= tau_switch
        groups = _eligible(turn, unobserved, S, eligible)
        X = _expand(turn, unobserved, groups, ranked[:h], sources, min(w - h, budget - len(unobserved.observed)))
        if not X:
            break
        unobserved.observe(X)
        W, fallen = ranked[:h] + X, ranked[h:] + fallen  # Eq. 7

    return Outcome(propagate(ranked + fallen, graph.group_of, p, alpha), iterations)


def _groups_to_score(turn: Iteration, unobserved: Unobserved, S: dict[int, float], K_g: int) -> list[int]:
    """At most K_g groups without a score: the candidates with most votes first; when they are too few, groups from the pool."""
    votes = unobserved.votes(turn.window)
    turn.candidates, turn.votes = list(votes), list(votes.values())
    turn.reused_scores = sum(g in S for g in votes)
    new = sorted((g for g in votes if g not in S), key=lambda g: (-votes[g], unobserved.best_pool_rank(g), g))[:K_g]
    if len(new) < K_g:  # observed documents are walked too: their groups may hold more (Appendix E)
        found = len(new)
        for group in unobserved.pool_groups:
            if len(new) == K_g:
                break
            if group not in votes and group not in S and unobserved.has(group):
                new.append(group)
        turn.navigated_from_pool = len(new) - found
    turn.navigated = new
    return new


def _votes(turn: Iteration) -> list[float]:
    votes = dict(zip(turn.candidates, turn.votes, strict=True))
    return [float(votes.get(group, 0)) for group in turn.navigated]


def _keep_scores(turn: Iteration, S: dict[int, float], scores: Answer) -> None:
    turn.navigated_scores = [math.nan] * len(turn.navigated) if scores is None else [float(s) for s in scores]
    S.update((g, s) for g, s in zip(turn.navigated, turn.navigated_scores, strict=True) if not math.isnan(s))


def _eligible(turn: Iteration, unobserved: Unobserved, S: dict[int, float], eligible: str) -> list[int]:
    """The groups that may be expanded, best first: those of this iteration that have a score, or all that have one."""
    groups = [g for g in S if unobserved.has(g)] if eligible == "all_scored" else {*turn.candidates, *turn.navigated} & S.keys()
    turn.eligible = sorted(sorted(groups), key=S.__getitem__, reverse=True)  # stable: equal scores keep the order of group ids
    turn.eligible_scores = [S[g] for g in turn.eligible]
    return turn.eligible


def _expand(
    turn: Iteration, unobserved: Unobserved, groups: Sequence[int], kept: Sequence[int], sources: Mapping[str, int], count: int
) -> list[int]:
    """X_t: `count` new documents. What a source lacks, the others with a share give; when they run out, the pool's next ones."""
    new: dict[int, int] = {}  # document -> where it comes from
    streams = {
        "groups": _explore(unobserved, groups) if turn.explore else _exploit(unobserved, groups),
        "neighbours": ((NEIGHBOURS, doc) for doc in (unobserved.neighbours_of(kept) if sources["neighbours"] else ())),
        "pool": ((POOL, doc) for doc in iter(unobserved.next_of_pool, None)),
    }
    shared = {name: streams[name] for name in streams if sources[name]}
    for name, share in zip(shared, _shares([sources[name] for name in shared], count), strict=True):
        _take(new, shared[name], len(new) + share)
    for stream in shared.values():
        _take(new, stream, count)
    before = len(new)
    _take(new, streams["pool"], count)
    turn.pool_fill = len(new) - before
    turn.added, turn.added_from = list(new), list(new.values())
    return turn.added


def _shares(parts: Sequence[int], count: int) -> list[int]:
    """`count` in proportion to `parts`, whole numbers, the first served first: the parts themselves when `count` is their sum."""
    bounds = [-(-count * sum(parts[:i]) // sum(parts)) for i in range(len(parts) + 1)]
    return [last - first for first, last in pairwise(bounds)]


def _take(new: dict[int, int], stream: Iterator[tuple[int, int]], until: int) -> None:
    while len(new) < until and (found := next(stream, None)):
        source, doc = found
        new.setdefault(doc, source)


def _explore(unobserved: Unobserved, groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    """One document of each group in turn, round after round."""
    live = list(groups)
    while live:
        for group in list(live):
            doc = unobserved.next_of_group(group)
            if doc is None:
                live.remove(group)
            else:
                yield group, doc


def _exploit(unobserved: Unobserved, groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    """All documents of the best group, then of the next."""
    for group in groups:
        while (doc := unobserved.next_of_group(group)) is not None:
            yield group, doc
