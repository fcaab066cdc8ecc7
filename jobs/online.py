"""Answering queries: the deployments of the roles that judge, and the pool of searchers that call them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actors.artifacts.queries import Query
from actors.artifacts.run import Result
from actors.engines.build import Place
from actors.roles import asked_by, deployed
from actors.searcher import SearchActor, Work
from conf import schema
from jobs.console import say
from jobs.ray_session import APP, check_cpus, start_ray
from jobs.stages import lists_of


class Service:
    """Searchers and the deployments they call, shared by all runs of a job. A role has one deployment: the last judge asked for."""

    def __init__(self, cluster: schema.Cluster) -> None:
        self._cluster = cluster
        self._pool: list[Any] = []
        self._deployed: dict[str, tuple[str, Any]] = {}  # role -> application, node
        self._count = 0

    def answer(self, settings: schema.Settings, index: Path, queries: Path, asked: list[Query]) -> Iterator[Result]:
        """Results in the order in which they are ready; every searcher has at most `queries_in_flight` queries at once."""
        import ray

        work = self._work(settings, index, str(queries), len(asked))
        waiting: dict[Any, Any] = {}
        free = [searcher for _ in range(self._cluster.searchers.queries_in_flight) for searcher in self._searchers(len(asked))]
        ahead = iter(asked)
        while True:
            while free and (query := next(ahead, None)) is not None:
                searcher = free.pop()
                waiting[searcher.answer.remote(work, query)] = searcher
            if not waiting:
                return
            ready, _ = ray.wait(list(waiting), num_returns=1)
            for reference in ready:
                free.append(waiting.pop(reference))
                yield ray.get(reference)

    def hits(self, settings: schema.Settings, index: Path, query: Query, top: int) -> Any:
        """The first documents of one answer, and what it cost."""
        import ray

        work = self._work(settings, index, "", 1)
        return ray.get(self._searchers(1)[0].hits.remote(work, query, top))

    def close(self) -> None:
        """End every searcher and deployment."""
        import ray

        for searcher in self._pool:
            ray.kill(searcher)
        self._pool = []
        for app, _ in self._deployed.values():
            _remove(app)
        self._deployed = {}

    def _searchers(self, wanted: int) -> list[Any]:
        import ray

        cluster = self._cluster.searchers
        while len(self._pool) < min(cluster.actors, wanted):
            actor = ray.remote(SearchActor).options(
                num_cpus=cluster.num_cpus,
                max_concurrency=cluster.queries_in_flight,
                max_restarts=3,
                max_task_retries=3,
            )
            self._pool.append(actor.remote(self._cluster))
        return self._pool[:wanted]

    def _work(self, settings: schema.Settings, index: Path, queries: str, wanted: int) -> Work:
        start_ray(self._cluster)
        served = () if self._cluster.in_process else asked_by(settings.answering)
        roles: dict[str, schema.Replicas] = {role: getattr(self._cluster, role) for role in served}
        searchers = min(wanted, self._cluster.searchers.actors) * self._cluster.searchers.num_cpus
        needs = {role: replicas.replicas * replicas.num_cpus for role, replicas in roles.items()}
        check_cpus(self._cluster, {**needs, "searchers": searchers})
        apps = {role: self._app(settings, role) for role in roles}
        return Work(str(index), queries, settings.answering, apps, lists_of(settings))

    def _app(self, settings: schema.Settings, role: str) -> str:
        """The role's application for this configuration; another judge's makes way for it."""
        import ray

        node = settings.answering.node_of(role)
        app, deployed = self._deployed.get(role, ("", None))
        if app and node == deployed:
            return app
        if app:
            _remove(self._deployed.pop(role)[0])
        app = f"{APP}-{ray.get_runtime_context().get_job_id()}-{role}-{self._count}"
        self._count += 1
        self._deployed[role] = (app, node)
        say(f"deploying {'' if role == 'encoder' else node.judge + ' '}{role} as {app}")
        _deploy(self._cluster, role, app, node)
        return app


@contextlib.contextmanager
def service(cluster: schema.Cluster) -> Iterator[Service]:
    """A service that ends with the block."""
    opened = Service(cluster)
    try:
        yield opened
    finally:
        opened.close()


def _deploy(cluster: schema.Cluster, role: str, app: str, node: schema.Reranker | schema.Navigator) -> None:
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    serve.start(proxy_location="Disabled", logging_config={"enable_access_log": False, "log_level": "ERROR"})
    replicas: schema.Replicas = getattr(cluster, role)
    deployment = serve.deployment(deployed(role), name=role).options(
        num_replicas=replicas.replicas,
        ray_actor_options={"num_cpus": replicas.num_cpus, "num_gpus": replicas.num_gpus},
        max_ongoing_requests=replicas.calls_in_flight * cluster.searchers.actors,
    )
    bound = deployment.bind(node, Place.of(replicas, cluster.endpoint))
    serve.run(bound, name=app, route_prefix=None, logging_config={"log_level": "ERROR"})


def _remove(app: str) -> None:
    from ray import serve

    with contextlib.suppress(KeyError):
        serve.delete(app)
