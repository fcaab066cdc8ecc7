"""The engine that asks nothing: its answers can be parsed, and its counts are those of a model with the same tokenizer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from actors.algorithms.answers import parse_description, steps
from actors.algorithms.prompts import Message, Prompt
from actors.engines.dry import MESSAGE_TOKENS, DryEngine, tokens_of
from actors.engines.endpoint_tokens import EstimatedTokens, FileTokens
from actors.engines.engine import Sampling
from conf import schema
from tests.scripted import MODEL, Words

CHAT = [Message(role="system", content="one two three"), Message(role="user", content="Describe:\n[1] a b\n[2] c")]
VLLM = schema.VllmModel("vllm", "nobody/no-such-model", "", "auto", "", 512, "", False)


def test_messages_are_counted_with_what_a_chat_template_adds() -> None:
    generated = asyncio.run(DryEngine(Words(), 7).generate(Prompt(CHAT, 0), Sampling(100)))
    assert generated.usage == {"prompt_tokens": 3 + 6 + 2 * MESSAGE_TOKENS, "generated_tokens": 7} and generated.finished
    judged = asyncio.run(DryEngine(Words(), 7).yes_no(Prompt(CHAT, 0)))
    assert judged.usage == {"prompt_tokens": 3 + 6 + 2 * MESSAGE_TOKENS, "generated_tokens": 1} and judged.yes == 0.5


def test_a_string_has_the_model_s_interface_in_it_already() -> None:
    assert asyncio.run(DryEngine(Words(), 1).yes_no(Prompt("a b c d", 0))).usage["prompt_tokens"] == 4
    assert asyncio.run(DryEngine(Words(), 5, 9).generate(Prompt("a\n[1] b", 0), Sampling(100))).usage["generated_tokens"] == 5


def test_an_answer_grows_with_the_documents_and_ends_at_its_limit() -> None:
    for limit, tokens in ((100, 30 + 2 * 10), (45, 45)):
        found = asyncio.run(DryEngine(Words(), 30, 10).generate(Prompt(CHAT, 0), Sampling(limit)))
        assert found.usage["generated_tokens"] == tokens


def test_its_answer_is_a_description_and_no_plan() -> None:
    answer = asyncio.run(DryEngine(Words(), 1).generate(Prompt(CHAT, 0), Sampling(100))).text
    assert parse_description(answer).outcome == "ok" and not list(steps(answer))


def test_texts_that_would_be_embedded_are_counted() -> None:
    vectors, usage = asyncio.run(DryEngine(Words(), 1).embed(["a b", "c"]))
    assert len(vectors) == 2 and usage == {"prompt_tokens": 3}
    asyncio.run(DryEngine(Words(), 1).close())


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    tokenizer = Tokenizer(WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_the_model_s_own_tokenizer_counts_where_it_is_at_hand(tokenizer: Path) -> None:
    for model in (replace(VLLM, name=str(tokenizer)), replace(MODEL, tokenizer=str(tokenizer))):
        tokens = tokens_of(model)
        assert isinstance(tokens, FileTokens) and tokens.count("extraordinarily long words") == 3


def test_else_tokens_are_estimated(tmp_path: Path) -> None:
    for model in (VLLM, replace(VLLM, name=str(tmp_path)), replace(VLLM, name=str(tmp_path / "elsewhere")), MODEL):
        assert isinstance(tokens_of(model), EstimatedTokens)
