"""Relevance as the similarity of vectors that exist already: the corpus' own for documents, the summaries' for groups."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from actors.index import open_index
from actors.judges.judge import OK, Ask, Scores

Embed = Callable[[str], NDArray[np.float32]]
REMEMBERED_QUERIES = 4096  # a query is asked about in every iteration and embedded once


class EmbeddingJudge:
    """Scores rows by cosine similarity with the query; for documents, optionally fused with BM25."""

    def __init__(self, embed_query: Embed, of: str, lexical_weight: float) -> None:
        """of: "documents" or "groups". lexical_weight: share of BM25, normalised to 0..1 within the request."""
        self._embed = functools.lru_cache(maxsize=REMEMBERED_QUERIES)(embed_query)
        self._of = of
        self._lexical_weight = lexical_weight

    def scores(self, asks: Sequence[Ask]) -> list[Scores]:
        return [Scores(self._score(ask), OK, {}) for ask in asks]

    def _score(self, ask: Ask) -> list[float]:
        index = open_index(ask.index)
        vectors = index.vectors if self._of == "documents" else index.summaries.vectors
        similarity = vectors[ask.rows].astype(np.float32) @ self._embed(ask.query)
        if not self._lexical_weight:
            return [float(s) for s in similarity]
        lexical = _normalised(index.lexical_scores(ask.query, ask.rows))
        return [float(s) for s in (1 - self._lexical_weight) * _normalised(similarity) + self._lexical_weight * lexical]


def _normalised(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scaled to 0..1 within the request; all 0 where they are all equal."""
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)
