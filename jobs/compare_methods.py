"""Compare methods on collections, each with several seeds, in one job: indexes, searchers and deployments are shared.

Reads: the files that `corpus` and `queries` name. Writes: everything, and a comparison.
python -m jobs.compare_methods corpus=scifact compare.methods=[retrieve_and_rerank,slidegar,garen] compare.seeds=[0,1,2]
Variants are named lists of overrides (conf/compare/). Cost: the runs that are not there yet; resumed by method, query and seed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from actors.algorithms import evaluation
from actors.artifacts import comparison as comparison_files
from actors.artifacts.store import Address, Recipe, draft, finish
from conf import schema
from jobs import build_index, comparison_tables as tables, run_queries, score_run, session
from jobs.comparing import Key, Made, finished, named, suffix_of, variants
from jobs.console import duration, hushed, say, table
from jobs.online import Service, service
from jobs.stages import Addresses


def run(settings: schema.Settings) -> Address | None:
    """Make every run that is missing, then the tables."""
    evaluation.check(settings.metrics.measures)
    wanted = variants(settings)
    say(f"compare: {settings.compare.name}, {len(wanted)} runs")
    made: dict[Key, Made] = {}
    start = time.monotonic()
    with service(settings.cluster) as shared:
        for number, (key, variant) in enumerate(wanted.items(), 1):
            there = Addresses(variant)["metrics"].built
            if settings.plan:
                say(f"  {named(key)}: {'there' if there else 'to be made'}")
                continue
            made[key] = _make(variant, shared)
            left = (time.monotonic() - start) / number * (len(wanted) - number)
            if not there or number == len(wanted):
                say(f"  {named(key)}: done, {number} of {len(wanted)}, {duration(left)} left")
    return None if settings.plan else _write(settings, made)


def _make(variant: schema.Settings, shared: Service) -> Made:
    addresses = Addresses(variant)
    if not all(addresses[kind].built for kind in addresses["run"].recipe.inputs if kind != "queries"):
        build_index.run(variant)
    with hushed():
        run_queries.run(variant, shared)
        score_run.run(variant)
    return finished(variant)


def _write(settings: schema.Settings, made: Mapping[Key, Made]) -> Address:
    node, measures = settings.compare, settings.metrics.measures
    simulated = suffix_of(made)
    inputs = {named(key): m.addresses["metrics"].name for key, m in made.items()}
    config = {"compare": schema.identity(node), "metrics": schema.identity(settings.metrics)}
    address = Address(Path(settings.artifacts.root) / "comparisons", Recipe("comparison", config, inputs))
    found = tables.results(made, measures, node.significance)
    shown = [tables.effect(made, found, measure, simulated) for measure in measures] + [tables.ledger(made, simulated)]
    for title, head, lines in shown:
        say(f"\n{title}")
        say(table(head, lines))
    if not address.built:
        with draft(address) as folder:
            long, per_query = tables.long(made, found), tables.per_query(made)
            comparison_files.write(folder, long, shown, per_query, tables.runs(settings, made))
            finish(address, {"runs": len(made), **({"judges": simulated} if simulated else {})})
    say(f"\ncomparison: {address.folder}")
    return address


main = session.job(run)

if __name__ == "__main__":
    main()
