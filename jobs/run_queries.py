"""Answer all queries of a corpus with one method.

Reads: index, queries. Writes: run.   python -m jobs.run_queries corpus=scifact loop=garen loop.budget=50
Cost: the models' calls: for garen at budget 100, 9 windows and at most 160 group scores a query; resumed by query.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actors.artifacts import run as run_files
from actors.artifacts.queries import open_qrels, open_queries
from actors.artifacts.store import Address, open_manifest
from actors.first_stage import FIRST_STAGE, WHY_EMPTY
from actors.roles import SHELLS
from conf import schema
from jobs import brought, build_queries, building, costs, session
from jobs.comparing import simulated
from jobs.console import Progress, say, table
from jobs.online import Service, service
from jobs.stages import Addresses

BYTES_PER_DOCUMENT = 500  # of the budget: journal, trace and answers of a query before they are packed


def run(settings: schema.Settings, shared: Service | None = None) -> Address:
    """Build the run artifact and show what it cost. shared: the searchers and deployments of a job that makes several runs."""
    addresses = Addresses(settings)
    if not settings.plan:
        open_manifest(addresses["index"].folder, "index")  # said before anything is built for it
    build_queries.run(settings)
    if addresses["queries"].built and not building.counts(addresses["queries"])["queries"]:
        raise ValueError("queries: there are none. Give some with queries=jsonl queries.path=..., or ask one with jobs.search.")
    disk = building.count_of(settings, "queries", "queries") * getattr(settings.loop, "budget", 0) * BYTES_PER_DOCUMENT
    address = building.build(settings, "run", functools.partial(make, shared=shared), needs={"disk": disk / 2**20})
    models = costs.models_of(settings)
    if settings.plan and models and not address.built:
        if addresses["index"].built and addresses["queries"].built:
            say("  foreseen from a sample of the queries:")
            foreseen = costs.of_run(settings, addresses["index"].folder, addresses["queries"].folder)
            costs.show(foreseen, models, settings.prices, foreseen=True)
        else:
            say("  what its models would take is foreseen when index and queries are built")
    if address.built and not settings.plan:
        show(building.counts(address), settings.first_stage.method)
        costs.show(building.counts(address)["usage"], models, settings.prices, foreseen=False)
        say(f"run: {address.folder}")
    return address


def make(
    settings: schema.Settings, inputs: Mapping[str, Path], folder: Path, shared: Service | None = None
) -> dict[str, Any]:
    queries = open_queries(inputs["queries"])
    if simulated(settings) and not open_qrels(inputs["queries"]):
        raise ValueError("simulated judges answer from relevance judgements and these queries have none: give queries.qrels=...")
    brought.check_questions(settings, inputs["index"], queries)
    journal = run_files.Journal(folder)
    left = [q for q in queries if q.query_id not in journal.done]
    told = Progress(settings.loop.method, len(queries), "queries", done=len(journal.done))
    if left:
        with contextlib.nullcontext(shared) if shared else service(settings.cluster) as opened:
            for result in opened.answer(settings, inputs["index"], inputs["queries"], left):
                journal.append([result])
                told.advance(1)
    made_with = {"judges": "simulated"} if simulated(settings) else {}
    tag = "-".join(["garen", settings.loop.method, *made_with.values()])
    return {**made_with, **run_files.write(folder, [q.query_id for q in queries], tag)}


def show(counts: Mapping[str, Any], first_stage: str) -> None:
    """The ledger: calls and judged rows by role, and everything that did not go well."""
    usage, queries = counts["usage"], counts["queries"]
    told = [role for role in SHELLS if role in usage]
    if counts.get("judges"):
        say(f"  {counts['judges']} judges: these figures say nothing about any model")
    roles = [(role, usage[role].get("calls", 0), usage[role].get("judged", 0)) for role in told]
    say(table(("role", "calls", "judged", "calls a query"), [(*line, line[1] / max(queries, 1)) for line in roles]))
    if empty := counts["empty pools"]:
        say(f"  {empty:,} queries have an empty pool and an empty answer: {WHY_EMPTY[first_stage]}")
    for name, number in usage.get(FIRST_STAGE, {}).items():
        say(f"  first stage: {number:,} {name}")
    for role in told:
        for name, number in usage[role].items():
            if number and name not in ("calls", "judged", "outcome ok", "model_calls") and not name.endswith("_tokens"):
                say(f"  {role}: {number:,} {name.removeprefix('outcome ')}")


main = session.job(run)

if __name__ == "__main__":
    main()
