"""What artifacts there are, what each was made from and what needs it; and the removal of those that nothing needs.

Reads: all manifests below artifacts.root. Writes: nothing; prune removes.
python -m jobs.artifacts list   |   python -m jobs.artifacts prune plan=true   (artifacts.only=scifact: one corpus)
prune keeps all finished artifacts of artifacts.keep_kinds, or only those that artifacts.keep names, and whatever they are made
from; unfinished work, and what that is made from, unless artifacts.keep_unfinished=false; and every corpus that a job works on.
plan=true says what it would remove. Cost: seconds.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from actors.artifacts import shelves
from actors.artifacts.shelves import AT_WORK, DAMAGED, FINISHED, UNFINISHED, Found
from conf import schema
from conf.load import BadConfig
from jobs import session
from jobs.console import say, table

MIB = 2**20
VERBS = ("list", "prune")


def run(settings: schema.Settings) -> None:
    """List or prune, as `do` says."""
    node, root = settings.artifacts, Path(settings.artifacts.root)
    if settings.do not in VERBS:
        raise BadConfig("do", settings.do, " or ".join(VERBS), "Write python -m jobs.artifacts list.")
    if node.only and not (root / node.only).is_dir():
        there = ", ".join(sorted({key.partition("/")[0] for key in shelves.find(root)})) or "nothing"
        raise BadConfig("artifacts.only", node.only, f"a corpus with artifacts below {root} ({there})", "Name one of them.")
    if settings.do == "list":
        show(shelves.find(root), root, node.only)
    else:
        prune(settings, root)


def show(found: Mapping[str, Found], root: Path, only: str) -> None:
    """One line per artifact, numbered, so that a line can say which others it was made from and which need it."""
    number = {key: n for n, key in enumerate(found, 1)}
    users: dict[str, list[int]] = {key: [] for key in found}
    for key, one in found.items():
        for inner in one.needs:
            users[inner].append(number[key])
    for shelf in sorted({one.folder.parent for one in found.values() if only in ("", one.folder.parent.name)}):
        here = {key: one for key, one in found.items() if one.folder.parent == shelf}
        at_work = ", a job is at work here" if shelves.is_held(shelf.parent / shelves.LOCKS / shelf.name) else ""
        say(f"\n{shelf.name}: {sum(one.bytes for one in here.values()) / MIB:,.1f} MiB{at_work}")
        lines = [
            (number[key], one.folder.name, one.state, one.bytes / MIB, age(one.changed),
             _numbers(number[inner] for inner in one.needs), _numbers(users[key]))
            for key, one in here.items()
        ]  # fmt: skip
        say(table(("", "artifact", "state", "MiB", "age", "made from", "needed by"), lines))
    if not found:
        say(f"no artifacts below {root}")


def age(changed: float) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = max(0.0, time.time() - changed)
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _numbers(numbers: Iterable[int]) -> str:
    return " ".join(map(str, sorted(numbers))) or "-"


def prune(settings: schema.Settings, root: Path) -> None:
    """Remove what nothing that is kept needs, dependents first."""
    with contextlib.ExitStack() as locks:
        rests = shelves.left_behind(root)
        places = {one.folder.parent for one in shelves.find(root).values()} | {rest.parent for rest in rests}
        busy = {shelf for shelf in sorted(places) if not locks.enter_context(shelves.alone_on(shelf))}
        for shelf in sorted(busy):
            say(f"{shelf.name}: a job is at work here, so all of it is kept")
        found = shelves.find(root)  # once more: until here a job may have built something
        _check_names(found, settings.artifacts.keep)
        needs = {key: one.needs for key, one in found.items()}
        node, only = settings.artifacts, settings.artifacts.only
        kept = shelves.needed(needs, [key for key in found if _is_root(key, found[key], node, busy)])
        unneeded = [key for key in found if key not in kept and only in ("", found[key].folder.parent.name)]
        for key in unneeded:
            say(f"  {key}  {found[key].bytes / MIB:,.1f} MiB  {found[key].state}")
        total = sum(found[key].bytes for key in unneeded)
        say(f"{'would remove' if settings.plan else 'removing'} {len(unneeded)} of {len(found)} artifacts, {total / MIB:,.1f} MiB")
        if not settings.plan:
            for key in shelves.dependents_first(needs, unneeded):
                shelves.remove(found[key].folder)
            for rest in rests:
                if rest.parent not in busy:
                    shutil.rmtree(rest, ignore_errors=True)


def _is_root(key: str, one: Found, node: schema.Artifacts, busy: set[Path]) -> bool:
    """Whether an artifact is kept for its own sake. One that is damaged is: what it was made from is not known."""
    if one.folder.parent in busy or one.state in (AT_WORK, DAMAGED):
        return True
    if one.state == UNFINISHED:
        return node.keep_unfinished
    return one.folder.name in node.keep or key in node.keep if node.keep else one.state == FINISHED and one.kind in node.keep_kinds


def _check_names(found: Mapping[str, Found], names: list[str]) -> None:
    known = {*found, *(one.folder.name for one in found.values())}
    if unknown := [name for name in names if name not in known]:
        raise BadConfig("artifacts.keep", unknown, "names as python -m jobs.artifacts list shows them", "Mend them.")


main = session.job(run)

if __name__ == "__main__":
    main()
