"""Vectors: any span the same, near-duplicates close, neighbours of the same topic, texts where they point, and how hard it is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from actors.algorithms import topic_vectors
from actors.algorithms.topic_vectors import Mixture
from actors.algorithms.topics import NO_LEAF, Topics, hashed

TOPICS = Topics(documents=6000, leaf_documents=12.0, branching=8, near_duplicates=0.03, isolated=0.02, seed=0)
MIXTURE = Mixture(
    dimension=384, decay=1.2, drift=0.97, intrinsic_dimension=8, drift_dimensions=64, drift_spread=0.4, noise=0.3, copy_noise=0.15
)
EASY = dataclasses.replace(MIXTURE, drift=0.0)
ROWS = np.arange(TOPICS.documents)


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return topic_vectors.vectors(TOPICS, MIXTURE, 0, TOPICS.documents)


def nearest(vectors: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    similarity = vectors[rows] @ vectors.T
    similarity[np.arange(len(rows)), rows] = -2
    return np.argsort(-similarity, axis=1)[:, :k]


def test_any_span_has_the_same_vectors(vectors: np.ndarray) -> None:
    assert vectors.dtype == np.float32
    for first, last in ((0, 1), (1, 2050), (2047, 2049), (5999, 6000), (10, 10), (33, 40), (100, 1003)):
        assert (topic_vectors.vectors(TOPICS, MIXTURE, first, last) == vectors[first:last]).all()
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert len(np.unique(vectors[:, :4], axis=0)) == len(vectors)


def test_signs_are_the_bits_of_their_hash() -> None:
    keys = hashed(0, 1, np.arange(50))
    found = topic_vectors.signs(keys, 100) * 10
    assert np.allclose(np.abs(found), 1)
    assert np.abs(found.mean(axis=1)).max() < 0.5
    similarity = found @ found.T / 100
    assert np.abs(similarity - np.eye(50)).max() < 0.5
    assert (topic_vectors.signs(keys[7:9], 100) * 10 == found[7:9]).all()


def test_near_duplicates_are_close_and_isolated_documents_far_from_all(vectors: np.ndarray) -> None:
    sources = TOPICS.sources(ROWS)
    copies = ROWS[sources != ROWS]
    assert len(copies) > 100
    assert np.einsum("ij,ij->i", vectors[copies], vectors[sources[copies]]).min() > 0.98
    alone = ROWS[TOPICS.are_isolated(ROWS)]
    similarity = vectors[alone] @ vectors.T
    similarity[np.arange(len(alone)), alone] = -2
    themed = vectors[ROWS[200:400]] @ vectors.T
    themed[np.arange(200), ROWS[200:400]] = -2
    assert similarity.max(axis=1).mean() < themed.max(axis=1).mean() - 0.1


def test_neighbours_have_the_same_topic(vectors: np.ndarray) -> None:
    """A document has about 11 others of its topic among 6,000; most of its nearest are among them, and nearly all without drift."""
    leaves = TOPICS.leaf_of(ROWS)
    rows = ROWS[leaves != NO_LEAF][:400]
    purity = (leaves[nearest(vectors, rows, 5)] == leaves[rows][:, None]).mean()
    undrifted = topic_vectors.vectors(TOPICS, EASY, 0, TOPICS.documents)
    assert 0.5 < purity < 0.9
    assert (leaves[nearest(undrifted, rows, 5)] == leaves[rows][:, None]).mean() > 0.95


def test_drift_makes_inverted_lists_find_less(vectors: np.ndarray) -> None:
    easy = topic_vectors.vectors(TOPICS, EASY, 0, TOPICS.documents)
    assert recall_of_lists(vectors, 4) < 0.92
    assert recall_of_lists(easy, 4) > recall_of_lists(vectors, 4) + 0.05


def test_more_documents_are_as_hard_to_search() -> None:
    """A constant drift makes 16 times as many harder."""
    found = []
    for mixture in (MIXTURE, dataclasses.replace(MIXTURE, drift=1.5, intrinsic_dimension=1e9)):
        few, many = (dataclasses.replace(TOPICS, documents=count) for count in (1500, 24_000))
        found.append([recall_of_lists(topic_vectors.vectors(each, mixture, 0, each.documents), 8) for each in (few, many)])
    (few_fall, many_fall), (few_constant, many_constant) = found
    assert abs(few_fall - many_fall) < 0.05
    assert few_constant - many_constant > 0.1


def recall_of_lists(vectors: np.ndarray, probes: int) -> float:
    """Recall@16 of the nearest lists of N**0.6, with k-means centres."""
    draw = np.random.default_rng(0)
    centres = vectors[draw.choice(len(vectors), round(len(vectors) ** 0.6), replace=False)]
    for _ in range(5):
        list_of = (vectors @ centres.T).argmax(axis=1)
        centres = np.stack([vectors[list_of == c].sum(axis=0) if (list_of == c).any() else centres[c] for c in range(len(centres))])
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    list_of = (vectors @ centres.T).argmax(axis=1)
    rows = draw.choice(len(vectors), 300, replace=False)
    probed = np.argsort(-(vectors[rows] @ centres.T), axis=1)[:, :probes]
    found = [np.isin(list_of[near], lists).mean() for near, lists in zip(nearest(vectors, rows, 16), probed, strict=True)]
    return float(np.mean(found))


def test_a_text_lies_where_its_words_point(vectors: np.ndarray) -> None:
    """It names each node of one path once: the direction is the path's, by the levels' weights. Repeats change nothing."""
    leaf = int(TOPICS.leaf_of(ROWS[:1])[0])
    path = TOPICS.path(np.array([leaf]))[0]
    keys = np.array([1, 2, 3, 4])
    texts = [path, np.repeat(path, 3), np.zeros(0, np.int64), np.zeros(0, np.int64)]
    found = topic_vectors.vectors_of_texts(TOPICS, MIXTURE, texts, keys)
    weights = topic_vectors.level_weights(TOPICS, MIXTURE)
    alone = [topic_vectors.vectors_of_texts(TOPICS, MIXTURE, [path[[level]]], keys[:1])[0] for level in range(len(path))]
    expected = sum(w * v for w, v in zip(weights, alone, strict=True))
    assert np.allclose(found[0], expected / np.linalg.norm(expected), atol=1e-5)
    assert np.allclose(found[0], found[1], atol=1e-5)
    assert found[2] @ found[3] < 0.3
    members = TOPICS.leaf_of(ROWS) == leaf
    similarity = vectors @ found[0]
    assert similarity[members].mean() > similarity[~members].mean() + 0.4
