"""The first stage: from a query to its pool, by BM25, by vectors, by both, or from a run that was brought in.

Excluded documents are never in a pool. Equal scores are ordered by row; a run has its own order.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.algorithms import dense
from actors.algorithms.fusion import min_max, weighted_sum
from actors.algorithms.loops.dialogue import Pool
from actors.artifacts.queries import Query
from actors.corpora import trec_run
from actors.finder import Find, Found
from actors.index import Index, Lexical, open_index
from actors.judges.judge import OK
from conf import schema

Usage = Mapping[str, Mapping[str, int]]
FIRST_STAGE = "first_stage"  # in the ledger, beside the roles: what is to be told of a run that was brought in
SLICE = 0.02  # seconds of retrieving after which the event loop has its turn
UNKNOWN, NO_LINE = "ids that the corpus does not have", "queries without a line in the run"

WHY_EMPTY = {  # what an empty pool means, by method
    "bm25": "the question shares no word with any document, stop words aside",
    "dense": "the encoder failed",
    "hybrid": "the question shares no word with any document, and the encoder failed",
    "run": "the run has no document of the corpus for it",
}


class Start(NamedTuple):
    """A query's pool and what it took, by role."""

    pool: Pool
    usage: Usage


FirstStage = Callable[[Query], Awaitable[Start]]
Finding = Callable[[Find], Awaitable[Found]]


def build_first_stage(node: schema.FirstStage, index: Index, finder: Finding | None, lists: str) -> FirstStage:
    """The first stage of a node. finder: of the roles. lists: folder of inverted lists of the index' embeddings; empty: those that
    the index knows of.

    Raises ValueError where vectors are wanted and there is nothing to search them with.
    """
    match node:
        case schema.Bm25FirstStage():
            return Bm25(index, node.depth, node.weighting)
        case schema.RunFirstStage():
            return Brought(index, node.path, node.depth)
    if finder is None:
        raise ValueError(f"first_stage={node.method} asks the encoder, and there is none here.")
    lists = (lists or index.lists) if node.search == "lists" else ""
    if node.search == "lists" and not lists:
        raise ValueError(
            f"first_stage.search=lists: {index.folder} has no inverted lists, or several that fit it. Use "
            "first_stage.search=exact, or ask through a job, whose settings say which."
        )
    nearest = Dense(index, node.depth, node.probes, finder, lists)
    if isinstance(node, schema.HybridFirstStage):
        return Hybrid(Bm25(index, node.depth, node.weighting), nearest, node.lexical_weight, node.depth)
    return nearest


class Bm25:
    """BM25 over the whole corpus; any other document has its score too.

    A retrieval takes tens of milliseconds at millions of documents, and in a thread numpy would keep the others waiting for much
    of it. So queries retrieve one after another here, and every SLICE seconds the event loop carries on those that are further.
    """

    def __init__(self, index: Index, depth: int, weighting: str) -> None:
        self._index, self._depth, self._weighting = index, depth, weighting
        self._waiting: deque[tuple[Query, asyncio.Future[Lexical]]] = deque()

    async def __call__(self, query: Query) -> Start:
        found = await self.retrieve(query)
        return Start(Pool(found.rows.tolist(), lambda docs: found.score(docs).tolist()), {})

    async def retrieve(self, query: Query) -> Lexical:
        """Rows and scores, best first."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Lexical] = loop.create_future()
        self._waiting.append((query, found))
        if len(self._waiting) == 1:
            loop.call_soon(self._serve)
        return await found

    def _serve(self) -> None:
        """Retrieve for those who wait. Whoever got an answer has a turn before this goes on."""
        end = time.perf_counter() + SLICE
        while self._waiting and time.perf_counter() < end:
            query, found = self._waiting[0]
            if not found.done():  # whoever waited may have been cancelled
                try:
                    found.set_result(self._index.retrieve(query.text, query.excluded, self._depth, self._weighting))
                except Exception as error:
                    found.set_exception(error)
            self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._serve)


class Dense:
    """The documents whose vectors are nearest to the query's; any other document has its inner product too.

    An encoder that fails leaves the pool empty, and is counted.
    """

    def __init__(self, index: Index, depth: int, probes: int, finder: Finding, lists: str) -> None:
        self._index, self._depth, self._probes = index, depth, probes
        self._finder, self._lists = finder, lists

    async def __call__(self, query: Query) -> Start:
        found = await self.find(query)
        score = self.scores(found)
        return Start(Pool(found.rows.tolist(), lambda docs: score(docs).tolist()), usage_of(found))

    async def find(self, query: Query) -> Found:
        """Rows and scores, best first, and the query's vector."""
        return await self._finder(
            Find(str(self._index.folder), self._lists, query.text, query.excluded, self._depth, self._probes)
        )

    def scores(self, found: Found) -> Callable[[Sequence[int]], NDArray[np.float64]]:
        """Scores any rows for the query that `found` answers."""
        return lambda docs: dense.scores(self._index.vectors, docs, found.vector)


class Hybrid:
    """Documents of both pools by the weighted sum of their scores, each min-max normalised within its pool and 0 where the pool
    lacks the document (see `weighted_sum`).

    Any other document is scored by the same two lines, continued below 0: what no pool holds has less than its worst. Where one
    pool is empty the other stands alone, also where the encoder failed, which is counted.
    """

    def __init__(self, lexical: Bm25, nearest: Dense, lexical_weight: float, depth: int) -> None:
        self._lexical, self._nearest = lexical, nearest
        self._weight, self._depth = lexical_weight, depth

    async def __call__(self, query: Query) -> Start:
        lexical, found = await asyncio.gather(self._lexical.retrieve(query), self._nearest.find(query))
        rows = weighted_sum((lexical.rows, lexical.scores), (found.rows, found.scores), self._weight, self._depth)
        parts = [
            (share, min_max(scores), score)
            for share, scores, score in (
                (self._weight, lexical.scores, lexical.score),
                (1.0 - self._weight, found.scores, self._nearest.scores(found)),
            )
            if len(scores)
        ]

        def score(docs: list[int]) -> list[float]:
            total = np.zeros(len(docs))
            for share, scale, of in parts:
                total += share * scale(of(docs))
            return total.tolist()

        return Start(Pool(rows.tolist(), score), usage_of(found))


class Brought:
    """The ranking that a run has for the query, in its order. Documents that it lacks come after all of it, among themselves by
    BM25: a run has no score for them, and the query's words say more than their rows.

    Ids that the corpus does not have are left out and counted, and so is a query without a line, whose pool is empty.
    """

    def __init__(self, index: Index, path: str, depth: int) -> None:
        self._index, self._path, self._depth = index, path, depth

    async def __call__(self, query: Query) -> Start:
        ranking = _rankings(self._path, str(self._index.folder)).get(query.query_id)
        if ranking is None:
            return Start(Pool([]), {FIRST_STAGE: {NO_LINE: 1}})
        rows = ranking[(ranking >= 0) & ~np.isin(ranking, np.asarray(query.excluded, np.int64))]
        unknown = int((ranking < 0).sum())
        score = functools.cache(functools.partial(self._index.scorer, query.text, "plain"))  # made when a group needs it
        pool = Pool(rows[: self._depth].tolist(), lambda docs: score()(docs).tolist())
        return Start(pool, {FIRST_STAGE: {UNKNOWN: unknown}} if unknown else {})


def usage_of(found: Found) -> dict[str, dict[str, int]]:
    """What asking the encoder for a pool counts."""
    return {"encoder": {"calls": 1, "judged": 0, f"outcome {found.outcome}": 1, **({"texts": 1} if found.outcome == OK else {})}}


@functools.lru_cache(maxsize=4)
def _rankings(path: str, index: str) -> Mapping[str, NDArray[np.int32]]:
    """query_id -> rows int32, best first, -1 for an id that the corpus does not have. The corpus is scanned once."""
    run = trec_run.read(Path(path))
    known = open_index(index).corpus.rows_of(run.doc_ids)
    row_of: NDArray[Any] = np.fromiter((known.get(doc_id, -1) for doc_id in run.doc_ids), np.int32, len(run.doc_ids))
    return {query_id: row_of[places] for query_id, places in run.rankings.items()}
