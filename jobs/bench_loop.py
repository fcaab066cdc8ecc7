"""What a query costs beside its models: the loop and its look-ups answered by tables in process, and what a served call adds.

Reads: index and queries, where they are built. Writes: nothing.   python -m jobs.bench_loop corpus=scifact loop=garen
First garen on planted graphs of SIZES documents, in turn with the same written with dictionaries and sets, whose answers must be
equal; then the configured loop over the index, and calls. All is CPU milliseconds; the last line is JSON, its ratios ours /
dictionaries, growth the cost on the largest graph / on the smallest. Cost: a few minutes; memory 2 KB per planted document.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from typing import Any

from actors.artifacts.queries import Query, open_queries
from actors.first_stage import Start
from actors.index import Index
from actors.judges.judge import GROUPS, OK, Ask, Scores
from actors.roles import Roles
from actors.searcher import Searcher
from conf import schema
from jobs import session
from jobs.benches import loop_growth
from jobs.benches.call_costs import call_costs
from jobs.benches.measuring import spread
from jobs.console import say, table
from jobs.stages import Addresses

ROUNDS = 5
SIZES = (10_000, 100_000, 1_000_000)


def run(settings: schema.Settings) -> None:
    """Time the loop as the corpus grows; then over the index, with plain actor calls and Serve calls that do nothing."""
    told = growth(settings) | over_index(settings)
    say(json.dumps({"corpus": settings.corpus.name, "method": settings.loop.method, **told}))


def growth(settings: schema.Settings) -> dict[str, Any]:
    """The cost of an iteration of garen by the size of the corpus."""
    loop = settings.loop
    if not isinstance(loop, schema.GarenLoop) or not loop_growth.is_the_papers(loop):
        say("the growth with the corpus is measured for garen in the paper's setting only")
        return {}
    costs = {documents: loop_growth.measure(documents, settings.graph.k, loop, settings.run_seed) for documents in SIZES}
    lines = [
        (documents, statistics.median(cost.ours), statistics.median(cost.dictionaries), statistics.median(cost.ratios))
        for documents, cost in costs.items()
    ]
    say(f"\nplanted graphs, {loop_growth.QUERIES} queries, medians of {loop_growth.ROUNDS} alternating rounds, one iteration")
    say(table(("documents", "milliseconds", "with dictionaries", "ratio"), lines))
    ratios = costs[SIZES[-1]].ratios
    return {
        "documents": SIZES,
        "milliseconds": [round(ours, 4) for _, ours, *_ in lines],
        "growth": round(lines[-1][1] / lines[0][1], 3),
        **spread(ratios),
    }


def over_index(settings: schema.Settings) -> dict[str, Any]:
    """The configured loop over the configured index, and what calls cost."""
    addresses = Addresses(settings)
    if not (addresses["index"].built and addresses["queries"].built):
        say(f"no index or no queries of {settings.corpus.name} as configured: nothing is measured over them")
        return {}
    index, queries = Index.open(addresses["index"].folder), open_queries(addresses["queries"].folder)
    searcher = Timed(index, settings.answering, table_roles(index))
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
    return {name: round(cost, 4) for name, cost in costs.items()}


def table_roles(index: Index) -> Roles:
    """Judges that look a fixed random score up."""
    drawn = random.Random(0)
    documents = [drawn.random() for _ in range(len(index.corpus))]
    groups = [drawn.random() for _ in range(index.groups.count)]

    async def answer(ask: Ask) -> Scores:
        table = groups if ask.of == GROUPS else documents
        return Scores([table[row] for row in ask.rows], OK, {})

    return {"reranker": answer, "navigator": answer}


class Timed(Searcher):
    """A searcher that adds up the CPU seconds of its first stage, where it answers one query after another."""

    first_stage = 0.0

    async def begin(self, query: Query) -> Start:
        start = time.process_time()  # not a wall clock, which goes on while others have the core
        found = await super().begin(query)
        self.first_stage += time.process_time() - start
        return found


async def answer(searcher: Timed, queries: list[Query]) -> tuple[float, float, float]:
    """CPU milliseconds: of a query beside its first stage, of one of its iterations, of its first stage."""
    start, iterations, before = time.process_time(), 0, searcher.first_stage
    for query in queries:
        iterations += len((await searcher.answer(query)).trace)
    first_stage = searcher.first_stage - before
    beside = time.process_time() - start - first_stage
    return 1e3 * beside / len(queries), 1e3 * beside / max(iterations, 1), 1e3 * first_stage / len(queries)


main = session.job(run)

if __name__ == "__main__":
    main()
