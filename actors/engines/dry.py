"""An engine that asks nothing: it counts what would be asked, so that a plan can say what a job would take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.prompts import Prompt, Tokens
from actors.engines.endpoint_tokens import EstimatedTokens, load_tokens
from actors.engines.engine import Generated, Judged, Sampling, Usage
from conf import schema

MESSAGE_TOKENS = 5  # that a chat template puts around a message
ANSWER = json.dumps({"concept": "a concept", "summary": "A description that is long enough to be taken for one."})


class DryEngine:
    """Gives answers that a parser accepts, and the usage that a real answer would have."""

    def __init__(self, tokens: Tokens, generated_tokens: int, generated_per_document: int = 0) -> None:
        """generated_tokens: of one answer; generated_per_document: more for each document `[n]` in the prompt."""
        self._tokens = tokens
        self._generated, self._per_document = generated_tokens, generated_per_document

    @property
    def tokens(self) -> Tokens:
        return self._tokens

    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        documents = 0 if isinstance(prompt.text, str) else sum(m["content"].count("\n[") for m in prompt.text)
        generated = min(self._generated + self._per_document * documents, sampling.max_tokens)
        return Generated(ANSWER, True, {"prompt_tokens": self._count(prompt), "generated_tokens": generated})

    async def yes_no(self, prompt: Prompt) -> Judged:
        return Judged(0.5, {"prompt_tokens": self._count(prompt), "generated_tokens": 1})

    async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        return np.ones((len(texts), 1), np.float32), {"prompt_tokens": sum(map(self._tokens.count, texts))}

    async def close(self) -> None:
        return None

    def _count(self, prompt: Prompt) -> int:
        if isinstance(prompt.text, str):
            return self._tokens.count(prompt.text)
        return sum(self._tokens.count(message["content"]) + MESSAGE_TOKENS for message in prompt.text)


def tokens_of(model: schema.Model) -> Tokens:
    """The model's tokenizer where its tokenizer.json is at hand, in its folder or in the hub's cache; else an estimate."""
    if isinstance(model, schema.OpenAIModel):
        return load_tokens(model.tokenizer)
    if Path(model.name).is_absolute():  # no name of the hub, which refuses it
        return load_tokens(model.name) if (Path(model.name) / "tokenizer.json").is_file() else EstimatedTokens()
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return EstimatedTokens()
    cached = try_to_load_from_cache(model.name, "tokenizer.json", revision=model.revision or None)
    return load_tokens(cached) if isinstance(cached, str) else EstimatedTokens()
