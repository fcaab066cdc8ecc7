"""Tables and figures of the runs of one collection."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from actors.algorithms import analysis, distances
from actors.artifacts.queries import open_qrels, open_queries
from actors.artifacts.run import open_traces
from actors.artifacts.store import open_timings
from actors.index import Index
from actors.searcher import pools_in_process
from jobs import plots
from jobs.comparing import Key, Made, part, varied
from jobs.stages import lists_of

SEEDS = 20  # of the pool, as in Figure 4
Line = Sequence[Any]
Rows = dict[str, list[int]]


def effect(folder: Path, name: str, made: Mapping[Key, Made], suffix: str) -> None:
    """One collection: recall by iteration (Figure 3), distances of gold (4, 8, 9), what became of its groups (Appendix C.3)."""
    first = next(iter(made.values()))
    index = Index.open(first.addresses["index"].folder)
    gold, seeds = _gold_and_seeds(index, first)
    by_run = {key: open_traces(one.addresses["run"].folder) for key, one in made.items()}
    methods = [method for method in part(made, 1) if any(found for key, found in by_run.items() if key[1] == method)]
    traces = {method: _numbered({s: found for (_, m, s), found in by_run.items() if m == method}) for method in methods}
    runs = {method: [s for (_, m, s) in made if m == method] for method in methods}
    styles = plots.styles_of(part(made, 1))

    recall = {m: analysis.recall_by_iteration(traces[m], _repeated(gold, runs[m])) for m in methods}
    longest = max(map(len, recall.values()), default=0)
    _write(folder, f"{name} recall by iteration", ("method", *map(str, range(1, longest + 1))),
           ((m, *line, *[""] * (longest - len(line))) for m, line in recall.items()))  # fmt: skip
    plots.recall_by_iteration(folder / f"{name} recall by iteration.png", recall, styles, suffix)

    graphs = {
        "documents": distances.document_graph(index.neighbours),
        "groups": distances.group_graph(index.neighbours, index.group_of),
    }
    hops = {what: distances.nearest_missed_gold(graph, seeds, gold) for what, graph in graphs.items()}
    counts = {what: analysis.count_distances(found) for what, found in hops.items()}
    _write(folder, f"{name} distance of gold", ("graph", "hops", "queries"),
           ((what, hop, n) for what, found in counts.items() for hop, n in found.items()))  # fmt: skip
    plots.distances(folder / f"{name} distance of gold.png", counts, plots.styles_of(list(counts)), suffix)
    hits = {
        m: analysis.hit_by_distance(
            traces[m], _repeated(gold, runs[m]), _repeated(seeds, runs[m]), _repeated(hops["documents"], runs[m])
        )
        for m in methods
    }
    _write(folder, f"{name} hit by distance", ("method", "hops", "queries", "hit"),
           ((m, d.distance, d.queries // len(runs[m]), d.share) for m, h in hits.items() for d in h.by_distance))  # fmt: skip
    plots.hit_by_distance(folder / f"{name} hit by distance.png", hits, styles, suffix)

    weighing = [m for m in methods if any(one.settings.loop.method == "garen" for (_, n, _), one in made.items() if n == m)]
    fates = {
        m: analysis.count_fates(analysis.gold_group_fate(traces[m], _repeated(gold, runs[m]), _index_of(made, m).group_of))
        for m in weighing
    }
    _write(folder, f"{name} fate of the gold group", ("method", "outcome", "pairs"),
           ((m, outcome, n) for m, found in fates.items() for outcome, n in found.items()))  # fmt: skip


def cost(folder: Path, name: str, made: Mapping[Key, Made], measure: str, suffix: str) -> None:
    """Effect against seconds and tokens a query (Figure 6), and by tau_switch and K_g (Figures 10 and 11)."""
    styles = plots.styles_of(part(made, 1))
    value = {key: math.fsum(v[measure] for v in one.per_query.values()) / max(len(one.per_query), 1) for key, one in made.items()}
    for what, of in (("seconds a query", _seconds), ("tokens a query", _tokens)):
        keys = {m: [key for key in made if key[1] == m] for m in part(made, 1)}
        points = analysis.frontier(
            (m, sum(value[k] for k in ks) / len(ks), sum(of(made[k]) for k in ks) / len(ks)) for m, ks in keys.items()
        )
        _write(folder, f"{name} {measure} against {what}", ("method", measure, what, "optimal"),
               ((p.name, p.value, p.cost, p.optimal) for p in points))  # fmt: skip
        plots.frontier(folder / f"{name} {measure} against {what}.png", points, styles, measure, what, suffix)
    lines = [
        (parameter, getattr(made[key].settings.loop, parameter), value[key])
        for parameter in ("tau_switch", "K_g")
        for key in varied(made, parameter)
    ]
    for parameter, found in analysis.sensitivity(lines).items():
        if len(found) > 1:
            told = ((s.value, s.measure, s.runs) for s in found)
            _write(folder, f"{name} {measure} by {parameter}", (parameter, measure, "runs"), told)
            look = plots.styles_of([name])
            plots.sensitivity(folder / f"{name} {measure} by {parameter}.png", {name: found}, look, parameter, measure, suffix)


def _gold_and_seeds(index: Index, one: Made) -> tuple[Rows, Rows]:
    """query_id -> rows of its relevant documents, and of the pool's first; queries without a relevant document are left out."""
    qrels = open_qrels(one.addresses["queries"].folder)
    relevant = {query_id: [d for d, grade in judged.items() if grade > 0] for query_id, judged in qrels.items()}
    rows = index.corpus.rows_of(doc_id for doc_ids in relevant.values() for doc_id in doc_ids)
    found = {query_id: [rows[doc_id] for doc_id in doc_ids if doc_id in rows] for query_id, doc_ids in relevant.items()}
    asked = [query for query in open_queries(one.addresses["queries"].folder) if found.get(query.query_id)]
    pools = pools_in_process(index, one.settings.answering, asked, lists_of(one.settings))
    seeds = {query.query_id: pool[:SEEDS] for query, pool in zip(asked, pools, strict=True)}
    return {query_id: found[query_id] for query_id in seeds}, seeds


def _numbered(by_seed: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The queries of several runs, told apart by the run's seed."""
    return {f"{seed} {query_id}": found for seed, queries in by_seed.items() for query_id, found in queries.items()}


def _repeated(queries: Mapping[str, Any], seeds: Iterable[int]) -> dict[str, Any]:
    return _numbered(dict.fromkeys(seeds, queries))


def _index_of(made: Mapping[Key, Made], method: str) -> Index:
    return Index.open(next(one for (_, m, _), one in made.items() if m == method).addresses["index"].folder)


def _seconds(one: Made) -> float:
    total = [line["seconds"] for line in open_timings(one.addresses["run"].folder) if line["name"] == "total"]
    return sum(total) / max(len(total), 1)


def _tokens(one: Made) -> float:
    used = sum(counters.get(name, 0) for counters in one.usage.values() for name in ("prompt_tokens", "generated_tokens"))
    return used / max(len(one.per_query), 1)


def _write(folder: Path, name: str, head: Sequence[str], lines: Iterable[Line]) -> None:
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows([round(cell, 4) if isinstance(cell, float) else cell for cell in line] for line in lines)
