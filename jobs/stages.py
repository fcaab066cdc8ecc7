"""The flow: which nodes of the configuration and which artifacts each stage reads. This is the one place that says so."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from actors.algorithms.loops.methods import METHODS
from actors.artifacts.run import ANSWERS
from actors.artifacts.store import Address, Recipe, sha256, write_text
from actors.corpora import python_docs, readers
from actors.engines.build import model_digest
from conf import schema


@dataclass(frozen=True)
class Stage:
    """nodes: what of the configuration enters. inputs: artifacts that are read."""

    nodes: tuple[str, ...]
    inputs: tuple[str, ...]


STAGES: Mapping[str, Stage] = {
    "corpus": Stage(("corpus",), ()),
    "embeddings": Stage(("embeddings",), ("corpus",)),
    "graph": Stage(("graph",), ("embeddings",)),
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
BUILT_FOR_AN_INDEX = ("corpus", "embeddings", "graph", "groups", "lexicon", "summaries")


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
        if kind == "groups" and not isinstance(node, schema.Leiden):
            like = Addresses(dataclasses.replace(self._settings, groups=node.like))
            names |= {name: like[name].name for name in LIKE_LEIDEN[node.method]}
        return names

    def _outside(self, kind: str) -> dict[str, str]:
        """What a stage reads beside artifacts: label -> sha256 or version."""
        settings = self._settings
        if kind == "corpus":
            own = {"python": python_docs.version()} if settings.corpus.reader == "python_docs" else {}
            return own | self._files(settings.corpus)
        if kind == "queries":
            return self._files(settings.queries)
        if kind == "embeddings":
            return {"model": model_digest(settings.embeddings), **self._weights(embedder=settings.embeddings)}
        if kind == "summaries":
            return self._weights(summarizer=settings.summaries)
        if kind == "run":
            judges = {role: getattr(settings, role) for role in ("reranker", "navigator") if role in self._nodes(kind)}
            files = {role: Path(j.path) for role, j in judges.items() if isinstance(j, schema.TableJudge)}
            files |= {role: Path(j.path) / ANSWERS for role, j in judges.items() if isinstance(j, schema.ReplayJudge)}
            if path := getattr(settings.loop, "neighbours", ""):
                files["neighbours"] = Path(path)
            return {what: self._digests.of(path) for what, path in files.items()} | self._weights(**judges)
        return {}

    def _weights(self, **nodes: Any) -> dict[str, str]:
        """Role -> digest of a model's folder, where the name is one: a name at a hub has its revision, a folder may change."""
        named = {role: Path(getattr(getattr(node, "model", None), "name", "")) for role, node in nodes.items()}
        folders = {role: path for role, path in named.items() if path.is_absolute() and path.is_dir()}
        return {f"{role} model": self._digests.of_folder(folder) for role, folder in folders.items()}

    def _aside(self, kind: str) -> dict[str, Any]:
        """An index remembers how it was first meant to be searched, for those who open it without a configuration."""
        return {"answering": dataclasses.asdict(self._settings.answering)} if kind == "index" else {}

    def _files(self, node: schema.Corpus | schema.Queries) -> dict[str, str]:
        files = readers.files(node)
        base = os.path.commonpath([f.parent for f in files]) if files else ""
        return {os.path.relpath(f, base): self._digests.of(f) for f in files}

    @cached_property
    def _digests(self) -> Digests:
        return Digests(Path(self._settings.artifacts.root))


class Digests:
    """sha256 of files read from outside, remembered by path, size and time of change: a corpus of gigabytes is read once for it."""

    def __init__(self, root: Path) -> None:
        self._path = root / "digests.json"
        self._known: dict[str, list[str]] = {}
        with contextlib.suppress(OSError, ValueError):  # without it files are read again, and nothing else is different
            self._known = json.loads(self._path.read_text())

    def of(self, path: Path) -> str:
        """Digest of one file. Raises FileNotFoundError naming it."""
        stat = path.stat()
        state = f"{stat.st_size} {stat.st_mtime_ns}"
        state_and_digest = self._known.get(str(path))
        if state_and_digest is None or state_and_digest[0] != state:
            state_and_digest = self._known[str(path)] = [state, sha256(path)]
            with contextlib.suppress(OSError):  # an index is also searched where nothing can be written
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_text(self._path, json.dumps(self._known, indent=1, sort_keys=True))
        return state_and_digest[1]

    def of_folder(self, folder: Path) -> str:
        """Digest of the names and contents of all files directly in a folder and below it."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        lines = "".join(f"{path.relative_to(folder)} {self.of(path)}\n" for path in files)
        return hashlib.sha256(lines.encode()).hexdigest()
