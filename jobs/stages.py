"""The flow: which nodes of the configuration and which artifacts each stage reads. This is the one place that says so."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from actors.algorithms.loops.methods import METHODS
from actors.artifacts.run import ANSWERS
from actors.artifacts.store import Address, Recipe
from actors.corpora import readers
from actors.engines.build import model_digest
from conf import schema
from jobs import outside
from jobs.outside import Digests


@dataclass(frozen=True)
class Stage:
    """nodes: what of the configuration enters. inputs: artifacts that are read."""

    nodes: tuple[str, ...]
    inputs: tuple[str, ...]


STAGES: Mapping[str, Stage] = {
    "corpus": Stage(("corpus",), ()),
    "embeddings": Stage(("embeddings",), ("corpus",)),
    "lists": Stage(("lists",), ("embeddings",)),
    "graph": Stage(("graph",), ("embeddings",)),  # and lists, where the number of documents, not known here, makes it approximate
    "groups": Stage(("groups",), ("graph",)),
    "lexicon": Stage(("lexicon",), ("corpus",)),
    "summaries": Stage(("summaries", "embeddings"), ("corpus", "embeddings", "groups", "lexicon")),
    "index": Stage(
        ("embeddings",),
        ("corpus", "embeddings", "graph", "groups", "lexicon", "summaries"),
    ),
    "queries": Stage(("queries",), ("corpus",)),
    "run": Stage(("first_stage", "loop", "reranker", "navigator"), ("index", "queries")),
    "metrics": Stage(("metrics",), ("queries", "run")),
}
# What these methods of groups read beside the graph; "groups": the Leiden groups that theirs are like.
LIKE_LEIDEN = {"kmeans": ("groups", "embeddings"), "random": ("groups",)}


class Addresses:
    """Where every artifact of a configuration lies, built or not. Files read from outside are digested when first needed."""

    def __init__(self, settings: schema.Settings) -> None:
        self._settings = settings
        self._shelf = Path(settings.artifacts.root) / settings.corpus.name
        self._known: dict[str, Address] = {}

    def __getitem__(self, kind: str) -> Address:
        if kind not in self._known:
            nodes = {name: getattr(self._settings, name) for name in self._nodes(kind)}
            recipe = Recipe(
                kind,
                config={name: schema.identity(node) for name, node in nodes.items()},
                inputs=self._inputs(kind),
                outside=self._outside(kind),
                aside={name: schema.places(node) for name, node in nodes.items()} | self._aside(kind),
            )
            self._known[kind] = Address(self._shelf, recipe)
        return self._known[kind]

    def _nodes(self, kind: str) -> tuple[str, ...]:
        """The nodes that a stage reads. A judge that a run never asks does not change it."""
        asked = METHODS[self._settings.loop.method].asks
        return tuple(n for n in STAGES[kind].nodes if kind != "run" or n not in ("reranker", "navigator") or n in asked)

    def _inputs(self, kind: str) -> dict[str, str]:
        """The artifacts that a stage reads: kind -> folder name."""
        names = {name: self[name].name for name in STAGES[kind].inputs}
        node = self._settings.groups
        if kind == "groups" and isinstance(node, schema.BroughtGroups):
            names["corpus"] = self["corpus"].name
        elif kind == "groups" and not isinstance(node, schema.Leiden):
            like = Addresses(dataclasses.replace(self._settings, groups=node.like))
            names |= {name: like[name].name for name in LIKE_LEIDEN[node.method]}
        if kind == "run" and self._settings.answering.reads_lists:
            names["lists"] = self["lists"].name
        return names

    def _outside(self, kind: str) -> dict[str, str]:
        """What a stage reads beside artifacts: label -> sha256 or version."""
        settings = self._settings
        files = outside.brought(settings, kind)
        if kind == "corpus":
            return readers.versions(settings.corpus) | self._files(settings.corpus)
        if kind == "queries":
            return readers.versions(settings.queries) | self._files(settings.queries)
        if kind == "embeddings":
            model = {"model": model_digest(settings.embeddings), **self._weights(embedder=settings.embeddings)}
            return model | self._digested(files)
        if kind == "summaries":
            return self._weights(summarizer=settings.summaries) | self._digested(files)
        if kind == "run":
            judges = {role: getattr(settings, role) for role in ("reranker", "navigator") if role in self._nodes(kind)}
            files |= {role: Path(j.path) for role, j in judges.items() if isinstance(j, schema.TableJudge)}
            files |= {role: Path(j.path) / ANSWERS for role, j in judges.items() if isinstance(j, schema.ReplayJudge)}
            return self._digested(files) | self._weights(**judges)
        return self._digested(files)

    def _digested(self, files: Mapping[str, Path]) -> dict[str, str]:
        return {what: self._digests.of(path) for what, path in files.items()}

    def _weights(self, **nodes: Any) -> dict[str, str]:
        """Role -> digest of a model's folder, where the name is one: a name at a hub has its revision, a folder may change."""
        named = {role: Path(getattr(getattr(node, "model", None), "name", "")) for role, node in nodes.items()}
        folders = {role: path for role, path in named.items() if path.is_absolute() and path.is_dir()}
        return {f"{role} model": self._digests.of_folder(folder) for role, folder in folders.items()}

    def _aside(self, kind: str) -> dict[str, Any]:
        """An index remembers how it was first meant to be searched, for those who open it without a configuration."""
        if kind != "index":
            return {}
        answering = self._settings.answering
        lists = {"lists": self["lists"].name} if answering.reads_lists else {}
        return {"answering": dataclasses.asdict(answering), **lists}

    def _files(self, node: schema.Corpus | schema.Queries) -> dict[str, str]:
        files = readers.files(node)
        base = os.path.commonpath([f.parent for f in files]) if files else ""
        return {os.path.relpath(f, base): self._digests.of(f) for f in files}

    @cached_property
    def _digests(self) -> Digests:
        return Digests(Path(self._settings.artifacts.root))


def lists_of(settings: schema.Settings) -> str:
    """The folder of the inverted lists that the first stage searches; empty where it reads none."""
    return str(Addresses(settings)["lists"].folder) if settings.answering.reads_lists else ""
