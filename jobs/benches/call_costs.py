"""What one call to a model's replica costs the caller: the replica answers at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from actors.judges.judge import OK, Ask, Scores
from actors.line import Line
from conf import schema
from jobs import ray_session

CALLS = 500


class Echo:
    """A replica that answers at once."""

    async def answer(self, asks: list[Ask]) -> list[Scores]:
        return [Scores([0.0] * len(ask.rows), OK, {}) for ask in asks]


def call_costs(settings: schema.Settings) -> tuple[float, float]:
    """CPU milliseconds that a caller spends on one actor call and on one Serve call of a window of 20 documents."""
    ray_session.start_ray(settings.cluster)
    import ray
    from ray import serve

    actor = ray.remote(num_cpus=0.25)(Echo).remote()
    app = f"{ray_session.APP}-{ray.get_runtime_context().get_job_id()}"
    quiet = {"enable_access_log": False, "log_level": "ERROR"}
    serve.start(proxy_location="Disabled", logging_config=quiet)
    deployment = serve.deployment(Echo, name="reranker").options(ray_actor_options={"num_cpus": 0.25})
    handle = serve.run(deployment.bind(), name=f"{app}-reranker", route_prefix=None, logging_config=quiet)

    async def by_actor(asks: list[Ask]) -> Any:
        return await actor.answer.remote(asks)

    async def by_serve(asks: list[Ask]) -> Any:
        return await handle.answer.remote(asks)

    try:
        return asyncio.run(per_call(by_actor)), asyncio.run(per_call(by_serve))
    finally:
        serve.delete(f"{app}-reranker")


async def per_call(call: Callable[[list[Ask]], Awaitable[Any]]) -> float:
    """One request a call, through the line that searchers use."""
    line, ask = Line(call, batch_size=1, calls=1), Ask("", "q", "a query", list(range(20)))
    for _ in range(50):
        await line(ask)
    start = time.process_time()
    for _ in range(CALLS):
        await line(ask)
    return 1e3 * (time.process_time() - start) / CALLS
