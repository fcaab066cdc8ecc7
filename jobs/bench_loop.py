"""What a query costs beside its models: the loop and its look-ups answered by tables in process, and what a served call adds.

Reads: index, queries. Writes: nothing.   python -m jobs.bench_loop corpus=scifact loop=garen
Prints CPU milliseconds; the last line is JSON. Cost: seconds.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from actors.artifacts.queries import Query, open_queries
from actors.artifacts.store import open_manifest
from actors.index import Index
from actors.judges.judge import GROUPS, OK, Ask, Scores
from actors.line import Line
from actors.roles import Roles
from actors.searcher import Searcher
from conf import schema
from jobs import ray_session, session
from jobs.console import say, table
from jobs.stages import Addresses

ROUNDS = 5
CALLS = 500


def run(settings: schema.Settings) -> None:
    """Time the loop alone, then plain actor calls and Serve calls that do nothing."""
    addresses = Addresses(settings)
    for kind in ("index", "queries"):
        open_manifest(addresses[kind].folder, kind)
    index, queries = Index.open(addresses["index"].folder), open_queries(addresses["queries"].folder)
    searcher = Searcher(index, settings.answering, table_roles(index))
    asyncio.run(answer(searcher, queries))  # maps and caches are warm from here on
    rounds = [asyncio.run(answer(searcher, queries)) for _ in range(ROUNDS)]
    loop, iteration, first_stage = (statistics.median(column) for column in zip(*rounds, strict=True))
    actor, served = call_costs(settings)
    costs = {"loop": loop, "iteration": iteration, "first stage": first_stage, "actor call": actor, "serve call": served}
    say(f"\n{settings.corpus.name}, {settings.loop.method}: {len(queries):,} queries answered by tables, median of {ROUNDS} rounds")
    words = (
        "a query beside its first stage",
        "one of its iterations",
        "first stage",
        "an actor call's caller",
        "a Serve call's caller",
    )
    say(table(("CPU of", "milliseconds"), zip(words, costs.values(), strict=True)))
    say(json.dumps({"corpus": settings.corpus.name, "method": settings.loop.method, **{k: round(v, 4) for k, v in costs.items()}}))


def table_roles(index: Index) -> Roles:
    """Judges that look a fixed random score up."""
    drawn = random.Random(0)
    documents = [drawn.random() for _ in range(len(index.corpus))]
    groups = [drawn.random() for _ in range(index.groups.count)]

    async def answer(ask: Ask) -> Scores:
        table = groups if ask.of == GROUPS else documents
        return Scores([table[row] for row in ask.rows], OK, {})

    return {"reranker": answer, "navigator": answer}


async def answer(searcher: Searcher, queries: list[Query]) -> tuple[float, float, float]:
    """CPU milliseconds: of a query beside its first stage, of one of its iterations, of its first stage."""
    start, iterations, first_stage = time.process_time(), 0, 0.0
    for query in queries:
        result = await searcher.answer(query)
        iterations += len(result.trace)
        first_stage += result.timings["first_stage"]
    beside = time.process_time() - start - first_stage
    return 1e3 * beside / len(queries), 1e3 * beside / max(iterations, 1), 1e3 * first_stage / len(queries)


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
    serve.start(proxy_location="Disabled", logging_config={"enable_access_log": False, "log_level": "ERROR"})
    deployment = serve.deployment(Echo, name="reranker").options(ray_actor_options={"num_cpus": 0.25})  # type: ignore[arg-type]
    handle = serve.run(deployment.bind(), name=f"{app}-reranker", route_prefix=None)

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


main = session.job(run)

if __name__ == "__main__":
    main()
