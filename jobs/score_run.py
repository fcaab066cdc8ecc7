"""Measure a run against the relevance judgements.

Reads: run, queries. Writes: metrics.   python -m jobs.score_run corpus=scifact loop=garen metrics.measures=[ndcg_cut_10,recall_100]
Cost: seconds. Recall@100 is over the documents that the reranker observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actors.algorithms import evaluation
from actors.artifacts import metrics as metric_files
from actors.artifacts.queries import open_qrels, open_queries
from actors.artifacts.run import open_run
from actors.artifacts.store import Address, open_manifest
from conf import schema
from jobs import building, session
from jobs.console import say, table

BYTES_PER_VALUE = 60  # a measure of one query


def run(settings: schema.Settings) -> Address:
    """Build the metrics artifact and show the means."""
    evaluation.check(settings.metrics.measures)
    values = building.count_of(settings, "run", "queries") * len(settings.metrics.measures)
    address = building.build(settings, "metrics", make, ray=False, needs={"disk": values * BYTES_PER_VALUE / 2**20})
    if address.built and not settings.plan:
        mean = metric_files.open_metrics(address.folder)["mean"]
        measures = settings.metrics.measures
        method = settings.loop.method + (" (simulated judges)" if building.counts(address).get("judges") else "")
        say(table(("method", *measures), [(method, *(mean[m] for m in measures))]))
        if unscored := building.counts(address)["without gold"]:
            say(f"  {unscored:,} queries have no relevant document and were not scored")
        say(f"metrics: {address.folder}")
    return address


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    qrels, measures = open_qrels(inputs["queries"]), settings.metrics.measures
    if not qrels:
        raise ValueError(
            "queries: they have no relevance judgements. Give them with queries.qrels=<TSV of query-id, corpus-id, score>."
        )
    per_query = evaluation.evaluate(qrels, open_run(inputs["run"]), measures)
    metric_files.write(folder, evaluation.mean(per_query, measures), per_query)
    judges = open_manifest(inputs["run"], "run")["counts"].get("judges")
    made_with = {"judges": judges} if judges else {}
    return {**made_with, "queries": len(per_query), "without gold": len(open_queries(inputs["queries"])) - len(per_query)}


main = session.job(run)

if __name__ == "__main__":
    main()
