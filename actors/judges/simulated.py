"""Relevance as the judgements say it, with seeded errors: for studying a method where no model can run.

What comes out says how a method behaves with judges of a given quality, and nothing about any model: every title, run and manifest
made with it says "simulated".
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from actors.artifacts.queries import open_qrels
from actors.index import open_index
from actors.judges.embedding import Embed
from actors.judges.judge import DOCUMENTS, OK, Ask, Scores
from actors.judges.plan import stand_in_plan

REMEMBERED_QUERIES = 8192
STANDARD_NORMAL = NormalDist()


class SimulatedJudge:
    """value = (1 - bias) * relevance + bias * similarity + noise * z, with z from a standard normal distribution.

    The relevance of a document is its judgement over the query's highest; that of a group the sum over its documents, over the
    largest such sum of the query's groups, so that the richest group has 1 and one without relevant documents 0. Similarity is the
    cosine of the query's vector with the document's, or the summary's: a judge that favours what looks like the question. z depends
    on seed, query and row alone: a judge errs about a document, and does not waver.
    """

    def __init__(self, noise: float, bias: float, seed: int, plan_steps: int, embed: Embed) -> None:
        self._noise, self._bias, self._seed = noise, bias, seed
        self._plan_steps, self._embed = plan_steps, embed

    async def scores(self, asks: Sequence[Ask]) -> list[Scores]:
        return [await self._answer(ask) for ask in asks]

    async def _answer(self, ask: Ask) -> Scores:
        relevance = _relevance(ask.queries, ask.index, ask.query_id, ask.of)
        values = np.array([relevance.get(row, 0.0) for row in ask.rows])
        if self._bias:
            index = open_index(ask.index)
            vectors = index.vectors if ask.of == DOCUMENTS else index.summaries.vectors
            similarity = vectors[ask.rows].astype(np.float32) @ await self._embed(ask.index, ask.query)
            values = (1 - self._bias) * values + self._bias * similarity
        if self._noise:
            values = values + self._noise * _normal(_key(self._seed, ask.query_id, ask.of), ask.rows)
        scores: list[float] = values.tolist()
        return Scores(scores, OK, {}, stand_in_plan(ask, scores, self._plan_steps) if ask.plan else ())


@functools.lru_cache(maxsize=REMEMBERED_QUERIES)
def _relevance(queries: str, index: str, query_id: str, of: str) -> Mapping[int, float]:
    """Row or group -> relevance, those with any."""
    gain = dict(_gains(queries, index).get(query_id, {}))
    if of != DOCUMENTS:
        group_of = open_index(index).group_of
        by_group: dict[int, float] = {}
        for row, grade in gain.items():
            group = int(group_of[row])
            by_group[group] = by_group.get(group, 0.0) + grade
        gain = by_group
    most = max(gain.values(), default=1.0)
    return {row: grade / most for row, grade in gain.items()}


@functools.lru_cache(maxsize=8)
def _gains(queries: str, index: str) -> Mapping[str, Mapping[int, float]]:
    """query_id -> row -> its judgement, where it is above 0. The corpus is scanned once for the documents of all queries."""
    qrels = open_qrels(Path(queries)) if queries else {}
    if not qrels:
        raise ValueError("simulated judges answer from relevance judgements and there are none. Use queries that have some.")
    rows = open_index(index).corpus.rows_of(doc_id for judged in qrels.values() for doc_id, grade in judged.items() if grade > 0)
    return {
        query_id: {rows[doc_id]: float(grade) for doc_id, grade in judged.items() if grade > 0 and doc_id in rows}
        for query_id, judged in qrels.items()
    }


@functools.lru_cache(maxsize=REMEMBERED_QUERIES)
def _key(seed: int, query_id: str, of: str) -> np.uint64:
    digest = hashlib.blake2b(f"{seed} {of} {query_id}".encode(), digest_size=8).digest()
    return np.frombuffer(digest, np.uint64)[0]


def _normal(key: np.uint64, rows: Sequence[int]) -> NDArray[np.float64]:
    """A standard normal number for each row: SplitMix64 (Steele et al., 2014) of key and row, through the inverse distribution."""
    x = np.asarray(rows, np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    uniform = ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    # not scipy's, which would cost every searcher 10 MB for some twenty numbers at a time
    return np.array([STANDARD_NORMAL.inv_cdf(u) for u in np.minimum(uniform, 1 - 2.0**-53).tolist()])
