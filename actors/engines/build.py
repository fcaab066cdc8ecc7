"""From configuration to an engine."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from actors.engines import self_test
from actors.engines.endpoint_tokens import marks_of
from actors.engines.engine import Engine
from actors.engines.onnx import OnnxEmbedder
from actors.engines.onnx_files import embedding_digest, find_model
from conf import schema

Vectors = NDArray[np.float32]
TEST_SECONDS = 300.0  # the first answers of a large model wait for its kernels to be compiled


class Place(NamedTuple):
    """What of the cluster an engine must know: how much of it is its own."""

    tensor_parallel_size: int
    gpu_memory_utilization: float
    endpoint: schema.Endpoint
    num_gpus: float = 0.0

    @classmethod
    def of(cls, share: schema.ActorPool | schema.Replicas, endpoint: schema.Endpoint) -> Place:
        """The place of one actor of a pool, or of one replica."""
        return cls(share.tensor_parallel_size, share.gpu_memory_utilization, endpoint, share.num_gpus)


async def build_engine(node: schema.Model, verbs: Sequence[str], place: Place) -> Engine:
    """An engine in the running event loop. verbs: what it will be asked: generate, yes_no, embed."""
    if isinstance(node, schema.OpenAIModel):
        from actors.engines.openai import OpenAIEngine

        return OpenAIEngine(node, place.endpoint)
    from actors.engines.vllm import VllmEngine

    return VllmEngine(node, tuple(verbs), place.tensor_parallel_size, place.gpu_memory_utilization)


class Embedder(Protocol):
    """The embedding model of a configuration, as batch workers and judges use it."""

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, dict[str, int]]:
        """[n, d] float32, L2-normalised, and what it took: tokens and the like."""

    def embed_query(self, text: str) -> Future[Vectors]:
        """[d] float32, L2-normalised, now or later."""


class LocalEmbedder:
    """An ONNX model in this process."""

    def __init__(self, engine: OnnxEmbedder) -> None:
        self._engine = engine

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, dict[str, int]]:
        before = self._engine.usage
        vectors = self._engine.embed(texts, "document")
        used = (after - was for after, was in zip(self._engine.usage, before, strict=True))
        return vectors, dict(zip(before._fields, used, strict=True))

    def embed_query(self, text: str) -> Future[Vectors]:
        done: Future[Vectors] = Future()
        done.set_result(self._engine.embed([text], "query")[0])
        return done


class ModelEmbedder:
    """A model of vLLM or of an endpoint. Its event loop has a thread of its own: batch workers and judges can both wait for it."""

    def __init__(self, node: schema.ModelEmbeddings, place: Place) -> None:
        self._node = node
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="embedder", daemon=True).start()
        self._engine = asyncio.run_coroutine_threadsafe(self._start(place), self._loop).result()
        self._room = node.max_tokens - marks_of(self._engine.tokens)

    async def _start(self, place: Place) -> Engine:
        engine = await build_engine(self._node.model, ("embed",), place)
        prefixes = {"query_prefix": self._node.query_prefix, "document_prefix": self._node.document_prefix}
        await self_test.check(engine, ("embed",), TEST_SECONDS, **prefixes)
        return engine

    def embed_documents(self, texts: Sequence[str]) -> tuple[Vectors, dict[str, int]]:
        tokens, node = self._engine.tokens, self._node
        cut = [tokens.cut(node.document_prefix + text, self._room) for text in texts]
        vectors, usage = asyncio.run_coroutine_threadsafe(self._engine.embed(cut), self._loop).result()
        truncated = sum(len(kept) < len(node.document_prefix + text) for kept, text in zip(cut, texts, strict=True))
        return vectors, {"tokens": usage.get("prompt_tokens", 0), "truncated": truncated}

    def embed_query(self, text: str) -> Future[Vectors]:
        cut = self._engine.tokens.cut(self._node.query_prefix + text, self._room)

        async def embed() -> Vectors:
            vectors, _ = await self._engine.embed([cut])
            vector: Vectors = vectors[0]
            return vector

        return asyncio.run_coroutine_threadsafe(embed(), self._loop)


def build_embedder(node: schema.Embeddings, cache: str, place: Place | None = None) -> Embedder:
    """The embedder of a node, loaded once per process. cache: folder for prepared models. Raises BadInput with the remedy."""
    if isinstance(node, schema.ModelEmbeddings):
        if place is None:
            raise ValueError("embeddings.engine=model is not loaded here: ask through jobs.search or jobs.run_queries.")
        return _loaded_model(repr((node, place)), node, place)
    if isinstance(node, schema.SyntheticEmbeddings):
        from actors.engines.synthetic import TopicEmbedder

        return _kept(node, TopicEmbedder)
    if isinstance(node, schema.BroughtEmbeddings):
        from actors.engines.brought import BroughtEmbedder

        return _kept(node, BroughtEmbedder)
    return _loaded(cache, **{k: v for k, v in dataclasses.asdict(node).items() if k != "engine"})


@functools.lru_cache(maxsize=2)
def _loaded(cache: str, **arguments: str | bool | int) -> Embedder:
    return LocalEmbedder(OnnxEmbedder(cache=cache, **arguments))  # type: ignore[arg-type]


_models: dict[str, Embedder] = {}


def _kept(node: schema.Embeddings, embedder: Callable[[Any], Embedder]) -> Embedder:
    if repr(node) not in _models:
        _models[repr(node)] = embedder(node)
    return _models[repr(node)]


def _loaded_model(key: str, node: schema.ModelEmbeddings, place: Place) -> Embedder:
    if key not in _models:
        _models[key] = ModelEmbedder(node, place)
    return _models[key]


def model_digest(node: schema.Embeddings) -> str:
    """What decides the vectors, as a sha256 or a name and revision; loads no model."""
    if isinstance(node, schema.ModelEmbeddings):
        return f"{node.model.name} {getattr(node.model, 'revision', '')}"
    if isinstance(node, schema.BroughtEmbeddings):
        return "brought"
    if isinstance(node, schema.SyntheticEmbeddings):
        from actors.engines.synthetic import VERSION

        return f"drawn, version {VERSION}"
    files = find_model(node.model, node.sha256, node.pooling, node.max_tokens)
    return embedding_digest(files, node.quantise, node.query_prefix, node.document_prefix)
