"""Answer all queries of a corpus with one method.

Reads: index, queries. Writes: run.   python -m jobs.run_queries corpus=scifact loop=garen loop.budget=50
Cost: the models' calls: for garen at budget 100, 9 windows and at most 160 group scores a query; resumed by query.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actors.artifacts import run as run_files
from actors.artifacts.queries import open_queries
from actors.artifacts.store import Address
from conf import schema
from jobs import build_queries, session
from jobs.console import Progress, say, table
from jobs.online import answer_all, searchers


def run(settings: schema.Settings) -> Address:
    """Build the run artifact and show what it cost."""
    build_queries.run(settings)
    address = session.build(settings, "run", make)
    if address.built:
        show(session.counts(address))
        say(f"run: {address.folder}")
    return address


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    queries = open_queries(inputs["queries"])
    if not queries:
        raise ValueError(
            "queries: there are none. Give some with queries=jsonl queries.path=..., or ask one with python -m jobs.search."
        )
    journal = run_files.Journal(folder)
    left = [q for q in queries if q.query_id not in journal.done]
    told = Progress(settings.loop.method, len(queries), "queries", done=len(journal.done))
    if left:
        with searchers(settings, inputs["index"], len(left)) as pool:
            for result in answer_all(pool, settings.cluster.searchers.queries_in_flight, left):
                journal.append([result])
                told.advance(1)
    return run_files.write(folder, [q.query_id for q in queries], f"garen-{settings.loop.method}")


def show(counts: Mapping[str, Any]) -> None:
    """The ledger: calls and judged rows by role, and everything that did not go well."""
    usage, queries = counts["usage"], counts["queries"]
    roles = [(role, usage[role].get("calls", 0), usage[role].get("judged", 0)) for role in ("reranker", "navigator")]
    say(table(("role", "calls", "judged", "calls a query"), [(*line, line[1] / max(queries, 1)) for line in roles]))
    for role in ("reranker", "navigator"):
        for name, number in usage[role].items():
            if name not in ("calls", "judged", "outcome ok"):
                say(f"  {role}: {number:,} {name.removeprefix('outcome ')}")


main = session.job(run)

if __name__ == "__main__":
    main()
