"""The runs of a comparison: which there are, and what is known of those that are finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actors.algorithms.loops.methods import METHODS
from actors.artifacts import metrics as metric_files
from actors.artifacts.store import Address
from conf import schema
from conf.load import BadConfig
from jobs import building, session
from jobs.stages import Addresses

Key = tuple[str, str, int]  # collection, method, seed


@dataclass(frozen=True)
class Made:
    """A run that was made and scored."""

    settings: schema.Settings
    addresses: dict[str, Address]
    per_query: Mapping[str, Mapping[str, float]]
    usage: Mapping[str, Mapping[str, int]]


def part(made: Mapping[Key, Made], number: int) -> list[Any]:
    """The collections (0), methods (1) or seeds (2), in the order they were asked for."""
    return list(dict.fromkeys(key[number] for key in made))


def varied(made: Mapping[Key, Made], parameter: str) -> list[Key]:
    """The garen runs that differ from the first one in this parameter of the loop and the seed alone: others would blur it."""
    runs = {key: one for key, one in made.items() if isinstance(one.settings.loop, schema.GarenLoop)}

    def rest(one: Made) -> tuple[Any, ...]:
        loop = {name: given for name, given in schema.identity(one.settings.loop).items() if name != parameter}
        judges = [schema.identity(one.settings.answering.node_of(role)) for role in ("reranker", "navigator")]
        unseeded = [{name: given for name, given in judge.items() if name != "seed"} for judge in judges]
        return one.addresses["index"].name, loop, unseeded

    first = next(iter(runs.values()), None)
    return [key for key, one in runs.items() if first and rest(one) == rest(first)]


def variants(settings: schema.Settings) -> dict[Key, schema.Settings]:
    """The settings of every run: collection by collection, so that an index is used while its pages are warm."""
    node = settings.compare
    methods = node.methods or list(node.variants)
    if unknown := [name for name in methods if name not in node.variants]:
        raise BadConfig("compare.methods", unknown, f"some of {', '.join(node.variants)}", "Name variants of compare.variants.")
    collections = node.collections or {settings.corpus.name: []}
    return {
        (collection, method, seed): session.variant(
            settings, [*node.collections.get(collection, ()), *node.variants[method], f"run_seed={seed}"]
        )
        for collection in collections
        for method in methods
        for seed in node.seeds
    }


def finished(variant: schema.Settings) -> Made:
    """A run that is there, with its values and what it cost. Raises BadArtifact when it is not."""
    addresses = Addresses(variant)
    usage = building.counts(addresses["run"])["usage"]
    per_query = metric_files.open_metrics(addresses["metrics"].folder)["per_query"]
    return Made(variant, {kind: addresses[kind] for kind in ("run", "metrics", "index", "queries")}, per_query, usage)


def simulated(settings: schema.Settings) -> bool:
    """Whether a judge of this run answers from the relevance judgements: whatever shows its figures must say so."""
    asked = METHODS[settings.loop.method].asks
    return any(isinstance(settings.answering.node_of(role), schema.SimulatedJudge) for role in asked)


def suffix_of(made: Mapping[Key, Made]) -> str:
    """What every title must say of these runs."""
    return "simulated" if any(simulated(one.settings) for one in made.values()) else ""


def named(key: Key) -> str:
    """A run in words."""
    return f"{key[0]}, {key[1]}, seed {key[2]}"
