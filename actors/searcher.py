"""The searcher: drives one loop per query, many at once, and carries its requests to the reranker, navigator and encoder."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, NamedTuple

from actors.algorithms.loops.dialogue import (
    POOL,
    Answer,
    CorpusGraph,
    Loop,
    Navigate,
    NavigateDocuments,
    Outcome,
    Reason,
    Reasoned,
    Request,
    Rerank,
    Similarity,
    source_name,
)
from actors.algorithms.loops.methods import METHODS
from actors.artifacts.queries import Query
from actors.artifacts.run import Exchange, Result
from actors.first_stage import Start, Usage, build_first_stage
from actors.index import Hit, Index, open_index
from actors.judges.judge import FAILED, GROUPS, OK, Ask, Scores, best_first
from actors.ledger import by_iteration, total, usage_by_role
from actors.roles import FINDER, Roles, in_process, served
from conf import schema

KEPT = 4  # searchers of an actor


class Explained(NamedTuple):
    """A query's outcome with what was asked in each iteration, what the first stage took, and seconds."""

    outcome: Outcome
    exchanges: list[list[Exchange]]
    first_stage: Usage
    timings: dict[str, float]

    @property
    def usage(self) -> dict[str, dict[str, int]]:
        """The counters summed by role, and what the loop did."""
        return total([self.first_stage, *map(usage_by_role, self.exchanges)], self.outcome)


class Searcher:
    """Answers queries over one index. Holds nothing of N entries; all arrays are memory-mapped."""

    def __init__(self, index: Index, answering: schema.Answering, roles: Roles, queries: str = "", lists: str = "") -> None:
        """queries: folder of the artifact that the queries come from, for judges that know the judgements. lists: folder of
        inverted lists of the index' embeddings; empty: those that the index knows of."""
        self._index = index
        self._first_stage = build_first_stage(answering.first_stage, index, roles.get(FINDER), lists)
        self._roles = roles
        self._queries = queries
        self._parameters: dict[str, Any] = asdict(answering.loop)
        self._method = METHODS[self._parameters.pop("method")].loop
        path = self._parameters.pop("neighbours", "")
        self._graph: CorpusGraph = index.with_neighbours(path) if path else index

    async def answer(self, query: Query) -> Result:
        """Run the loop of one query to its end."""
        explained = await self.explain(query)
        usages = [usage_by_role(exchanges) for exchanges in explained.exchanges]
        turns = zip(explained.outcome.iterations, usages, strict=True)
        trace = [vars(turn) | {"usage": json.dumps(usage, sort_keys=True)} for turn, usage in turns]
        answers = [{"iteration": t, **vars(e)} for t, exchanges in enumerate(explained.exchanges, 1) for e in exchanges]
        doc_ids = [self._index.corpus.doc_id(row) for row in explained.outcome.ranking]
        ledger = total([explained.first_stage, *usages], explained.outcome)
        return Result(query.query_id, doc_ids, trace, answers, ledger, explained.timings)

    async def begin(self, query: Query) -> Start:
        """The query's pool, and what it took."""
        return await self._first_stage(query)

    async def explain(self, query: Query) -> Explained:
        """The same as rows, with every iteration."""
        start = time.perf_counter()
        pool, took = await self.begin(query)
        clock = {"first_stage": time.perf_counter() - start, "loop": 0.0, "models": 0.0}
        loop = self._method(pool, self._graph, query.excluded, **self._parameters)
        outcome, exchanges = await self._drive(loop, query, clock)
        clock["total"] = time.perf_counter() - start
        return Explained(outcome, by_iteration(outcome.iterations, exchanges), took, clock)

    async def _drive(self, loop: Loop, query: Query, clock: dict[str, float]) -> tuple[Outcome, list[list[Exchange]]]:
        """Carry what the loop asks to the judges, all requests of one turn at once, until it returns its outcome."""
        answers: tuple[Answer, ...] | None = None
        exchanges: list[list[Exchange]] = []
        while True:
            before = time.perf_counter()  # a loop never waits: its wall time is its CPU time
            try:
                requests = next(loop) if answers is None else loop.send(answers)
            except StopIteration as end:
                return end.value, exchanges
            finally:
                clock["loop"] += time.perf_counter() - before
            asked = time.perf_counter()
            others = [asyncio.ensure_future(self._ask(request, query)) for request in requests[1:]]
            replies = [await self._ask(requests[0], query), *[await other for other in others]]  # all are under way together
            exchanges.append([exchange for _, exchange in replies])
            answers = tuple(answer for answer, _ in replies)
            clock["models"] += time.perf_counter() - asked

    async def _ask(self, request: Request, query: Query) -> tuple[Answer, Exchange]:
        role, ask = self._addressed(request, query)
        scores = await self._roles[role](ask)
        outcome = scores.outcome
        if outcome == OK and any(map(math.isnan, scores.values)):
            outcome = f"{FAILED}: no score"
        exchange = Exchange(
            role, ask.of, ask.rows, list(ask.texts), scores.values, list(scores.steps), scores.comparable, outcome, scores.usage
        )
        return _answer(request, scores), exchange

    def _addressed(self, request: Request, query: Query) -> tuple[str, Ask]:
        """Which role a request goes to, and what it is asked."""
        ask = Ask(str(self._index.folder), query.query_id, query.text, list(request[0]), queries=self._queries)
        match request:
            case Reason():
                return "reranker", ask._replace(plan=True)
            case Navigate():
                return "navigator", ask._replace(of=GROUPS)
            case NavigateDocuments():
                return "navigator", ask
            case Similarity():
                return "encoder", ask._replace(texts=list(request.texts))
        return "reranker", ask


def _answer(request: Request, scores: Scores) -> Answer:
    """What the loop is sent: a ranking, or the scores as they are."""
    match request:
        case Rerank():
            return best_first(request.docs, scores.values)
        case Reason():
            docs = best_first(request.docs, scores.values)
            return None if docs is None else Reasoned(docs, list(scores.steps))
        case Similarity():
            if any(map(math.isnan, scores.values)):
                return None
            width = len(request.docs)
            return [scores.values[first : first + width] for first in range(0, len(scores.values), width)]
    return scores.values


class Work(NamedTuple):
    """What a searcher needs to know of a run. queries, lists: folders, may be empty. apps: role -> Serve application."""

    index: str
    queries: str
    answering: schema.Answering
    apps: dict[str, str]
    lists: str = ""


class SearchActor:
    """A searcher as a Ray actor. Its methods are coroutines: one process keeps many queries in flight, of several runs."""

    def __init__(self, cluster: schema.Cluster) -> None:
        self._cluster = cluster
        self._searchers: dict[str, Searcher] = {}

    async def answer(self, work: Work, query: Query) -> Result:
        return await self._searcher(work).answer(query)

    async def hits(self, work: Work, query: Query, top: int) -> tuple[list[Hit], dict[str, dict[str, int]]]:
        explained = await self._searcher(work).explain(query)
        return hits(open_index(work.index), explained.outcome, top), explained.usage

    def _searcher(self, work: Work) -> Searcher:
        """A searcher for this work; the last few are kept, since a comparison goes from one run to the next."""
        key = repr(work)
        if key not in self._searchers:
            if len(self._searchers) == KEPT:
                del self._searchers[next(iter(self._searchers))]
            roles = {**in_process(work.answering, self._cluster), **(served(work.apps, self._cluster) if work.apps else {})}
            self._searchers[key] = Searcher(open_index(work.index), work.answering, roles, work.queries, work.lists)
        return self._searchers[key]


def pools_in_process(index: Index, answering: schema.Answering, queries: Sequence[Query], lists: str) -> list[list[int]]:
    """The rows of each query's pool, found here and now."""
    searcher = Searcher(index, answering, in_process(answering), lists=lists)

    async def begin() -> list[list[int]]:
        return [start.pool.docs for start in await asyncio.gather(*map(searcher.begin, queries))]

    return asyncio.run(begin())


def search_in_process(index: Index, answering: schema.Answering, text: str, top: int) -> list[Hit]:
    """Answer one query here and now. In a thread, since a notebook runs an event loop of its own in this one."""
    searcher = Searcher(index, answering, in_process(answering))
    with ThreadPoolExecutor(1) as thread:
        explained = thread.submit(asyncio.run, searcher.explain(Query("query", text, ()))).result()
    return hits(index, explained.outcome, top)


def hits(index: Index, outcome: Outcome, top: int) -> list[Hit]:
    """The first documents of an outcome, as a person reads them."""
    came_from = {doc: group for turn in outcome.iterations for doc, group in zip(turn.added, turn.added_from, strict=True)}
    found = []
    for rank, row in enumerate(outcome.ranking[:top], 1):
        group = int(index.group_of[row])
        source = source_name(came_from.get(row, POOL))
        found.append(Hit(rank, index.corpus.doc_id(row), index.corpus.text(row), group, index.summaries[group].concept, source))
    return found
