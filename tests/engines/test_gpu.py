"""Each role by a real model on a GPU: `make test-gpu`. The models come from the hub, or from folders named in the environment."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from actors.algorithms.prompts import Message, Prompt
from actors.engines import self_test
from actors.engines.engine import Sampling
from actors.engines.vllm import VllmEngine
from conf import schema, templates
from conf.load import PROMPTS


def gpus() -> int:
    if find_spec("torch") is None:
        return 0
    import torch

    return int(torch.cuda.device_count())


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(gpus() == 0, reason="no GPU that torch can see")]
EMBEDDER = os.environ.get("GAREN_TEST_EMBEDDER", "Qwen/Qwen3-Embedding-0.6B")
NAVIGATOR = os.environ.get("GAREN_TEST_NAVIGATOR", "Qwen/Qwen3-Reranker-0.6B")
WRITER = os.environ.get("GAREN_TEST_WRITER", "Qwen/Qwen3.5-0.8B")
QUERY_PREFIX = "Instruct: Given a query, retrieve relevant passages that answer the query\nQuery:"


def asked(model: str, verbs: Sequence[str], pooling: str, ask: Any) -> Any:
    """Start a model, ask it, and give the GPU back."""

    async def run() -> Any:
        node = schema.VllmModel("vllm", model, "", "auto", "", 4096, pooling, False)
        engine = VllmEngine(node, verbs, tensor_parallel_size=1, gpu_memory_utilization=0.5)
        try:
            return await ask(engine)
        finally:
            await engine.close()

    return asyncio.run(run())


def test_embedder() -> None:
    check = asked(EMBEDDER, ("embed",), "last", lambda e: self_test.check(e, ("embed",), 300, query_prefix=QUERY_PREFIX))
    assert check == []


def test_navigator() -> None:
    template = templates.parse((PROMPTS / "navigator.txt").read_text(), "yes_no")
    assert asked(NAVIGATOR, ("yes_no",), "", lambda e: self_test.check(e, ("yes_no",), 300, template=template)) == []


def test_reranker_and_summarizer() -> None:
    async def ask(engine: VllmEngine) -> Any:
        await self_test.check(engine, ("generate",), 300)
        prompt = Prompt([Message(role="user", content="Answer with the one word: ready")], 0)
        return await asyncio.gather(*(engine.generate(prompt, Sampling(8)) for _ in range(100)))

    answers = asked(WRITER, ("generate",), "", ask)
    assert len({answer.text for answer in answers}) == 1 and sum(a.usage["cached_tokens"] for a in answers) >= 0
