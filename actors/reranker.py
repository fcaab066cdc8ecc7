"""The reranker: orders the documents of a window. A shell around one judge, the same inside a Serve replica and inside a searcher."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from actors.judges.build import build_judge
from actors.judges.judge import Ask, Judge
from conf import schema


class Ranking(NamedTuple):
    """The rows of a request, best first, or None when there is no order to be had."""

    docs: list[int] | None
    outcome: str
    usage: dict[str, int]


class Reranker:
    """Judges documents with the judge that the configuration names."""

    def __init__(self, node: schema.Reranker, embeddings: schema.Embeddings, cache: str) -> None:
        self._judge: Judge = build_judge(node, "documents", embeddings, cache)

    def rank(self, asks: Sequence[Ask]) -> list[Ranking]:
        """Rerank(q, W) of Eq. 1 for each request; documents of equal score keep the window's order."""
        answers = self._judge.scores(asks)
        return [Ranking(_by_score(ask.rows, a.values), a.outcome, a.usage) for ask, a in zip(asks, answers, strict=True)]


def _by_score(docs: Sequence[int], scores: Sequence[float]) -> list[int] | None:
    if any(math.isnan(score) for score in scores):
        return None
    return [doc for _, doc in sorted(zip(scores, docs, strict=True), key=lambda pair: -pair[0])]
