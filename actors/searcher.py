"""The searcher: drives one loop per query, many at once, and carries its requests to the reranker and the navigator."""

from __future__ import annotations

import asyncio
import functools
import json
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
    Request,
    Rerank,
    source_name,
)
from actors.algorithms.loops.methods import METHODS
from actors.artifacts.queries import Query
from actors.artifacts.run import Result, total_usage
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
    """A query's outcome with its ledger: role -> counters of each iteration, and seconds."""

    outcome: Outcome
    exchanges: list[dict[str, Counter[str]]]
    timings: dict[str, float]

    @property
    def usage(self) -> dict[str, dict[str, int]]:
        """The counters summed by role, and what the loop did."""
        roles: dict[str, dict[str, int]] = {"reranker": {}, "navigator": {}}
        return roles | total_usage(self.exchanges) | {"loop": _counts(self.outcome)}


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
        turns = [
            asdict(turn) | {"usage": json.dumps(exchange, sort_keys=True)}  # a loop asks once in an iteration
            for turn, exchange in zip(answered.outcome.iterations, answered.exchanges, strict=True)
        ]
        doc_ids = [self._index.corpus.doc_id(row) for row in answered.outcome.ranking]
        return Result(query.query_id, doc_ids, turns, answered.usage, answered.timings)

    async def explain(self, query: Query) -> Answered:
        """The same as rows, with every iteration."""
        start = time.perf_counter()
        pool = self._index.pool(query.text, query.excluded, self._first_stage)
        clock = {"first_stage": time.perf_counter() - start, "loop": 0.0, "models": 0.0}
        loop = self._method(pool, self._index, query.excluded, **self._parameters)
        outcome, exchanges = await self._drive(loop, query, clock)
        clock["total"] = time.perf_counter() - start
        return Answered(outcome, exchanges, clock)

    async def _drive(self, loop: Loop, query: Query, clock: dict[str, float]) -> tuple[Outcome, list[dict[str, Counter[str]]]]:
        """Carry what the loop asks to the judges, all requests of one iteration at once, until it returns its outcome."""
        answers: tuple[Answer, ...] | None = None
        exchanges: list[dict[str, Counter[str]]] = []
        while True:
            before = time.perf_counter()  # a loop never waits: its wall time is its CPU time
            try:
                requests = next(loop) if answers is None else loop.send(answers)
            except StopIteration as end:
                return end.value, exchanges
            finally:
                clock["loop"] += time.perf_counter() - before
            asked = time.perf_counter()
            exchanges.append({})
            answers = tuple(await asyncio.gather(*(self._ask(request, query, exchanges[-1]) for request in requests)))
            clock["models"] += time.perf_counter() - asked

    async def _ask(self, request: Request, query: Query, exchange: dict[str, Counter[str]]) -> Answer:
        ask = Ask(str(self._index.folder), query.query_id, query.text, list(request[0]))
        match request:
            case Rerank():
                ranking = await self._roles.rank(ask)
                exchange["reranker"] = _charge(ask, ranking.outcome, ranking.usage)
                return ranking.docs
            case Navigate():
                scores = await self._roles.score(ask)
                exchange["navigator"] = _charge(ask, scores.outcome, scores.usage)
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


def _charge(ask: Ask, outcome: str, usage: dict[str, int]) -> Counter[str]:
    return Counter({"calls": 1, "judged": len(ask.rows), f"outcome {outcome}": 1, **usage})


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
