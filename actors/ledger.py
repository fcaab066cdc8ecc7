"""What answering a query took: counters by role and by iteration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from actors.algorithms.loops.dialogue import NEIGHBOURS, Iteration, Outcome
from actors.artifacts.run import Exchange, total_usage


def by_iteration(iterations: Sequence[Iteration], exchanges: Sequence[list[Exchange]]) -> list[list[Exchange]]:
    """What was asked in each iteration; a loop says of an iteration in which it asked more than once."""
    turns = iter(exchanges)
    merged = [[exchange for _ in range(turn.asked) for exchange in next(turns)] for turn in iterations]
    if next(turns, None) is not None:
        raise RuntimeError("the loop asked more often than its iterations say")
    return merged


def usage_by_role(exchanges: Sequence[Exchange]) -> dict[str, dict[str, int]]:
    """Counters by role."""
    usage: dict[str, dict[str, int]] = {}
    for exchange in exchanges:
        counters = usage.setdefault(exchange.role, {})
        judged = {"calls": 1, "judged": len(exchange.rows), f"outcome {exchange.outcome}": 1, **exchange.usage}
        for name, number in judged.items():
            counters[name] = counters.get(name, 0) + number
    return usage


def total(usages: Iterable[Mapping[str, Mapping[str, int]]], outcome: Outcome) -> dict[str, dict[str, int]]:
    """The counters of all iterations summed by role, and what the loop did."""
    roles: dict[str, dict[str, int]] = {"reranker": {}, "navigator": {}}
    return roles | total_usage(usages) | {"loop": counts_of(outcome)}


def counts_of(outcome: Outcome) -> dict[str, int]:
    """What the loop did: windows, distinct documents and where they came from, navigator scores that were there already."""
    turns, ranking = outcome.iterations, len(outcome.ranking)
    sources = [source for turn in turns for source in turn.added_from]
    from_groups, from_neighbours = sum(source >= 0 for source in sources), sources.count(NEIGHBOURS)
    return {
        "iterations": len(turns),
        "documents": ranking,
        "from_groups": from_groups,
        "from_neighbours": from_neighbours,
        "from_pool": ranking - from_groups - from_neighbours,
        "pool_fill": sum(turn.pool_fill for turn in turns),
        "reused_scores": sum(turn.reused_scores for turn in turns),
    }
