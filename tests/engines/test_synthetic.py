"""The embedder of a synthetic corpus: its documents' vectors, its questions near their topic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actors.corpora import synthetic as reader
from actors.engines import synthetic
from actors.engines.build import build_embedder, model_digest
from conf import schema
from conf.load import compose


@pytest.fixture(scope="module")
def settings() -> schema.Settings:
    return compose(["corpus=synthetic", "corpus.documents=3000", "embeddings=synthetic"])


def test_spans(settings: schema.Settings) -> None:
    whole = synthetic.vectors(settings.embeddings, 0, 3000)
    assert whole.shape == (3000, 384)
    assert (synthetic.vectors(settings.embeddings, 1234, 1300) == whole[1234:1300]).all()


def test_a_question_is_nearer_to_its_documents_than_to_others_and_a_summary_nearer_still(
    settings: schema.Settings, tmp_path: Path
) -> None:
    embedder = build_embedder(settings.embeddings, str(tmp_path))
    assert embedder is build_embedder(settings.embeddings, str(tmp_path))
    vectors = synthetic.vectors(settings.embeddings, 0, 3000)
    topics = reader.topics_of(settings.corpus)
    leaf_of = topics.leaf_of(np.arange(3000))
    of_questions, of_summaries = [], []
    for query in reader.queries(settings.queries, settings.corpus):
        members = leaf_of == int(query.where.split()[1])
        asked = embedder.embed_query(query.text).result()
        told, usage = embedder.embed_documents([query.text.capitalize() + "."])
        assert np.linalg.norm(asked) == pytest.approx(1, abs=1e-5) and usage == {}
        of_questions.append((vectors[members] @ asked).mean() - (vectors @ asked).mean())
        of_summaries.append((vectors[members] @ told[0]).mean() - (vectors @ told[0]).mean())
    assert np.mean(np.array(of_questions) > 0) > 0.9
    assert np.mean(of_summaries) > np.mean(of_questions) > 0.15


def test_texts_without_topics_and_no_texts(settings: schema.Settings, tmp_path: Path) -> None:
    embedder = build_embedder(settings.embeddings, str(tmp_path))
    none, _ = embedder.embed_documents([])
    assert none.shape == (0, 384)
    found, _ = embedder.embed_documents(["", "Words of English only.", "Other words."])
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert np.abs(found @ found.T - np.eye(3)).max() < 0.4


def test_a_digest_needs_no_model(settings: schema.Settings) -> None:
    assert model_digest(settings.embeddings) == f"drawn, version {synthetic.VERSION}"
