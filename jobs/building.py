"""How an artifact is built: only when it is not there, with room foreseen, in a draft that is kept when the job is killed."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from actors.artifacts.store import Address, add_timings, draft, finish, open_manifest, open_timings
from conf import schema
from conf.load import BadConfig
from jobs.console import duration, end_if_interrupted, say
from jobs.ray_session import start_ray
from jobs.stages import Addresses

Make = Callable[[schema.Settings, Mapping[str, Path], Path], dict[str, Any]]


def build(
    settings: schema.Settings, kind: str, make: Make, *, ray: bool = True, needs: Mapping[str, float] | None = None
) -> Address:
    """Build one artifact, or say that it is there. `make` gets settings, the inputs' folders and the draft's, and returns counts.

    needs: foreseen megabytes of "disk" and "memory".
    """
    address = Addresses(settings)[kind]
    if _there(address):
        return address
    foreseen = "".join(f", {what} about {max(mib, 1):,.0f} MiB" for what, mib in (needs or {}).items() if mib)
    say(f"{kind}: {'would build' if settings.plan else 'building'} {address.folder}{foreseen}")
    if settings.plan:
        return address
    inputs = inputs_of(address)
    for name, folder in inputs.items():
        open_manifest(folder, name, checksums=True)
    _check_room(settings, needs or {})
    start = time.monotonic()
    with draft(address) as folder:
        if _there(address):  # another job was faster between the first look and the lock
            folder.rmdir()
            return address
        if ray:
            start_ray(settings.cluster)
        counts = make(settings, inputs, folder)
        end_if_interrupted()
        seconds = time.monotonic() - start
        add_timings(folder, [("", kind, seconds)])
        finish(address, counts)
    plain = [f"{name} {_short(value)}" for name, value in counts.items() if not isinstance(value, Mapping)]
    say(f"{kind}: done in {duration(seconds)}  " + "  ".join(plain))
    return address


def inputs_of(address: Address) -> dict[str, Path]:
    """kind -> folder of what an artifact is made from."""
    return {name: address.shelf / folder for name, folder in address.recipe.inputs.items()}


def _there(address: Address) -> bool:
    if address.built:
        open_manifest(address.folder, address.recipe.kind)
        say(f"{address.recipe.kind}: {address.name} is already built")
    return address.built


def count_of(settings: schema.Settings, kind: str, name: str) -> int:
    """A count of an artifact that is built; 0 while it is not: what is foreseen from it is foreseen when it can be."""
    address = Addresses(settings)[kind]
    return int(counts(address)[name]) if address.built else 0


def counts(address: Address) -> dict[str, Any]:
    """What a finished artifact's manifest counts."""
    return dict(open_manifest(address.folder, address.recipe.kind)["counts"])


def seconds(address: Address) -> float:
    """How long the artifact took to build, as its timings say."""
    return float(sum(line["seconds"] for line in open_timings(address.folder) if not line["query_id"]))


def _short(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _check_room(settings: schema.Settings, needs: Mapping[str, float]) -> None:
    root = Path(settings.artifacts.root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        writable = os.access(root, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise BadConfig("artifacts.root", str(root), "a folder that can be written to", "Set it, or GAREN_HOME, to another one.")
    free = {"disk": shutil.disk_usage(root).free / 2**20}
    if settings.cluster.address == "local":  # elsewhere the work is not done on this machine
        free["memory"] = available_memory_mb()
    for what, needed in needs.items():
        if needed > free.get(what, math.inf):
            where = f" below {root}" if what == "disk" else ""
            raise BadConfig(
                f"free {what}",
                f"{free[what]:,.0f} MiB",
                f"{math.ceil(needed):,} MiB{where}",
                "Free some, or use another machine or artifacts.root.",
            )


def available_memory_mb() -> float:
    """Memory that new processes may use, in MiB."""
    for line in Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").exists() else ():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
