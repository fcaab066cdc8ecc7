"""How a searcher reaches the roles that judge: inside its own process, or behind Ray Serve."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from actors.algorithms.loops.methods import METHODS
from actors.encoder import Encoder
from actors.engines.build import Place
from actors.finder import Find, Found, not_found
from actors.judges.judge import Ask, Scores
from actors.line import Line
from actors.navigator import Navigator
from actors.reranker import Reranker
from conf import schema

FINDER = "finder"  # among the roles: the encoder's search for documents, asked with a Find and answered with a Found
IN_PROCESS_BATCH = 16  # queries that share a pass over the vectors where no cluster says how many
Roles = Mapping[str, Callable[[Any], Awaitable[Any]]]
SHELLS: Mapping[str, Any] = {"reranker": Reranker, "navigator": Navigator, "encoder": Encoder}


def asked_by(answering: schema.Answering) -> tuple[str, ...]:
    """The roles that answering a query asks: those of the loop, and the encoder where the first stage needs a query's vector."""
    finder = ("encoder",) if answering.finds else ()
    return tuple(dict.fromkeys((*METHODS[answering.loop.method].asks, *finder)))


def deployed(role: str) -> type[Any]:
    """The role's class as Serve deploys it: a replica is ready when its judge is."""
    shell = SHELLS[role]

    async def start(self: Any, node: Any, place: Place) -> None:
        shell.__init__(self, node, place)
        await self.start()

    return type(shell.__name__, (shell,), {"__init__": start})


def in_process(answering: schema.Answering, cluster: schema.Cluster | None = None) -> Roles:
    """The judges inside this process, called directly: for judges that need no model server. cluster: for those of endpoints."""

    starting: dict[str, asyncio.Task[Any]] = {}

    async def start(role: str) -> Any:
        # no GPU is this process' own: searchers reserve none
        place = Place.of(getattr(cluster, role), cluster.endpoint)._replace(num_gpus=0.0) if cluster else None
        shell = SHELLS[role](answering.node_of(role), place)
        await shell.start()
        return shell

    async def started(role: str) -> Any:
        if role not in starting:  # loaded when first asked: not every method asks all
            starting[role] = asyncio.ensure_future(start(role))
        return await starting[role]

    def reached(role: str) -> Callable[[Ask], Awaitable[Scores]]:
        async def answer(ask: Ask) -> Scores:
            (scores,) = await (await started(role)).answer([ask])
            return scores

        return answer

    async def find(asked: list[Find]) -> list[Found]:
        return list(await (await started("encoder")).find(asked))

    batch_size = cluster.encoder.batch_size if cluster else IN_PROCESS_BATCH
    return {role: reached(role) for role in SHELLS} | {FINDER: Line(find, batch_size, 1, None)}


def served(apps: Mapping[str, str], cluster: schema.Cluster) -> Roles:
    """The judges behind Ray Serve. apps: role -> its application."""
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.ERROR)

    def reached(role: str, verb: str = "answer", **options: Any) -> Line:
        handle = getattr(serve.get_deployment_handle(role, apps[role]), verb)

        async def answer(asks: list[Any]) -> list[Any]:
            return list(await handle.remote(asks))

        replicas: schema.Replicas = getattr(cluster, role)
        return Line(answer, replicas.batch_size, replicas.calls_in_flight, **options)

    finder = {FINDER: reached("encoder", "find", stand_in=not_found)} if "encoder" in apps else {}
    return {role: reached(role) for role in apps} | finder
