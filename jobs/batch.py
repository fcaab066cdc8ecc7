"""Batch stages: a pool of Ray Data actors works through spans of rows; what is on disk already is not among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conf import schema
from jobs.console import Progress
from jobs.ray_session import check_cpus

READER_CPUS = 1.0  # Ray Data's read task takes a whole CPU beside the pool and waits without a word when there is none


def map_spans(
    cluster: schema.Cluster,
    pool: schema.ActorPool,
    worker: type,
    arguments: Mapping[str, Any],
    spans: Sequence[tuple[int, int]],
    told: tuple[str, int, str],
) -> None:
    """Give every (first, last) span to a pool of `worker(**arguments)`, which writes its part and returns its rows.
    told: stage, total, unit.
    """
    import ray.data

    if not spans:
        return
    check_cpus(cluster, {"pool": min(pool.actors, len(spans)) * pool.num_cpus, "reader": READER_CPUS})
    what, total, unit = told
    progress = Progress(what, total, unit, done=total - sum(last - first for first, last in spans))
    blocks = ray.data.from_items([{"first": first, "last": last} for first, last in spans], override_num_blocks=len(spans))
    done = blocks.map_batches(
        worker,
        fn_constructor_kwargs=dict(arguments),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(pool.actors, len(spans))),
        num_cpus=pool.num_cpus,
        num_gpus=pool.num_gpus or None,
    )
    for line in done.iter_rows():
        progress.advance(int(line["rows"]))


def run_tasks(tasks: Sequence[Any], told: tuple[str, int, str], done: int = 0) -> None:
    """Wait for Ray tasks, telling how far they are; each returns how many units it did. told: stage, total, unit."""
    import ray

    what, total, unit = told
    progress = Progress(what, total, unit, done)
    waiting = list(tasks)
    while waiting:
        ready, waiting = ray.wait(waiting)
        progress.advance(sum(ray.get(ready)))
