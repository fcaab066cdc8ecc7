"""What lies in the folders of all corpora, what is made from what, and how it is removed.

A job that builds in a corpus' folder (a shelf) holds that shelf's lock until it ends, since it will come to need what lies there
between two stages; who removes holds it alone. What is removed is first renamed, so that it is there whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from actors.artifacts.store import FORMATS, MANIFEST, bytes_of, sync

LOCKS = ".locks"  # below the root, one file per shelf
REMOVED = ".removed-"  # before the name of what is being removed
NAMED = re.compile(rf"({'|'.join(FORMATS)})-[0-9a-f]{{12}}(\.partial)?")
FINISHED, UNFINISHED, AT_WORK, DAMAGED = "finished", "unfinished", "being written", "damaged"

_working: dict[Path, IO[str]] = {}


@dataclass(frozen=True)
class Found:
    """An artifact on disk. needs: the keys of what it was made from, as far as that is there."""

    folder: Path
    kind: str
    state: str
    bytes: int
    changed: float  # seconds since 1970
    needs: frozenset[str]


def key_of(folder: Path) -> str:
    """`<corpus>/<kind>-<identity>`, or with `.partial`."""
    return f"{folder.parent.name}/{folder.name}"


def find(root: Path) -> dict[str, Found]:
    """All artifacts below a root by key, in the order of corpora, kinds as the stages are, and names. Nothing else is looked at."""
    folders = [p for p in root.glob("*/*") if p.is_dir() and NAMED.fullmatch(p.name)]
    by_name: dict[str, list[str]] = {}
    for folder in folders:
        by_name.setdefault(folder.name, []).append(key_of(folder))
    found = [_found(root, folder, by_name) for folder in folders]
    kinds = list(FORMATS)
    found.sort(key=lambda one: (one.folder.parent.name, kinds.index(one.kind), one.folder.name))
    return {key_of(one.folder): one for one in found}


def _found(root: Path, folder: Path, by_name: Mapping[str, list[str]]) -> Found:
    lock = lock_of(folder)
    manifest = folder / MANIFEST
    if folder.suffix:
        state, told = AT_WORK if is_held(lock) else UNFINISHED, _read(lock)
    else:
        told = _read(manifest)
        state = FINISHED if told else DAMAGED
    names = {*told.get("inputs", {}).values(), *_strings(told.get("aside", {}))}
    needs = {key for name in names for key in _keys(root, folder, str(name), by_name)} - {key_of(folder)}
    changed = max((p.stat().st_mtime for p in (manifest, folder) if p.exists()), default=0.0)
    kind = folder.name.rpartition("-")[0]
    return Found(folder, kind, state, bytes_of(folder), changed, frozenset(needs))


def lock_of(folder: Path) -> Path:
    """The lock of an artifact's draft; it tells what the draft is made from."""
    return folder.parent / f".{folder.name.removesuffix('.partial')}.lock"


def _read(file: Path) -> dict[str, Any]:
    """A manifest or a lock; empty when it cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        told = json.loads(file.read_text())
        if isinstance(told, dict) and isinstance(told.get("inputs"), dict):
            return told
    return {}


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping | list):
        for inner in node.values() if isinstance(node, Mapping) else node:
            yield from _strings(inner)


def _keys(root: Path, folder: Path, name: str, by_name: Mapping[str, list[str]]) -> list[str]:
    """The artifacts that a name means: beside this one, else in any corpus (a comparison's runs); or the one a path leads into."""
    if name in by_name:
        beside = f"{folder.parent.name}/{name}"
        return [beside] if beside in by_name[name] else by_name[name]
    path = Path(name)
    if path.is_absolute() and path.is_relative_to(root):
        shelf, *below = path.relative_to(root).parts or ("",)
        return [f"{shelf}/{below[0]}"] if below and f"{shelf}/{below[0]}" in by_name.get(below[0], ()) else []
    return []


def needed(needs: Mapping[str, Set[str]], roots: Iterable[str]) -> set[str]:
    """The roots and everything that they are made from, however far down."""
    found: set[str] = set()
    left = list(roots)
    while left:
        key = left.pop()
        if key not in found:
            found.add(key)
            left += needs.get(key, ())
    return found


def dependents_first(needs: Mapping[str, Set[str]], keys: Iterable[str]) -> list[str]:
    """The keys, each before what it is made from: a removal that is killed leaves nothing without its inputs."""
    order: dict[str, None] = {}
    of_interest = sorted(keys)

    def after(key: str, above: frozenset[str]) -> None:
        for inner in sorted(needs.get(key, ())):
            if inner in wanted and inner not in order and inner not in above:
                after(inner, above | {key})
        order[key] = None

    wanted = set(of_interest)
    for key in of_interest:
        if key not in order:
            after(key, frozenset())
    return list(order)[::-1]


def remove(folder: Path) -> None:
    """Remove an artifact so that it is there whole or not at all, whenever this is killed."""
    away = folder.with_name(REMOVED + folder.name)
    shutil.rmtree(away, ignore_errors=True)
    folder.rename(away)
    sync(folder.parent)
    if folder.suffix:
        lock_of(folder).unlink(missing_ok=True)
    shutil.rmtree(away)


def left_behind(root: Path) -> list[Path]:
    """What a removal that was killed has left below a root; it may be deleted."""
    return [p for p in root.glob(f"*/{REMOVED}*") if p.is_dir()]


def is_held(lock: Path) -> bool:
    """Whether a living process holds a lock file."""
    with contextlib.suppress(FileNotFoundError), lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def working_on(shelf: Path) -> None:
    """Tell others, until this process ends, that what lies on this shelf is needed. Waits while somebody removes there."""
    if shelf not in _working:
        locks = shelf.parent / LOCKS
        with contextlib.suppress(OSError):  # where nothing can be written, nothing can be removed
            locks.mkdir(parents=True, exist_ok=True)
            lock = (locks / shelf.name).open("a")
            fcntl.flock(lock, fcntl.LOCK_SH)
            _working[shelf] = lock


@contextlib.contextmanager
def alone_on(shelf: Path) -> Iterator[bool]:
    """Whether no other process works on this shelf; if so, none begins to before the context ends."""
    locks = shelf.parent / LOCKS
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / shelf.name).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
