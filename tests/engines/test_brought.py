"""Vectors of questions are looked up; what was not brought is said with the remedy."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.corpora.records import BadInput
from actors.engines.build import build_embedder, model_digest
from conf import schema


def node_of(folder: Path, **vectors: list[float]) -> schema.BroughtEmbeddings:
    path = folder / "q.parquet"
    if vectors:
        pq.write_table(pa.table({"text": list(vectors), "vector": list(vectors.values())}), path)
    return schema.BroughtEmbeddings("brought", "/vectors.npy", str(path) if vectors else "")


def test_a_question_has_its_vector(tmp_path: Path) -> None:
    node = node_of(tmp_path, why=[3.0, 4.0], how=[0.0, 1.0])
    embedder = build_embedder(node, "")
    assert embedder.embed_query(" why\n").result().tolist() == pytest.approx([0.6, 0.8])
    assert embedder.dimension == 2
    embedder.check(["why", "how "])
    with pytest.raises(BadInput, match=r"1 of 3 questions have no vector, 'who' among them; expected a Parquet file"):
        embedder.check(["why", "who", "how"])
    assert model_digest(node) == "brought"


def test_without_vectors_of_questions(tmp_path: Path) -> None:
    embedder = build_embedder(node_of(tmp_path), "")
    embedder.check([])
    with pytest.raises(BadInput, match=r"^embeddings\.queries='': .*'why' among them.*reranker and navigator table"):
        embedder.embed_query("why")
    with pytest.raises(BadInput, match="there is no model for the text 'a summary'"):
        embedder.embed_documents(["a summary"])
