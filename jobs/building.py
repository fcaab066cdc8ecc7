"""How an artifact is built: only when it is not there, with room foreseen, in a draft that is kept when the job is killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from actors.artifacts.shelves import working_on
from actors.artifacts.store import Address, add_timings, draft, finish, open_manifest, open_timings, write_room
from conf import schema
from jobs import room
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
    address, needs = Addresses(settings)[kind], needs or {}
    if not settings.plan:
        working_on(address.shelf)
    if _there(address):
        return address
    foreseen = "".join(f", {what} about {max(mib, 1):,.0f} MiB" for what, mib in needs.items() if mib)
    say(f"{kind}: {'would build' if settings.plan else 'building'} {address.folder}{foreseen}")
    if settings.plan:
        return address
    inputs = inputs_of(address)
    for name, folder in inputs.items():
        open_manifest(folder, name, checksums=True)
    room.check(settings, kind, needs)
    start = time.monotonic()
    with draft(address) as folder:
        if _there(address):  # another job was faster between the first look and the lock
            folder.rmdir()
            return address
        if ray:
            start_ray(settings.cluster)
        with room.Watch(folder) as watch:
            counts = make(settings, inputs, folder)
            taken = watch.taken()
        end_if_interrupted()
        seconds = time.monotonic() - start
        add_timings(folder, [("", kind, seconds)])
        write_room(folder, {what: round(mib * room.MIB) for what, mib in needs.items()}, taken)
        finish(address, counts)
    plain = [f"{name} {_short(value)}" for name, value in counts.items() if not isinstance(value, Mapping)]
    say(f"{kind}: done in {duration(seconds)}  " + "  ".join([*plain, room.told(needs, taken)]))
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
