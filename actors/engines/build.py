"""From configuration to an engine."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from actors.engines.onnx import OnnxEmbedder, embedding_digest, find_model
from conf import schema


class Embedder:
    """The embedding model of a configuration, as batch workers and judges use it."""

    def __init__(self, engine: OnnxEmbedder) -> None:
        self._engine = engine

    def embed_documents(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], dict[str, int]]:
        """[n, d] float32, L2-normalised, and what it took: tokens, truncated and empty texts."""
        before = self._engine.usage
        vectors = self._engine.embed(texts, "document")
        used = (after - was for after, was in zip(self._engine.usage, before, strict=True))
        return vectors, dict(zip(before._fields, used, strict=True))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """[d] float32, L2-normalised."""
        vector: NDArray[np.float32] = self._engine.embed([text], "query")[0]
        return vector


def build_embedder(node: schema.Embeddings, cache: str) -> Embedder:
    """The embedder of a node, loaded once per process. cache: folder for prepared models. Raises BadInput with the remedy."""
    return _loaded(cache, **{k: v for k, v in dataclasses.asdict(node).items() if k != "engine"})


@functools.lru_cache(maxsize=2)
def _loaded(cache: str, **arguments: str | bool | int) -> Embedder:
    return Embedder(OnnxEmbedder(cache=cache, **arguments))  # type: ignore[arg-type]


def model_digest(node: schema.Embeddings) -> str:
    """What decides the vectors, as a sha256; loads no model."""
    files = find_model(node.model, node.sha256, node.pooling, node.max_tokens)
    return embedding_digest(files, node.quantise, node.query_prefix, node.document_prefix)
