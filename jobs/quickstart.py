"""The whole flow on a corpus that every machine has: build the index, answer all questions by three methods, compare them.

Reads: the files that `corpus` and `queries` name. Writes: everything.   python -m jobs.quickstart
Cost: a few minutes on two cores; the second time it only says what it reused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from actors.algorithms import evaluation
from actors.artifacts import metrics as metric_files
from actors.artifacts.queries import open_qrels, open_queries
from actors.artifacts.run import open_run, open_trace
from conf import schema
from conf.load import compose
from jobs import build_index, building, run_queries, score_run, session, show_trace
from jobs.console import say, table
from jobs.stages import Addresses

METHODS = ("bm25", "retrieve_and_rerank", "garen")


def run(settings: schema.Settings) -> None:
    """Index, three runs, their table, one question worked through, and where everything lies."""
    evaluation.check(settings.metrics.measures)
    build_index.run(settings)
    if settings.plan:
        return
    variants = {method: replace(settings, loop=compose([f"loop={method}"]).loop) for method in METHODS}
    lines = []
    for method, variant in variants.items():
        run_queries.run(variant)
        score_run.run(variant)
        lines.append(_line(method, variant))
    measures = settings.metrics.measures
    queries = len(open_qrels(Addresses(settings)["queries"].folder))
    say(
        f"\n{settings.corpus.name}: {queries:,} questions, {settings.reranker.judge} reranker, {settings.navigator.judge} navigator"
    )
    say(table(("method", *measures, "reranker calls", "navigator calls", "seconds when run"), lines))
    _work_through(variants["garen"], variants["retrieve_and_rerank"])
    _say_where(variants)


def _line(method: str, settings: schema.Settings) -> list[Any]:
    addresses = Addresses(settings)
    mean = metric_files.open_metrics(addresses["metrics"].folder)["mean"]
    usage = building.counts(addresses["run"])["usage"]
    calls = [usage[role].get("calls", 0) for role in ("reranker", "navigator")]
    return [method, *(mean[m] for m in settings.metrics.measures), *calls, round(building.seconds(addresses["run"]), 1)]


def _work_through(garen: schema.Settings, rival: schema.Settings) -> None:
    """The question whose gold document a group brought in and that gains most over its rival in rank."""
    addresses = Addresses(garen)
    queries = {q.query_id: q for q in open_queries(addresses["queries"].folder)}
    qrels, ours = open_qrels(addresses["queries"].folder), open_run(addresses["run"].folder)
    theirs = open_run(Addresses(rival)["run"].folder)

    def gain(query_id: str) -> float:
        gold = [d for d, relevance in qrels.get(query_id, {}).items() if relevance > 0]
        return sum(
            ours.get(query_id, {}).get(d, 0.0) - theirs.get(query_id, {}).get(d, 0.0)
            for d in gold
            if d not in theirs.get(query_id, {})
        )

    best = max(sorted(queries), key=gain)
    if open_trace(addresses["run"].folder, best):
        say("\nOne question worked through:")
        show_trace.run(replace(garen, query_id=best))


def _say_where(variants: dict[str, schema.Settings]) -> None:
    say("\nWhere everything lies:")
    for method, variant in variants.items():
        say(f"  {method:<20} {Addresses(variant)['run'].folder}")
    addresses = Addresses(variants["garen"])
    for kind in ("corpus", "embeddings", "graph", "groups", "lexicon", "summaries", "index", "queries"):
        say(f"  {kind:<20} {addresses[kind].folder}")
    say("\nAsk it something, from Python and without Ray (python -m jobs.search starts Ray first):")
    call = f'Index.open("{addresses["index"].folder}").search("your question")'
    say(f"  .venv/bin/python -c 'from actors.index import Index; [print(h.doc_id, h.concept) for h in {call}]'")


main = session.job(run)

if __name__ == "__main__":
    main()
