"""How a searcher reaches the roles that judge: inside its own process, or behind Ray Serve."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from actors.encoder import Encoder
from actors.judges.judge import Ask, Scores
from actors.line import Line
from actors.navigator import Navigator
from actors.reranker import Reranker
from conf import schema

Roles = Mapping[str, Callable[[Ask], Awaitable[Scores]]]
SHELLS: Mapping[str, Any] = {"reranker": Reranker, "navigator": Navigator, "encoder": Encoder}


def in_process(answering: schema.Answering) -> Roles:
    """The judges inside this process, called directly: for judges that need no model server."""

    def reached(role: str, node: Any) -> Callable[[Ask], Awaitable[Scores]]:
        shell = functools.cache(lambda: SHELLS[role](node))  # loaded when first asked: not every method asks all

        async def answer(ask: Ask) -> Scores:
            (scores,) = await shell().answer([ask])
            return scores

        return answer

    return {role: reached(role, answering.node_of(role)) for role in SHELLS}


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
