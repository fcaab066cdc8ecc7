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
from actors.artifacts.store import Address, open_manifest
from conf import schema
from jobs import build_queries, building, session
from jobs.console import Progress, say, table
from jobs.online import answer_all, searchers
from jobs.stages import Addresses


def run(settings: schema.Settings) -> Address:
    """Build the run artifact and show what it cost."""
    addresses = Addresses(settings)
    if not settings.plan:
        open_manifest(addresses["index"].folder, "index")  # said before anything is built for it
    build_queries.run(settings)
    if addresses["queries"].built and not building.counts(addresses["queries"])["queries"]:
        raise ValueError("queries: there are none. Give some with queries=jsonl queries.path=..., or ask one with jobs.search.")
    address = building.build(settings, "run", make)
    if address.built and not settings.plan:
        show(building.counts(address))
        say(f"run: {address.folder}")
    return address


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    queries = open_queries(inputs["queries"])
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
    if empty := counts["empty pools"]:
        say(f"  {empty:,} queries share no word with any document: the first stage found nothing, so their answer is empty")
    for role in ("reranker", "navigator"):
        for name, number in usage[role].items():
            if name not in ("calls", "judged", "outcome ok"):
                say(f"  {role}: {number:,} {name.removeprefix('outcome ')}")


main = session.job(run)

if __name__ == "__main__":
    main()
