"""The searcher: drives one loop per query, many at once, and carries its requests to the reranker and the navigator."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, NamedTuple

from actors.algorithms.loops.dialogue import (
    NEIGHBOURS,
    POOL,
    Answer,
    Loop,
    Navigate,
    Outcome,
    Pool,
    Request,
    Rerank,
    source_name,
)
from actors.algorithms.loops.methods import METHODS
from actors.artifacts.queries import Query
from actors.artifacts.run import Result
from actors.index import Hit, Index, open_index
from actors.judges.judge import Ask, Scores
from actors.line import Line, ranking_failed, scores_failed
from actors.navigator import Navigator
from actors.reranker import Ranking, Reranker
from conf import schema

Rank = Callable[[Ask], Awaitable[Ranking]]
Score = Callable[[Ask], Awaitable[Scores]]


class Roles(NamedTuple):
    """How the two judges are reached."""

    rank: Rank
    score: Score


class Answered(NamedTuple):
    """A query's outcome with its ledger: usage by role, and seconds."""

    outcome: Outcome
    usage: dict[str, dict[str, int]]
    timings: dict[str, float]


class Searcher:
    """Answers queries over one index. Holds nothing of N entries; all arrays are memory-mapped."""

    def __init__(self, index: Index, answering: schema.Answering, roles: Roles) -> None:
        self._index = index
        self._first_stage = answering.first_stage
        self._roles = roles
        node = asdict(answering.loop)
        self._method = METHODS[node.pop("method")].loop
        self._parameters: dict[str, Any] = node

    async def answer(self, query: Query) -> Result:
        """Run the loop of one query to its end."""
        answered = await self.explain(query)
        usage = answered.usage
        turns = [asdict(turn) for turn in answered.outcome.iterations]
        doc_ids = [self._index.corpus.doc_id(row) for row in answered.outcome.ranking]
        return Result(query.query_id, doc_ids, turns, usage, answered.timings)

    async def explain(self, query: Query) -> Answered:
        """The same as rows, with every iteration."""
        start = time.perf_counter()
        pool = self._index.pool(query.text, query.excluded, self._first_stage)
        clock = {"first_stage": time.perf_counter() - start, "loop": 0.0, "models": 0.0}
        usage: dict[str, Counter[str]] = {"reranker": Counter(), "navigator": Counter()}
        outcome = await self._drive(self._loop(pool, query), query, usage, clock)
        clock["total"] = time.perf_counter() - start
        ledger = {role: dict(sorted(counters.items())) for role, counters in usage.items()}
        ledger["loop"] = _counts(outcome)
        return Answered(outcome, ledger, clock)

    def _loop(self, pool: Pool, query: Query) -> Loop:
        return self._method(pool, self._index, query.excluded, **self._parameters)

    async def _drive(self, loop: Loop, query: Query, usage: dict[str, Counter[str]], clock: dict[str, float]) -> Outcome:
        answers: tuple[Answer, ...] | None = None
        while True:
            before = time.perf_counter()  # a loop never waits: its wall time is its CPU time
            try:
                requests = next(loop) if answers is None else loop.send(answers)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            finally:
                clock["loop"] += time.perf_counter() - before
            asked = time.perf_counter()
            answers = tuple(await asyncio.gather(*(self._ask(request, query, usage) for request in requests)))
            clock["models"] += time.perf_counter() - asked

    async def _ask(self, request: Request, query: Query, usage: dict[str, Counter[str]]) -> Answer:
        ask = Ask(str(self._index.folder), query.query_id, query.text, list(request[0]))
        match request:
            case Rerank():
                ranking = await self._roles.rank(ask)
                _charge(usage["reranker"], len(ask.rows), ranking.outcome, ranking.usage)
                return ranking.docs
            case Navigate():
                scores = await self._roles.score(ask)
                _charge(usage["navigator"], len(ask.rows), scores.outcome, scores.usage)
                return scores.values


def in_process(index: Index, answering: schema.Answering) -> Roles:
    """Both judges inside this process, called directly: for judges that need no model server."""
    reranker = functools.cache(lambda: Reranker(answering.reranker, index.embeddings, index.models))
    navigator = functools.cache(lambda: Navigator(answering.navigator, index.embeddings, index.models))

    async def rank(ask: Ask) -> Ranking:
        return reranker().rank([ask])[0]  # loaded when first asked: not every method asks both

    async def score(ask: Ask) -> Scores:
        return navigator().score([ask])[0]

    return Roles(rank, score)


def served(app: str, cluster: schema.Cluster) -> Roles:
    """Both judges behind Ray Serve, as the applications `<app>-reranker` and `<app>-navigator`."""
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    reached = functools.cache(lambda role: serve.get_deployment_handle(role, f"{app}-{role}"))

    async def rank(asks: list[Ask]) -> list[Ranking]:
        return list(await reached("reranker").rank.remote(asks))  # looked up when first asked: not every method deploys both

    async def score(asks: list[Ask]) -> list[Scores]:
        return list(await reached("navigator").score.remote(asks))

    return Roles(
        Line(rank, ranking_failed, cluster.reranker.batch_size, cluster.reranker.calls_in_flight),
        Line(score, scores_failed, cluster.navigator.batch_size, cluster.navigator.calls_in_flight),
    )


class SearchActor:
    """A searcher as a Ray actor. Its methods are coroutines: one process keeps many queries in flight."""

    def __init__(self, index: str, answering: schema.Answering, app: str, cluster: schema.Cluster) -> None:
        """app: the name of the job's Serve applications; empty: the judges answer in this process."""
        self._index = open_index(index)
        roles = served(app, cluster) if app else in_process(self._index, answering)
        self._searcher = Searcher(self._index, answering, roles)

    async def answer(self, query: Query) -> Result:
        return await self._searcher.answer(query)

    async def hits(self, query: Query, top: int) -> tuple[list[Hit], dict[str, dict[str, int]]]:
        answered = await self._searcher.explain(query)
        return hits(self._index, answered.outcome, top), answered.usage


def search_in_process(index: Index, answering: schema.Answering, text: str, top: int) -> list[Hit]:
    """Answer one query here and now. In a thread, since a notebook runs an event loop of its own in this one."""
    searcher = Searcher(index, answering, in_process(index, answering))
    with ThreadPoolExecutor(1) as thread:
        answered = thread.submit(asyncio.run, searcher.explain(Query("query", text, ()))).result()
    return hits(index, answered.outcome, top)


def hits(index: Index, outcome: Outcome, top: int) -> list[Hit]:
    """The first documents of an outcome, as a person reads them."""
    came_from = {doc: group for turn in outcome.iterations for doc, group in zip(turn.added, turn.added_from, strict=True)}
    found = []
    for rank, row in enumerate(outcome.ranking[:top], 1):
        group = int(index.group_of[row])
        source = source_name(came_from.get(row, POOL))
        found.append(Hit(rank, index.corpus.doc_id(row), index.corpus.text(row), group, index.summaries[group].concept, source))
    return found


def _charge(counters: Counter[str], rows: int, outcome: str, usage: dict[str, int]) -> None:
    counters.update({"calls": 1, "judged": rows, f"outcome {outcome}": 1, **usage})


def _counts(outcome: Outcome) -> dict[str, int]:
    turns, ranking = outcome.iterations, len(outcome.ranking)
    sources = [source for turn in turns for source in turn.added_from]
    from_groups, from_neighbours = sum(source >= 0 for source in sources), sources.count(NEIGHBOURS)
    return {
        "iterations": len(turns),
        "documents": ranking,
        "from_groups": from_groups,
        "from_neighbours": from_neighbours,
        "from_pool": ranking - from_groups - from_neighbours,
        "reused_scores": sum(turn.reused_scores for turn in turns),
    }
