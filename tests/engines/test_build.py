"""Texts on their way to an embedding model of vLLM or an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from actors.algorithms.prompts import Tokens
from actors.engines import build, self_test
from actors.engines.endpoint_tokens import EstimatedTokens, FileTokens
from conf import schema
from tests.scripted import MODEL

LIMIT = 8


class Kept:
    """An engine that keeps the texts it was to embed."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.texts = tokens, list[str]()

    async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], dict[str, int]]:
        self.texts += texts
        return np.ones((len(texts), 1), np.float32), {"prompt_tokens": 0}


def marked() -> Tokenizer:
    """Words as tokens, with a mark before and one behind."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return tokenizer


def embedder(monkeypatch: pytest.MonkeyPatch, engine: Kept) -> build.ModelEmbedder:
    async def started(*_: Any) -> Kept:
        return engine

    async def passed(*_: Any, **__: Any) -> list[str]:
        return []

    monkeypatch.setattr(build, "build_engine", started)
    monkeypatch.setattr(self_test, "check", passed)
    node = schema.ModelEmbeddings("model", MODEL, max_tokens=LIMIT, query_prefix="query ", document_prefix="")
    return build.ModelEmbedder(node, build.Place(1, 0.9, schema.Endpoint(1, 1.0, 1, 0)))


def test_a_text_is_cut_so_that_it_fits_with_the_tokenizers_own_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the ONNX engine counts: max_tokens is what the model sees."""
    engine, words = Kept(FileTokens(marked())), " ".join(f"w{i}" for i in range(20))
    asked = embedder(monkeypatch, engine)
    _, usage = asked.embed_documents([words, "short"])
    asked.embed_query(words).result(10)
    assert [len(marked().encode(text).ids) for text in engine.texts] == [LIMIT, 3, LIMIT]
    assert engine.texts[2].startswith("query w0") and usage["truncated"] == 1


def test_marks_that_are_not_known_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Kept(EstimatedTokens())
    embedder(monkeypatch, engine).embed_documents(["x" * 100])
    assert engine.tokens.count(engine.texts[0]) == LIMIT
