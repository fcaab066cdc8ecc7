"""Answering queries: the reranker's and the navigator's deployments, and the pool of searchers that call them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from actors.algorithms.loops.methods import METHODS
from actors.artifacts.queries import Query
from actors.artifacts.run import Result
from actors.navigator import Navigator
from actors.reranker import Reranker
from actors.searcher import SearchActor
from conf import schema
from jobs.console import say
from jobs.ray_session import APP, check_cpus, start_ray

SHELLS = {"reranker": Reranker, "navigator": Navigator}


@contextlib.contextmanager
def searchers(settings: schema.Settings, index: Path, wanted: int) -> Iterator[list[Any]]:
    """A pool of at most `wanted` searcher actors over one index, with what they call; everything ends with the block."""
    import ray

    cluster = settings.cluster
    start_ray(cluster)
    count = min(cluster.searchers.actors, wanted)
    asked = () if cluster.in_process else METHODS[settings.loop.method].asks
    roles: dict[str, schema.Replicas] = {name: getattr(cluster, name) for name in asked}
    cpus = {name: role.replicas * role.num_cpus for name, role in roles.items()}
    check_cpus(cluster, {**cpus, "searchers": count * cluster.searchers.num_cpus})
    app = f"{APP}-{ray.get_runtime_context().get_job_id()}" if roles else ""
    pool: list[Any] = []
    try:
        if app:
            _deploy(settings, app, roles)
        actor = ray.remote(SearchActor).options(
            num_cpus=cluster.searchers.num_cpus,
            max_concurrency=cluster.searchers.queries_in_flight,
            max_restarts=3,
            max_task_retries=3,
        )
        pool = [actor.remote(str(index), settings.answering, app, cluster) for _ in range(count)]
        yield pool
    finally:
        for searcher in pool:
            ray.kill(searcher)
        if app:
            _remove(app, roles)


def answer_all(pool: list[Any], in_flight: int, queries: Iterable[Query]) -> Iterator[Result]:
    """Results in the order in which they are ready; every searcher has at most `in_flight` queries at once."""
    import ray

    waiting: dict[Any, Any] = {}
    free = [searcher for _ in range(in_flight) for searcher in pool]
    ahead = iter(queries)
    while True:
        while free and (query := next(ahead, None)) is not None:
            searcher = free.pop()
            waiting[searcher.answer.remote(query)] = searcher
        if not waiting:
            return
        ready, _ = ray.wait(list(waiting), num_returns=1)
        for reference in ready:
            free.append(waiting.pop(reference))
            yield ray.get(reference)


def _deploy(settings: schema.Settings, app: str, roles: Mapping[str, schema.Replicas]) -> None:
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    serve.start(proxy_location="Disabled", logging_config={"enable_access_log": False, "log_level": "ERROR"})
    say(f"deploying {' and '.join(f'{getattr(settings, name).judge} {name}' for name in roles)} as {app}")
    cache = str(Path(settings.artifacts.root) / "models")
    for name, replicas in roles.items():
        deployment = serve.deployment(SHELLS[name], name=name).options(  # type: ignore[arg-type]
            num_replicas=replicas.replicas,
            ray_actor_options={"num_cpus": replicas.num_cpus, "num_gpus": replicas.num_gpus},
            max_ongoing_requests=replicas.calls_in_flight * settings.cluster.searchers.actors,
        )
        serve.run(
            deployment.bind(getattr(settings, name), settings.embeddings, cache),
            name=f"{app}-{name}",
            route_prefix=None,
            logging_config={"log_level": "ERROR"},
        )


def _remove(app: str, roles: Iterable[str]) -> None:
    from ray import serve

    for name in roles:
        with contextlib.suppress(KeyError):
            serve.delete(f"{app}-{name}")
