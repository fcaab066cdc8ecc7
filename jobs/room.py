"""Room on disk and in memory: refused before a stage when it is short, and measured while the stage is at work."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

from actors.artifacts.store import bytes_of
from conf import schema
from conf.load import BadConfig

MIB = 2**20
EVERY = 1.0  # seconds between two looks
INSTEAD = {
    "disk": "Remove what is not needed (python -m jobs.artifacts prune plan=true), or give artifacts.root=... on another disk.",
    "memory": "End what else runs here, use a machine with more, or fewer documents or neighbours.",
}


def check(settings: schema.Settings, kind: str, needs: Mapping[str, float]) -> None:
    """Raise BadConfig, with the figures, when there is less than `needs` in MiB, or nowhere to write."""
    root = Path(settings.artifacts.root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        writable = os.access(root, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise BadConfig("artifacts.root", str(root), "a folder that can be written to", "Set it, or GAREN_HOME, to another one.")
    free = {"disk": shutil.disk_usage(root).free / MIB}
    if settings.cluster.address == "local":  # elsewhere the work is not done on this machine
        free["memory"] = available_memory_mb()
    for what, needed in needs.items():
        if needed > free.get(what, math.inf):
            where = f" below {root}" if what == "disk" else ""
            found = f"{free[what]:,.0f} MiB"
            raise BadConfig(f"{kind}: free {what}", found, f"{math.ceil(needed):,} MiB{where}, as foreseen", INSTEAD[what])


def available_memory_mb() -> float:
    """Memory that new processes may use, in MiB."""
    for line in Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").exists() else ():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / MIB


class Watch:
    """The most that a draft has on disk, and that this process and those below it have in memory, while the context lasts.

    Memory is what processes have of their own: files that they map are not counted. 0 where /proc does not tell.
    """

    def __init__(self, draft: Path) -> None:
        self._draft = draft
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="room", daemon=True)
        self._most = {"disk": 0, "memory": 0}
        self._before = own_memory(os.getpid())

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def taken(self) -> dict[str, int]:
        """Bytes of "disk" now, of "most disk" and "most memory" until now, and of the "memory before"."""
        self._look()
        most = {f"most {what}": number for what, number in self._most.items()}
        return {"disk": bytes_of(self._draft), **most, "memory before": self._before}

    def _run(self) -> None:
        while not self._end.wait(EVERY):
            self._look()

    def _look(self) -> None:
        for what, found in (("disk", bytes_of(self._draft)), ("memory", own_memory(os.getpid()))):
            self._most[what] = max(self._most[what], found)


def own_memory(root: int) -> int:
    """Bytes of anonymous memory of a process and of all below it."""
    parents, memory = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError, KeyError):  # it may end while it is looked at
            status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
            memory[int(process.name)] = int(status["RssAnon"].split()[0]) * 1024
            parents[int(process.name)] = int(status["PPid"])
    return sum(size for pid, size in memory.items() if _is_below(pid, root, parents))


def _is_below(pid: int, root: int, parents: Mapping[int, int]) -> bool:
    seen: set[int] = set()
    while pid != root and pid in parents and pid not in seen:
        seen.add(pid)
        pid = parents[pid]
    return pid == root


def told(needs: Mapping[str, float], taken: Mapping[str, int]) -> str:
    """What a stage took, in MiB, beside what was foreseen. taken: as a `Watch` tells it."""
    foreseen = {what: f" (foreseen {needs[what]:,.1f})" if needs.get(what) else "" for what in ("disk", "memory")}
    on_disk = f"disk {taken['disk'] / MIB:,.1f} MiB, at most {taken['most disk'] / MIB:,.1f} on the way{foreseen['disk']}"
    more = (taken["most memory"] - taken["memory before"]) / MIB
    return f"{on_disk}; memory at most {more:,.0f} MiB more than before{foreseen['memory']}"
