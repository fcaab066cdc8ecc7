"""Where methods find what they find: recall by iteration, distance of the gold, fate of its group, effect against cost.

Reads: the runs of jobs.compare_methods with the same overrides. Writes: an analysis: tables (CSV) and figures (PNG).
python -m jobs.analyse_runs corpus=scifact compare.methods=[slidegar,garen]
Cost: seconds; distances on the graph of 4.6 million documents take about a second a query.
"""

from __future__ import annotations

import csv
from pathlib import Path

from actors.artifacts.store import Address, Recipe, draft, finish
from conf import schema
from jobs import analysis_figures as figures, session
from jobs.comparing import finished, part, suffix_of, variants
from jobs.console import say, table


def run(settings: schema.Settings) -> Address | None:
    """Write all tables and figures of the runs that there are, and show the tables."""
    wanted = variants(settings)
    if settings.plan:
        say(f"analysis: would read {len(wanted)} runs")
        return None
    made = {key: finished(variant) for key, variant in wanted.items()}
    suffix = suffix_of(made)
    config = {"compare": schema.identity(settings.compare)}
    inputs = {f"{c}, {m}, seed {s}": one.addresses["metrics"].name for (c, m, s), one in made.items()}
    address = Address(Path(settings.artifacts.root) / "comparisons", Recipe("analysis", config, inputs))
    if not address.built:
        with draft(address) as folder:
            for collection in part(made, 0):
                of_it = {key: one for key, one in made.items() if key[0] == collection}
                figures.effect(folder, collection, of_it, suffix)
                figures.cost(folder, collection, of_it, settings.metrics.measures[0], suffix)
            finish(address, {"runs": len(made), **({"judges": suffix} if suffix else {})})
    for path in sorted(address.folder.glob("*.csv")):
        head, *lines = csv.reader(path.open(encoding="utf-8"))
        say(f"\n{path.stem}{f' ({suffix} judges)' if suffix else ''}")
        say(table(head, lines))
    say(f"\nanalysis: {address.folder}")
    return address


main = session.job(run)

if __name__ == "__main__":
    main()
