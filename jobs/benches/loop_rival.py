"""garen once more, straightforwardly, with dictionaries and sets: what the loop's bench compares with.

It knows the paper's setting only: candidates are eligible, the navigator scores, all new documents come from groups, and no
document is excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actors.algorithms.loops.dialogue import CorpusGraph

Score = Callable[[int], float]  # of a document or a group, the same whoever asks


@dataclass(frozen=True)
class Dictionaries:
    """The corpus graph and its groups."""

    neighbours: Mapping[int, list[int]]
    group_of: Mapping[int, int]
    members: Mapping[int, list[int]]

    @classmethod
    def of(cls, graph: CorpusGraph, groups: int) -> Dictionaries:
        return cls(
            {row: [n for n in near.tolist() if n >= 0] for row, near in enumerate(graph.neighbours)},
            dict(enumerate(graph.group_of.tolist())),
            {group: graph.members(group).tolist() for group in range(groups)},
        )


def rival(
    graph: Dictionaries, pool: list[int], of_document: Score, of_group: Score, loop: Mapping[str, Any]
) -> tuple[list[int], int]:
    """The ranking, and how many iterations it took."""
    w, h, budget = loop["w"], loop["h"], loop["budget"]
    rank = {doc: i for i, doc in enumerate(pool)}
    observed: set[int] = set()
    scores: dict[int, float] = {}
    window, turns = pool[: min(w, budget)], 0
    fallen: list[int] = []
    observed.update(window)
    ranked: list[int] = []
    while window:
        turns += 1
        ranked = sorted(window, key=of_document, reverse=True)
        if len(observed) >= budget:
            break
        near: dict[int, set[int]] = {}
        for doc in window:
            for neighbour in graph.neighbours[doc]:
                near.setdefault(graph.group_of[neighbour], set()).add(doc)
        votes = {g: len(docs) for g, docs in near.items() if _open(graph, g, observed)}
        new = sorted((g for g in votes if g not in scores), key=lambda g: (-votes[g], _best(graph, g, rank, observed), g))
        new = new[: loop["K_g"]]
        for doc in pool:
            group = graph.group_of[doc]
            if len(new) == loop["K_g"]:
                break
            if group not in votes and group not in scores and group not in new and _open(graph, group, observed):
                new.append(group)
        scores.update((group, of_group(group)) for group in new)
        groups = sorted(({*votes, *new} & scores.keys()), key=lambda g: (-scores[g], g))
        count = min(w - h, budget - len(observed))
        added = _added(graph, groups, rank, observed, count, turns <= loop["tau_switch"])
        added += [doc for doc in pool if doc not in observed and doc not in added][: count - len(added)]
        if not added:
            break
        observed.update(added)
        window, fallen = ranked[:h] + added, ranked[h:] + fallen
    return _propagated(ranked + fallen, graph.group_of, loop["p"], loop["alpha"]), turns


def _open(graph: Dictionaries, group: int, observed: set[int]) -> bool:
    return any(doc not in observed for doc in graph.members[group])


def _best(graph: Dictionaries, group: int, rank: Mapping[int, int], observed: set[int]) -> float:
    return min((rank[doc] for doc in graph.members[group] if doc in rank and doc not in observed), default=float("inf"))


def _added(
    graph: Dictionaries, groups: Sequence[int], rank: Mapping[int, int], observed: set[int], count: int, explore: bool
) -> list[int]:
    def unobserved(group: int) -> Iterator[int]:
        members = sorted(graph.members[group], key=lambda doc: (rank.get(doc, len(rank)), doc))
        return (doc for doc in members if doc not in observed)

    queues = [list(unobserved(group)) for group in groups]
    if explore:
        rounds = range(max(map(len, queues), default=0))
        found = [queue[turn] for turn in rounds for queue in queues if turn < len(queue)]
    else:
        found = [doc for queue in queues for doc in queue]
    return found[:count]


def _propagated(ranking: list[int], group_of: Mapping[int, int], p: float, alpha: float) -> list[int]:
    b = {doc: (1 - p) * p**rank if rank < 10 else 0.0 for rank, doc in enumerate(ranking)}
    support: dict[int, float] = {}
    for doc in ranking[:10]:
        support[group_of[doc]] = support.get(group_of[doc], 0.0) + b[doc]
    return sorted(ranking, key=lambda doc: -(b[doc] + alpha * support.get(group_of[doc], 0.0)))
