"""Similarity as relevance, and its fusion with BM25, by hand on the toy."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

import numpy as np
import pytest

from actors.index import Index
from actors.judges import embedding
from actors.judges.embedding import EmbeddingJudge, QueryEmbedder
from actors.judges.judge import GROUPS, Ask, Scores
from tests import toy


async def towards_x(index: str, query: str) -> np.ndarray:
    return np.array([1, 0], np.float32)


def judge(lexical_weight: float = 0.0, plan_steps: int = 0) -> EmbeddingJudge:
    return EmbeddingJudge(lexical_weight, plan_steps, towards_x)


def answer(judge: EmbeddingJudge, ask: Ask) -> Scores:
    (answer,) = asyncio.run(judge.scores([ask]))
    assert (answer.outcome, answer.usage) == ("ok", {})
    return answer


def scores(judge: EmbeddingJudge, index: Index, *rows: int, query: str = toy.QUERY) -> list[float]:
    return answer(judge, Ask(str(index.folder), "q1", query, list(rows))).values


def test_documents_by_their_vectors_and_groups_by_their_summaries(toy_index: Index) -> None:
    ask = Ask(str(toy_index.folder), "q1", toy.QUERY, [3, 0, 1])
    assert answer(judge(), ask).values == pytest.approx([0, 1, 0.8], abs=1e-3)
    assert answer(judge(), ask._replace(of=GROUPS)).values == pytest.approx([1, 0, 0.6], abs=1e-3)


def test_fusion_with_bm25(toy_index: Index) -> None:
    # Similarities of 0, 2, 3 are 1, .6 and 0, scaled to 0..1 already. BM25 of "copper": 0 has two words, 3 has three and 2 does
    # not hold it; with one occurrence each, the scores of 0 and 3 differ by their length alone: 1 / (1 + k1 (1 - b + b l / mean)).
    mean = sum(len(text.split()) for text in toy.TEXTS) / 12
    of_3 = (1 + 0.9 * (0.6 + 0.4 * 2 / mean)) / (1 + 0.9 * (0.6 + 0.4 * 3 / mean))
    for weight in (0.25, 1.0):
        expected = [1.0, (1 - weight) * 0.6, weight * of_3]
        assert scores(judge(weight), toy_index, 0, 2, 3) == pytest.approx(expected, abs=1e-3)


def test_scaled_within_the_request(toy_index: Index) -> None:
    # without "copper" BM25 is 0 for all: only the similarities .8, .6 remain, scaled to 1 and 0
    assert scores(judge(0.25), toy_index, 1, 2, query="unheard") == pytest.approx([0.75, 0.0])
    assert scores(judge(0.25), toy_index, 5) == [0.0]


@pytest.mark.parametrize(("weight", "comparable"), [(0.0, True), (0.25, False)])
def test_what_was_scaled_within_a_request_says_so(toy_index: Index, weight: float, comparable: bool) -> None:
    assert answer(judge(weight), Ask(str(toy_index.folder), "q1", toy.QUERY, [0, 1])).comparable == comparable


def test_the_best_documents_first_sentences_stand_in_for_a_plan(toy_index: Index) -> None:
    ask = Ask(str(toy_index.folder), "q1", toy.QUERY, [3, 2, 0, 1], plan=True)
    assert answer(judge(plan_steps=2), ask).steps == ["copper kettle", "copper ore is dug"]
    assert answer(judge(plan_steps=0), ask).steps == [] and answer(judge(plan_steps=2), ask._replace(plan=False)).steps == ()


def test_a_query_is_embedded_once_by_the_model_of_its_index(toy_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded: list[str] = []

    class Embedder:
        def embed_query(self, text: str) -> Future[np.ndarray]:
            embedded.append(text)
            vector: Future[np.ndarray] = Future()
            vector.set_result(np.array([1, 0], np.float32))
            return vector

    monkeypatch.setattr(embedding, "build_embedder", lambda node, cache, place: Embedder())
    one = EmbeddingJudge(0.0, 0, QueryEmbedder())
    for query in ("a", "b", "a"):
        assert scores(one, toy_index, 1, query=query) == pytest.approx([0.8], abs=1e-3)
    assert embedded == ["a", "b"]


def test_an_answer_does_not_depend_on_its_batch_mates(toy_index: Index) -> None:
    asks = [Ask(str(toy_index.folder), "q", toy.QUERY, rows) for rows in ([0, 1], [11, 4, 2], [7])]
    assert asyncio.run(judge(0.5).scores(asks)) == [asyncio.run(judge(0.5).scores([ask]))[0] for ask in asks]


def test_a_group_by_the_mean_of_its_documents(toy_index: Index) -> None:
    # group 0 holds (1 0), (.8 .6), (.6 .8): their sum (2.4 1.4) has length 2.778
    means = [toy.VECTORS[group == toy.GROUP_OF].mean(axis=0) for group in (0, 3, 1)]
    by_documents = EmbeddingJudge(0.0, 0, towards_x, "documents")
    found = answer(by_documents, Ask(str(toy_index.folder), "q1", toy.QUERY, [0, 3, 1], GROUPS)).values
    assert found[0] == pytest.approx(2.4 / 2.778, abs=1e-3)
    assert found == pytest.approx([float(mean[0] / np.linalg.norm(mean)) for mean in means], abs=1e-3)
