"""Groups against graspologic-native's hierarchical Leiden: CPU, memory, modularity and sizes on the same graphs, growing.

Reads: the configured corpus' graph, where it is built. Writes: nothing.   python -m jobs.bench_groups   (pip install -e '.[bench]')
Before it, planted graphs of SIZES documents with graph.k neighbours, by the parameters of `groups`. Sides take turns, each in a
process of its own; the rival has RIVAL_SECONDS on the clock and is left out of larger graphs once they were not enough. The last
line is JSON: ratios are ours / rival, below 1 where ours is cheaper. Cost: minutes up to 200,000 documents, then an hour;
memory: the rival's, 4 KB per document.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from actors.algorithms.planted import plant
from actors.artifacts import graph as graph_files
from actors.artifacts.blocks import open_array
from conf import schema
from conf.load import BadConfig
from jobs import leiden_parts, session
from jobs.benches.groups_sides import SIDES, Took, measure
from jobs.benches.measuring import spread
from jobs.console import say, table
from jobs.stages import Addresses

SIZES = (50_000, 200_000, 1_000_000)
ROUNDS = 3
ROUNDS_UP_TO = 250_000  # documents; larger graphs have one round
RIVAL_SECONDS = 1800.0
RIVAL = "graspologic_native"


def run(settings: schema.Settings) -> None:
    """Alternate both sides on every graph."""
    if not isinstance(settings.groups, schema.Leiden):
        raise BadConfig("groups", settings.groups.method, "leiden", "The other methods are not compared.")
    sides = [side for side in SIDES if side == "ours" or find_spec(side)]
    if RIVAL not in sides:
        say(f"{RIVAL} is not installed: only ours is measured (pip install -e '.[bench]')")
    results: dict[str, dict[str, list[Took]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, file in graphs(settings, Path(folder)):
            results[name] = took = rounds(settings.groups, file, sides)
            if RIVAL in sides and RIVAL not in took:
                say(f"{RIVAL} took more than {RIVAL_SECONDS:,.0f} seconds and is left out from here on")
                sides.remove(RIVAL)
            show(name, took)
    say(json.dumps({name: figures(took) for name, took in results.items()}))


def graphs(settings: schema.Settings, folder: Path) -> Iterator[tuple[str, Path]]:
    """Name and neighbour array of each graph, smallest first; one file at a time is on disk beside the corpus'."""
    address = Addresses(settings)["graph"]
    if address.built:
        yield settings.corpus.name, address.folder / graph_files.NEIGHBOURS
    for documents in SIZES:
        file = folder / "planted.npy"
        np.save(file, plant(documents, settings.graph.k, settings.seed).neighbours)
        yield f"planted {documents:,}", file


def rounds(node: schema.Leiden, file: Path, sides: list[str]) -> dict[str, list[Took]]:
    """What each side took, round by round; a side that was too slow once has no entry."""
    took: dict[str, list[Took]] = {side: [] for side in sides}
    for _ in range(ROUNDS if len(open_array(file)) <= ROUNDS_UP_TO else 1):
        for side in list(took):
            found = measure(side, file, leiden_parts.how_of(node), RIVAL_SECONDS if side == RIVAL else None)
            if found is None:
                del took[side]
            else:
                took[side].append(found)
    return took


def show(name: str, took: Mapping[str, list[Took]]) -> None:
    """One line per side: medians of what was measured; the groups are the same in every round."""
    say(f"\n{name} documents, {len(took['ours'])} rounds, medians")
    lines = [
        (side, _median(one.cpu for one in each), _median(one.peak for one in each), *each[0][2:]) for side, each in took.items()
    ]
    say(table(("side", "CPU s", "peak MiB", "groups", "smallest", "mean", "largest", "modularity of level 0", "of groups"), lines))


def figures(took: Mapping[str, list[Took]]) -> dict[str, Any]:
    """What the last line says of one graph."""
    told: dict[str, Any] = {}
    for side, each in took.items():
        first = each[0]
        told[side] = {
            "cpu": round(_median(one.cpu for one in each), 2),
            "peak_mib": round(_median(one.peak for one in each)),
            "modularity": [round(first.level0, 5), round(first.modularity, 5)],
            "sizes": [first.minimum, round(first.mean, 2), first.maximum],
        }
    if RIVAL in took:
        told |= spread(a.cpu / b.cpu for a, b in zip(took["ours"], took[RIVAL], strict=True))
    return told


def _median(values: Iterator[float]) -> float:
    return float(statistics.median(values))


main = session.job(run)

if __name__ == "__main__":
    main()
