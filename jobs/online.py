"""Answering queries: the reranker's and the navigator's deployments, and the pool of searchers that call them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from actors.artifacts.queries import Query
from actors.artifacts.run import Result
from actors.navigator import Navigator
from actors.reranker import Reranker
from actors.searcher import SearchActor
from conf import schema
from jobs.console import say
from jobs.session import APP, check_cpus, start_ray


@contextlib.contextmanager
def searchers(settings: schema.Settings, index: Path, wanted: int) -> Iterator[list[Any]]:
    """A pool of at most `wanted` searcher actors over one index, with what they call; everything ends with the block."""
    import ray

    cluster = settings.cluster
    start_ray(cluster)
    count = min(cluster.searchers.actors, wanted)
    roles = {} if cluster.in_process else {"reranker": cluster.reranker, "navigator": cluster.navigator}
    cpus = {name: role.replicas * role.num_cpus for name, role in roles.items()}
    check_cpus(cluster, {**cpus, "searchers": count * cluster.searchers.num_cpus})
    app = "" if cluster.in_process else f"{APP}-{ray.get_runtime_context().get_job_id()}"
    pool: list[Any] = []
    try:
        if app:
            _deploy(settings, app)
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
            _remove(app)


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


def _deploy(settings: schema.Settings, app: str) -> None:
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    serve.start(proxy_location="Disabled", logging_config={"enable_access_log": False, "log_level": "ERROR"})
    say(f"deploying {settings.reranker.judge} reranker and {settings.navigator.judge} navigator as {app}")
    cache = str(Path(settings.artifacts.root) / "models")
    for name, shell, node, replicas in (
        ("reranker", Reranker, settings.reranker, settings.cluster.reranker),
        ("navigator", Navigator, settings.navigator, settings.cluster.navigator),
    ):
        deployment = serve.deployment(shell, name=name).options(  # type: ignore[arg-type]
            num_replicas=replicas.replicas,
            ray_actor_options={"num_cpus": replicas.num_cpus, "num_gpus": replicas.num_gpus},
            max_ongoing_requests=replicas.calls_in_flight * settings.cluster.searchers.actors,
        )
        serve.run(
            deployment.bind(node, settings.embeddings, cache),
            name=f"{app}-{name}",
            route_prefix=None,
            logging_config={"log_level": "ERROR"},
        )


def _remove(app: str) -> None:
    from ray import serve

    for name in ("reranker", "navigator"):
        with contextlib.suppress(KeyError):
            serve.delete(f"{app}-{name}")
