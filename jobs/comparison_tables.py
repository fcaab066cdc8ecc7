"""The tables of a comparison: what the methods achieve, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actors.algorithms.comparison import Compared, compare
from actors.artifacts.comparison import Table
from conf import schema
from jobs import building
from jobs.comparing import Key, Made, part

SHOWN = ("mean", "std", "rival", "p", "significant")
LEDGER = {
    "documents": ("loop", "documents"),
    "from groups": ("loop", "from_groups"),
    "from neighbours": ("loop", "from_neighbours"),
    "pool fill": ("loop", "pool_fill"),
    "reranker calls": ("reranker", "calls"),
    "documents read": ("reranker", "judged"),
    "navigator calls": ("navigator", "calls"),
    "read by it": ("navigator", "judged"),
    "reused scores": ("loop", "reused_scores"),
    "prompt tokens": ("", "prompt_tokens"),
    "generated tokens": ("", "generated_tokens"),
}
Results = Mapping[tuple[str, str], Mapping[str, Compared]]  # collection, measure -> method


def _compared(made: Mapping[Key, Made], collection: str, measure: str, level: float) -> dict[str, Compared]:
    runs: dict[str, list[dict[str, float]]] = {}
    for (where, method, _), one in made.items():
        if where == collection:
            runs.setdefault(method, []).append({q: values[measure] for q, values in one.per_query.items()})
    return compare(runs, level)


def results(made: Mapping[Key, Made], measures: list[str], level: float) -> Results:
    """Every method's value and significance, by collection and measure."""
    return {(c, measure): _compared(made, c, measure, level) for c in part(made, 0) for measure in measures}


def effect(made: Mapping[Key, Made], found: Results, measure: str, simulated: str) -> Table:
    """One measure: methods down, collections across, and their mean."""
    collections = part(made, 0)
    lines = []
    for method in part(made, 1):
        row = [found[collection, measure][method] for collection in collections]
        cells = [f"{f.mean:.3f}" + (f" ±{f.std:.3f}" if f.std >= 0.0005 else "") + ("*" if f.significant else "") for f in row]
        lines.append([method, *cells, f"{sum(f.mean for f in row) / len(row):.3f}"])
    return measure + _suffix(simulated), ["method", *collections, "mean"], lines


def ledger(made: Mapping[Key, Made], simulated: str) -> Table:
    """What a query costs, mean over all runs of a method."""
    lines = []
    for method in part(made, 1):
        runs = [m for (_, name, _), m in made.items() if name == method]
        queries = sum(building.counts(m.addresses["run"])["queries"] for m in runs)
        lines.append([method, *(f"{sum(_count(m.usage, *c) for m in runs) / max(queries, 1):.1f}" for c in LEDGER.values())])
    return "calls and tokens a query" + _suffix(simulated), ["method", *LEDGER], lines


def _count(usage: Mapping[str, Mapping[str, int]], role: str, counter: str) -> int:
    return sum(counters.get(counter, 0) for name, counters in usage.items() if role in ("", name))


def _suffix(simulated: str) -> str:
    return f" ({simulated} judges)" if simulated else ""


def long(made: Mapping[Key, Made], found: Results) -> list[dict[str, Any]]:
    """One line per collection, measure and method."""
    seeds = len(part(made, 2))
    return [
        {"collection": c, "measure": measure, "method": method, **{name: getattr(one, name) for name in SHOWN}, "seeds": seeds}
        for (c, measure), methods in found.items()
        for method, one in methods.items()
    ]


def per_query(made: Mapping[Key, Made]) -> list[dict[str, Any]]:
    """One line per run, query and measure."""
    return [
        {"collection": collection, "method": method, "seed": seed, "query_id": q, "measure": measure, "value": value}
        for (collection, method, seed), m in made.items()
        for q, values in m.per_query.items()
        for measure, value in values.items()
    ]


def runs(settings: schema.Settings, made: Mapping[Key, Made]) -> list[dict[str, Any]]:
    """One line per run: where it lies."""
    root = Path(settings.artifacts.root)
    return [
        {"collection": collection, "method": method, "seed": seed}
        | {kind: str(address.folder.relative_to(root)) for kind, address in m.addresses.items()}
        for (collection, method, seed), m in made.items()
    ]
