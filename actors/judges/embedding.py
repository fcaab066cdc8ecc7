"""Relevance as the similarity of vectors that exist already: the corpus' own for documents, the summaries' for groups."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.means import mean_directions
from actors.engines.build import Place, build_embedder
from actors.index import open_index
from actors.judges.judge import DOCUMENTS, OK, Ask, Scores
from actors.judges.plan import stand_in_plan

Embed = Callable[[str, str], Awaitable[NDArray[np.float32]]]
REMEMBERED_QUERIES = 4096  # a query is asked about in every iteration and embedded once


class QueryEmbedder:
    """Embeds queries, and other texts, by the model that embedded the corpus of an index; remembers the last ones."""

    def __init__(self, place: Place | None = None) -> None:
        self._place = place
        self._known = functools.lru_cache(maxsize=REMEMBERED_QUERIES)(self._begin)

    async def __call__(self, index: str, text: str) -> NDArray[np.float32]:
        """[d] the text's vector. index: folder."""
        vector = self._known(index, text)
        return vector.result() if vector.done() else await asyncio.wrap_future(vector)

    def _begin(self, index: str, text: str) -> Future[NDArray[np.float32]]:
        opened = open_index(index)
        return build_embedder(opened.embeddings, opened.models, self._place).embed_query(text)


class EmbeddingJudge:
    """Scores rows by cosine similarity with the query, embedded by the index' model; documents optionally fused with BM25."""

    def __init__(self, lexical_weight: float, plan_steps: int, embed: Embed, group_vector: str = "summary") -> None:
        """lexical_weight: share of BM25, normalised to 0..1 within the request. plan_steps: see `stand_in_plan`.

        group_vector: of a group, its summary's ("summary") or the mean of its documents' ("documents").
        """
        self._of_documents = group_vector == "documents"
        self._embed = embed
        self._lexical_weight = lexical_weight
        self._plan_steps = plan_steps

    async def scores(self, asks: Sequence[Ask]) -> list[Scores]:
        return [await self._answer(ask) for ask in asks]

    async def _answer(self, ask: Ask) -> Scores:
        values = self._score(ask, await self._embed(ask.index, ask.query)).tolist()
        steps = stand_in_plan(ask, values, self._plan_steps) if ask.plan else ()
        return Scores(values, OK, {}, steps, comparable=not self._lexical_weight)

    def _score(self, ask: Ask, query: NDArray[np.float32]) -> NDArray[np.float32]:
        index = open_index(ask.index)
        if ask.of != DOCUMENTS and self._of_documents:
            return mean_directions(index.vectors, [index.members(group) for group in ask.rows]) @ query
        vectors = index.vectors if ask.of == DOCUMENTS else index.summaries.vectors
        similarity: NDArray[np.float32] = vectors[ask.rows].astype(np.float32) @ query
        if not self._lexical_weight:
            return similarity
        lexical = _normalised(index.lexical_scores(ask.query, ask.rows))
        return (1 - self._lexical_weight) * _normalised(similarity) + self._lexical_weight * lexical


def _normalised(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scaled to 0..1 within the request; all 0 where they are all equal."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)
