"""What traces say about a method: the figures of sections 6.2, 6.3 and 6.6 and of Appendices C and D, as plain numbers.

`traces` holds the iterations of each query, with the fields of `Iteration`; a query without a trace (its pool was empty)
observed nothing, and a method that keeps none (bm25) cannot be analysed. `gold` holds the relevant documents of each query
as rows of the corpus and says which queries count; what the corpus lacks cannot stand in it, so trec_eval's recall is lower
where judged documents are not in the corpus.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.distances import UNREACHABLE

Trace = Sequence[Mapping[str, Any]]
Traces = Mapping[str, Trace]
Rows = Mapping[str, Collection[int]]


def observed_by_iteration(trace: Trace) -> list[frozenset[int]]:
    """The documents in the windows up to each iteration: what the reranker has seen by then."""
    observed: list[frozenset[int]] = []
    for turn in trace:
        observed.append(frozenset(turn["window"]).union(*observed[-1:]))
    return observed


def recall_by_iteration(traces: Traces, gold: Rows) -> list[float]:
    """Figure 3: mean over the queries of `gold` of the share of their gold documents observed after iteration 1, 2, ...

    A query that ended earlier carries its last value on. Raises ValueError on a query without a gold document.
    """
    lines = [_recalls(traces.get(query_id, ()), query_id, docs) for query_id, docs in gold.items()]
    longest = max(map(len, lines), default=0)
    return [math.fsum(line[min(t, len(line) - 1)] for line in lines) / len(lines) for t in range(longest)]


def first_windows(traces: Traces) -> dict[str, list[int]]:
    """The pool's first documents, w of them, of a method that begins at the top: seeds for distances.

    Retrieve-and-rerank and RGS begin at the bottom: compare them by the seeds of another method on the same first stage.
    """
    return {query_id: list(trace[0]["window"]) for query_id, trace in traces.items() if trace}


@dataclass(frozen=True)
class DistanceHits:
    """The queries whose nearest gold document lies `distance` hops from their seeds; hits: those with a gold document observed."""

    distance: int
    queries: int
    hits: int

    @property
    def share(self) -> float:
        """Hit@budget."""
        return self.hits / self.queries


@dataclass(frozen=True)
class HitByDistance:
    """by_distance: nearest first, UNREACHABLE last. gold_among_seeds: queries left out, which need no expansion."""

    by_distance: list[DistanceHits]
    gold_among_seeds: int


def hit_by_distance(traces: Traces, gold: Rows, seeds: Rows, distance: Mapping[str, int]) -> HitByDistance:
    """Figures 4 and 8: Hit@100 (a budget of 100) by the hops from the seeds, the pool's first 20, to the nearest gold document.

    Over the queries that have no gold document among their seeds. distance: `distances.nearest_missed_gold` of these seeds.
    Raises ValueError on a query without a gold document.
    """
    wanted = {query_id: _wanted(query_id, docs) for query_id, docs in gold.items()}
    far = [query_id for query_id, docs in wanted.items() if docs.isdisjoint(seeds.get(query_id, ()))]
    hits = Counter(distance[query_id] for query_id in far if wanted[query_id] & _observed(traces.get(query_id, ())))
    queries = count_distances({query_id: distance[query_id] for query_id in far})
    return HitByDistance([DistanceHits(hop, count, hits[hop]) for hop, count in queries.items()], len(gold) - len(far))


def count_distances(distance: Mapping[str, int]) -> dict[int, int]:
    """Figure 9: hops -> number of queries, nearest first, UNREACHABLE last."""
    counts = Counter(distance.values())
    return {hop: counts[hop] for hop in sorted(counts, key=lambda hop: (hop == UNREACHABLE, hop))}


@dataclass(frozen=True)
class GoldFate:
    """What became of a gold document outside the first window. scored: the navigator gave its group a score. eligible: its group
    might have been expanded in some iteration. expanded: a document of its group was added for the group's sake. observed:
    the document itself was in a window, from wherever it came.
    """

    query_id: str
    doc: int
    group: int
    scored: bool
    eligible: bool
    expanded: bool
    observed: bool

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        return OUTCOMES[0 if self.observed else 1 if self.expanded else 2 if self.scored else 3]


OUTCOMES = ("observed", "group expanded, document not reached", "group scored, not expanded", "group never scored")


def gold_group_fate(traces: Traces, gold: Rows, group_of: NDArray[np.int32]) -> list[GoldFate]:
    """Appendix C.3: every pair of a query and a gold document outside its first window. For methods that weigh groups."""
    return [fate for query_id, docs in gold.items() for fate in _fates(query_id, traces.get(query_id, ()), docs, group_of)]


def count_fates(fates: Iterable[GoldFate]) -> dict[str, int]:
    """Appendix C.3: outcome -> pairs, in the order of OUTCOMES. The paper's first number is the share of the last."""
    counts = Counter(fate.outcome for fate in fates)
    return {outcome: counts[outcome] for outcome in OUTCOMES}


@dataclass(frozen=True)
class Point:
    """A method's value (more is better) and cost (less is better).

    optimal: no other is at least as good in both and better in one.
    """

    name: str
    value: float
    cost: float
    optimal: bool


def frontier(points: Iterable[tuple[str, float, float]]) -> list[Point]:
    """Figure 6: (name, value, cost) as given, the Pareto-optimal ones marked. Equal points do not exclude each other.

    Raises ValueError on a value or cost that is not a number.
    """
    given = list(points)
    for name, value, cost in given:
        if math.isnan(value) or math.isnan(cost):
            raise ValueError(f"{name}: value {value} and cost {cost}, expected numbers; leave out what was not measured")
    return [Point(*point, optimal=not any(_dominates(other, point) for other in given)) for point in given]


@dataclass(frozen=True)
class Setting:
    """One value of a parameter; measure is the mean of its `runs` runs."""

    value: Any
    measure: float
    runs: int


def sensitivity(lines: Iterable[tuple[str, Any, float]]) -> dict[str, list[Setting]]:
    """Figures 10 and 11: (parameter, value, measure) lines as parameter -> its values; numbers ascending, then others as met."""
    found: dict[str, dict[Any, list[float]]] = {}
    for parameter, value, measure in lines:
        found.setdefault(parameter, {}).setdefault(value, []).append(measure)
    return {
        parameter: [Setting(v, math.fsum(measures[v]) / len(measures[v]), len(measures[v])) for v in _ascending(measures)]
        for parameter, measures in found.items()
    }


def _recalls(trace: Trace, query_id: str, gold: Collection[int]) -> list[float]:
    wanted = _wanted(query_id, gold)
    return [len(wanted & observed) / len(wanted) for observed in observed_by_iteration(trace)] or [0.0]


def _wanted(query_id: str, gold: Collection[int]) -> frozenset[int]:
    if not gold:
        raise ValueError(f"query {query_id!r} has no gold document, expected one or more: leave the query out and count it")
    return frozenset(gold)


def _observed(trace: Trace) -> frozenset[int]:
    return frozenset().union(*(turn["window"] for turn in trace))


def _fates(query_id: str, trace: Trace, gold: Collection[int], group_of: NDArray[np.int32]) -> Iterator[GoldFate]:
    first = frozenset(trace[0]["window"]) if trace else frozenset()
    answers = (answer for turn in trace for answer in zip(turn["navigated"], turn["navigated_scores"], strict=True))
    scored = {g for g, score in answers if not math.isnan(score)}
    eligible = {g for turn in trace for g in turn["eligible"]}
    expanded = {g for turn in trace for g in turn["added_from"]}
    observed = _observed(trace)
    for doc in gold:
        if doc not in first:
            group = int(group_of[doc])
            yield GoldFate(query_id, doc, group, group in scored, group in eligible, group in expanded, doc in observed)


def _dominates(one: tuple[str, float, float], other: tuple[str, float, float]) -> bool:
    return one[1] >= other[1] and one[2] <= other[2] and one[1:] != other[1:]


def _ascending(values: Iterable[Any]) -> list[Any]:
    given = list(values)
    numbers = [value for value in given if isinstance(value, int | float)]
    return sorted(numbers) + [value for value in given if not isinstance(value, int | float)]
