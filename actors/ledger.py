"""What answering a query took: counters by role and by iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from actors.algorithms.loops.dialogue import NEIGHBOURS, Iteration, Outcome
from actors.artifacts.run import Exchange


def by_iteration(iterations: Sequence[Iteration], exchanges: Sequence[list[Exchange]]) -> list[list[Exchange]]:
    """What was asked in each iteration; a loop says of an iteration in which it asked more than once."""
    turns = iter(exchanges)
    merged = [[exchange for _ in range(turn.asked) for exchange in next(turns)] for turn in iterations]
    if next(turns, None) is not None:
        raise RuntimeError("the loop asked more often than its iterations say")
    return merged


def usage_by_role(exchanges: Sequence[Exchange]) -> dict[str, Counter[str]]:
    """Counters by role."""
    usage: dict[str, Counter[str]] = {}
    for exchange in exchanges:
        judged = {"calls": 1, "judged": len(exchange.rows), f"outcome {exchange.outcome}": 1}
        usage.setdefault(exchange.role, Counter()).update({**judged, **exchange.usage})
    return usage


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
