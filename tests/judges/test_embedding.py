"""Similarity as relevance, and its fusion with BM25, by hand on the toy."""

from __future__ import annotations

import numpy as np
import pytest

from actors.index import Index
from actors.judges.embedding import EmbeddingJudge
from actors.judges.judge import Ask
from tests import toy


def towards_x(query: str) -> np.ndarray:
    return np.array([1, 0], np.float32)


def scores(judge: EmbeddingJudge, index: Index, *rows: int, query: str = toy.QUERY) -> list[float]:
    (answer,) = judge.scores([Ask(str(index.folder), "q1", query, list(rows))])
    assert (answer.outcome, answer.usage) == ("ok", {})
    return answer.values


def test_documents_by_their_vectors_and_groups_by_their_summaries(toy_index: Index) -> None:
    judge = EmbeddingJudge(towards_x, "documents", 0.0)
    assert scores(judge, toy_index, 3, 0, 1, 6) == pytest.approx([0, 1, 0.8, 0.6], abs=1e-3)
    judge = EmbeddingJudge(towards_x, "groups", 0.0)
    assert scores(judge, toy_index, 3, 0, 1) == pytest.approx([1, 0, 0.6], abs=1e-3)


def test_fusion_with_bm25(toy_index: Index) -> None:
    # Similarities of 0, 2, 3 are 1, .6 and 0, scaled to 0..1 already. BM25 of "copper": 0 has two words, 3 has three and 2 does
    # not hold it; with one occurrence each, the scores of 0 and 3 differ by their length alone: 1 / (1 + k1 (1 - b + b l / mean)).
    mean = sum(len(text.split()) for text in toy.TEXTS) / 12
    of_3 = (1 + 0.9 * (0.6 + 0.4 * 2 / mean)) / (1 + 0.9 * (0.6 + 0.4 * 3 / mean))
    for weight in (0.25, 1.0):
        judge = EmbeddingJudge(towards_x, "documents", weight)
        expected = [1.0, (1 - weight) * 0.6, weight * of_3]
        assert scores(judge, toy_index, 0, 2, 3) == pytest.approx(expected, abs=1e-3)


def test_scaled_within_the_request(toy_index: Index) -> None:
    # without "copper" BM25 is 0 for all: only the similarities .8, .6 remain, scaled to 1 and 0
    judge = EmbeddingJudge(towards_x, "documents", 0.25)
    assert scores(judge, toy_index, 1, 2, query="unheard") == pytest.approx([0.75, 0.0])
    assert scores(judge, toy_index, 5) == [0.0]


def test_a_query_is_embedded_once(toy_index: Index) -> None:
    embedded: list[str] = []
    judge = EmbeddingJudge(lambda query: embedded.append(query) or towards_x(query), "documents", 0.0)
    for query in ("a", "b", "a"):
        scores(judge, toy_index, 1, query=query)
    assert embedded == ["a", "b"]


def test_an_answer_does_not_depend_on_its_batch_mates(toy_index: Index) -> None:
    judge = EmbeddingJudge(towards_x, "documents", 0.5)
    asks = [Ask(str(toy_index.folder), "q", toy.QUERY, rows) for rows in ([0, 1], [11, 4, 2], [7])]
    assert judge.scores(asks) == [judge.scores([ask])[0] for ask in asks]
