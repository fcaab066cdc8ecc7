"""How a searcher reaches the roles that judge: inside its own process, or behind Ray Serve."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from actors.encoder import Encoder
from actors.engines.build import Place
from actors.judges.judge import Ask, Scores
from actors.line import Line
from actors.navigator import Navigator
from actors.reranker import Reranker
from conf import schema

Roles = Mapping[str, Callable[[Ask], Awaitable[Scores]]]
SHELLS: Mapping[str, Any] = {"reranker": Reranker, "navigator": Navigator, "encoder": Encoder}


def deployed(role: str) -> type[Any]:
    """The role's class as Serve deploys it: a replica is ready when its judge is."""
    shell = SHELLS[role]

    async def start(self: Any, node: Any, place: Place) -> None:
        shell.__init__(self, node, place)
        await self.start()

    return type(shell.__name__, (shell,), {"__init__": start})


def in_process(answering: schema.Answering, cluster: schema.Cluster | None = None) -> Roles:
    """The judges inside this process, called directly: for judges that need no model server. cluster: for those of endpoints."""

    def reached(role: str) -> Callable[[Ask], Awaitable[Scores]]:
        starting: list[asyncio.Task[Any]] = []

        async def start() -> Any:
            place = Place.of(getattr(cluster, role), cluster.endpoint) if cluster else None
            shell = SHELLS[role](answering.node_of(role), place)
            await shell.start()
            return shell

        async def answer(ask: Ask) -> Scores:
            if not starting:  # loaded when first asked: not every method asks all
                starting.append(asyncio.ensure_future(start()))
            (scores,) = await (await starting[0]).answer([ask])
            return scores

        return answer

    return {role: reached(role) for role in SHELLS}


def served(apps: Mapping[str, str], cluster: schema.Cluster) -> Roles:
    """The judges behind Ray Serve. apps: role -> its application."""
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.ERROR)

    def reached(role: str) -> Line:
        handle = serve.get_deployment_handle(role, apps[role])

        async def answer(asks: list[Ask]) -> list[Scores]:
            return list(await handle.answer.remote(asks))

        replicas: schema.Replicas = getattr(cluster, role)
        return Line(answer, replicas.batch_size, replicas.calls_in_flight)

    return {role: reached(role) for role in apps}
