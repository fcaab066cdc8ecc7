"""Where artifacts lie, what makes two of them the same, and when one is finished.

An artifact is a folder `<root>/<corpus name>/<kind>-<identity>`. It is written beside its final name (`.partial`), its manifest
last,
and then renamed: a folder that has its final name is finished. Its identity is a hash of everything its bytes depend on, so that
"already built" is a question to the file system and a stale result cannot be served.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FORMATS = {  # raise a number when the files of a kind change their meaning
    "corpus": 1, "queries": 1, "embeddings": 1, "lists": 1, "graph": 1, "groups": 1, "lexicon": 1, "summaries": 2, "index": 1,
    "run": 2, "metrics": 1, "comparison": 1, "analysis": 1,
}  # fmt: skip
JOBS = {  # the job of a kind, where it is not build_<kind>
    "run": "run_queries", "metrics": "score_run", "comparison": "compare_methods", "analysis": "analyse_runs",
}  # fmt: skip
MANIFEST = "manifest.json"
TIMINGS = "timings.parquet"  # clocks and retries: outside identity, checksums and byte comparison
ROOM = "room.json"  # bytes foreseen and taken, beside the timings
ASIDE = (TIMINGS, ROOM)
TIMING = pa.schema([("query_id", pa.string()), ("name", pa.string()), ("seconds", pa.float64())])
PACKAGES = ("numpy", "pyarrow", "faiss-cpu", "faiss-gpu", "igraph", "PyStemmer", "onnxruntime", "tokenizers", "vllm")


class BadArtifact(Exception):
    """An artifact that is missing, unfinished, of another format or damaged. The message names the file and the remedy."""


@dataclass(frozen=True)
class Recipe:
    """Everything an artifact's bytes depend on: the stage's configuration, the identities of its inputs, what was read from
    outside.

    inputs: kind -> folder name, all below the same corpus' folder. outside: what -> sha256 or version.
    aside: kept in the manifest, but no part of the identity: where things were found.
    """

    kind: str
    config: Mapping[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)
    outside: Mapping[str, str] = field(default_factory=dict)
    aside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """12 hexadecimal digits of the sha256 over all of it."""
        facts = [self.kind, FORMATS[self.kind], self.config, self.inputs, self.outside]
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=dict).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Address:
    """Where the artifact of a recipe lies, built or not."""

    shelf: Path  # <root>/<corpus name>
    recipe: Recipe

    @property
    def name(self) -> str:
        return f"{self.recipe.kind}-{self.recipe.identity}"

    @property
    def folder(self) -> Path:
        return self.shelf / self.name

    @property
    def partial(self) -> Path:
        return self.shelf / f"{self.name}.partial"

    @property
    def built(self) -> bool:
        return (self.folder / MANIFEST).exists()


@contextlib.contextmanager
def draft(address: Address) -> Iterator[Path]:
    """The folder in which the artifact is written, with what an earlier attempt left in it. Only one process may hold it at a time.

    Raises BadArtifact when another living process is building the same artifact.
    """
    address.partial.mkdir(parents=True, exist_ok=True)
    with (address.shelf / f".{address.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadArtifact(f"{address.partial} is being written by another job. Wait until it ends, or end it.") from None
        json.dump({"inputs": address.recipe.inputs, "aside": address.recipe.aside}, lock, default=dict)  # for `shelves`
        lock.flush()
        yield address.partial
        Path(lock.name).unlink(missing_ok=True)


def finish(address: Address, counts: Mapping[str, Any]) -> Path:
    """Seal a draft: checksums and manifest are written, then the folder gets its final name. Returns the folder."""
    for torn in [p for p in address.partial.iterdir() if p.name.startswith(".") or p.name.endswith(".new")]:
        torn.unlink()  # a write that was killed before its rename, here or in `blocks`
    files = {p.name: [p.stat().st_size, sha256(p)] for p in sorted(address.partial.iterdir()) if p.name not in (MANIFEST, *ASIDE)}
    manifest = {
        "kind": address.recipe.kind,
        "format": FORMATS[address.recipe.kind],
        "config": address.recipe.config,
        "inputs": address.recipe.inputs,
        "outside": address.recipe.outside,
        "aside": address.recipe.aside,
        "counts": counts,
        "files": files,
        "packages": _versions(),
    }
    write_text(address.partial / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True, default=dict) + "\n")
    address.partial.rename(address.folder)
    sync(address.shelf)
    return address.folder


def open_manifest(folder: Path, kind: str, *, checksums: bool = False) -> dict[str, Any]:
    """A finished artifact's manifest, after its kind, its format and its files' sizes were compared (`checksums`:
    their sha256 too).
    """
    path = folder / MANIFEST
    if not path.exists():
        state = "is unfinished" if folder.with_name(folder.name + ".partial").exists() else "does not exist"
        job = JOBS.get(kind, f"build_{kind}")
        raise BadArtifact(f"{folder} {state}. Run its job: python -m jobs.{job} with the same settings.")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        _ = [manifest[key] for key in ("kind", "format", "files", "config", "inputs", "aside", "counts")]
    except (ValueError, KeyError, TypeError) as error:
        raise BadArtifact(f"{path}: no manifest ({error!r}). Remove {folder} and run its job again.") from None
    if (manifest["kind"], manifest["format"]) != (kind, FORMATS[kind]):
        raise BadArtifact(
            f"{path}: {manifest['kind']} format {manifest['format']}, expected {kind} format {FORMATS[kind]}. Build it again."
        )
    for name, (size, digest) in manifest["files"].items():
        file = folder / name
        if not file.exists() or file.stat().st_size != size:
            found = file.stat().st_size if file.exists() else "missing"
            raise BadArtifact(f"{file}: expected {size} bytes, found {found}. Remove {folder} and run its job again.")
        if checksums and sha256(file) != digest:
            raise BadArtifact(f"{file}: its sha256 is not the manifest's {digest}. Remove {folder} and run its job again.")
    return manifest


def sha256(path: Path) -> str:
    """Digest of a file's bytes, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    beside = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")  # two jobs may write digests.json at once
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def sync(folder: Path) -> None:
    """Make renames in a folder survive a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def add_timings(folder: Path, lines: Sequence[tuple[str, str, float]]) -> None:
    """Add (query_id, name, seconds) lines to a draft's timings; the query_id of a whole stage is empty."""
    path = folder / TIMINGS
    new = pa.Table.from_pylist([dict(zip(TIMING.names, line, strict=True)) for line in lines], schema=TIMING)
    pq.write_table(pa.concat_tables([pq.read_table(path), new]) if path.exists() else new, path)


def write_room(folder: Path, foreseen: Mapping[str, int], taken: Mapping[str, int]) -> None:
    """Keep what a stage was thought to take, and what it took, in bytes."""
    write_text(folder / ROOM, json.dumps({"foreseen": foreseen, "taken": taken}, indent=1, sort_keys=True) + "\n")


def open_room(folder: Path) -> dict[str, dict[str, int]]:
    """The keys foreseen and taken, each with bytes by name."""
    room: dict[str, dict[str, int]] = json.loads((folder / ROOM).read_text())
    return room


def bytes_of(folder: Path) -> int:
    """Of all files below a folder; those that vanish meanwhile do not count."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_size
    return total


def is_built(folder: Path) -> bool:
    """Whether an artifact is finished."""
    return (folder / MANIFEST).exists()


def open_timings(folder: Path) -> list[dict[str, Any]]:
    """Lines with the keys query_id, name, seconds."""
    lines: list[dict[str, Any]] = pq.read_table(folder / TIMINGS).to_pylist()
    return lines


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
