"""Summarise every group: a concept of a few words and a few sentences, and their vector.

Reads: corpus, embeddings, groups, lexicon. Writes: summaries.   python -m jobs.build_summaries corpus=scifact
summaries.max_sentences=6
Cost: 2 to 4 ms of CPU per group with the extractive method; resumed by parts of cluster.summarizer.part_rows groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray

from actors.artifacts import store, summaries as summary_files
from actors.artifacts.groups import open_groups
from actors.artifacts.store import Address
from actors.engines.build import Place
from actors.summarizer import BroughtPart, DescribePart, ExtractPart
from conf import schema
from jobs import brought, building, costs, session
from jobs.batch import map_spans
from jobs.console import say

SHOWN = 20
PARTS = {"extractive": ExtractPart, "llm": DescribePart, "brought": BroughtPart}
TEXT_BYTES = 1500  # of a group's description and what is told of it, in its part and in the file of all
STAND_IN = "extractive"  # the outcome of a summary that stands in for a model's


def run(settings: schema.Settings) -> Address:
    """Build the summaries artifact and show twenty of its concepts."""
    address = building.build(settings, "summaries", make, needs={"disk": _disk(settings) / 2**20})
    node = settings.summaries
    if isinstance(node, schema.LlmSummaries):
        inputs = building.inputs_of(address)
        if address.built:
            used = building.counts(address).get("usage", {})
            costs.show({"summarizer": used}, {"summarizer": node.model}, settings.prices, foreseen=False)
        elif settings.plan and all(store.is_built(folder) for folder in inputs.values()):
            foreseen = costs.of_summaries(node, inputs, settings.prices)
            costs.show({"summarizer": foreseen}, {"summarizer": node.model}, settings.prices, foreseen=True)
    if address.built and not settings.plan:
        show(address.folder)
    return address


def _disk(settings: schema.Settings) -> float:
    """Bytes, as far as groups and vectors are there to foresee them by: a vector lies in its part, and in the file of all."""
    d = building.count_of(settings, "embeddings", "dimension")
    return building.count_of(settings, "groups", "groups") * (TEXT_BYTES + 2 * 2 * d)


def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
    pool, node = settings.cluster.summarizer, settings.summaries
    groups = open_groups(inputs["groups"]).count
    spans = summary_files.missing_parts(folder, groups, pool.part_rows)
    worker = {
        "inputs": {kind: str(path) for kind, path in inputs.items()},
        "draft": str(folder),
        "node": node,
        "model": settings.embeddings,
        "cache": str(Path(settings.artifacts.root) / "models"),
        "place": Place.of(pool, settings.cluster.endpoint),
    }
    if isinstance(node, schema.BroughtSummaries) and spans:
        ray.get(ray.remote(num_cpus=1)(brought.summaries).remote(node, folder, groups))
    map_spans(settings.cluster, pool, PARTS[node.method], worker, spans, ("summaries", groups, "groups"))
    if isinstance(node, schema.LlmSummaries):
        _check_stand_ins(folder, node.stand_ins * groups)
    usage = summary_files.usage_so_far(folder)
    return {"groups": groups, "outcomes": summary_files.join(folder, groups), **({"usage": usage} if usage else {})}


def _check_stand_ins(folder: Path, most: float) -> None:
    stand_ins = summary_files.outcomes_so_far(folder).get(STAND_IN, 0)
    if stand_ins > most:
        summary_files.forget(folder, STAND_IN)
        raise ValueError(
            f"summaries: {stand_ins:,} groups got no answer that can be used, expected at most {math.floor(most):,} "
            "(summaries.stand_ins). What was answered is kept: run the job again to ask for these again, or use a model that "
            "follows the prompt."
        )


def show(folder: Path) -> None:
    """Concepts of groups spread evenly over the corpus: can a person tell them apart?"""
    summaries = summary_files.open_summaries(folder)
    shown = range(0, len(summaries), max(1, len(summaries) // SHOWN))
    say(f"  {min(SHOWN, len(summaries))} of {len(summaries):,} concepts:")
    for group in list(shown)[:SHOWN]:
        say(f"    {group:>6}  {summaries[group].concept}")


main = session.job(run)

if __name__ == "__main__":
    main()
