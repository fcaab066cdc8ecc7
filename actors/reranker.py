"""The reranker: orders the documents of a window. A shell around one judge, the same in a Serve replica and in a searcher."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from actors.judges.build import build_judge
from actors.judges.judge import FAILED, OK, Ask, Judge, Scores
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
        return [_ranking(ask.rows, answer) for ask, answer in zip(asks, self._judge.scores(asks), strict=True)]


def _ranking(docs: Sequence[int], answer: Scores) -> Ranking:
    if any(math.isnan(score) for score in answer.values):
        return Ranking(None, f"{FAILED}: no score" if answer.outcome == OK else answer.outcome, answer.usage)
    order = sorted(zip(answer.values, docs, strict=True), key=lambda pair: -pair[0])
    return Ranking([doc for _, doc in order], answer.outcome, answer.usage)
