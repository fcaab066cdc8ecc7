"""The start-up test, on engines that do one thing wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.algorithms.prompts import Prompt
from actors.corpora.records import BadInput
from actors.engines.engine import EngineError, Generated, Judged, Sampling, Usage
from actors.engines.self_test import PAIRS, check

TEMPLATE = {"instruct": "Given a query, retrieve passages that answer it"}
QUERIES, ANSWERS = zip(*PAIRS, strict=True)


class Words:
    """Every word a token."""

    def count(self, text: str) -> int:
        return len(text.split())

    def cut(self, text: str, n: int) -> str:
        return " ".join(text.split()[:n])


class Right:
    """Knows the pairs by heart. What it was asked is kept."""

    tokens = Words()

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        self.asked += texts
        topics = [i for text in texts for i, pair in enumerate(PAIRS) if text.endswith(pair)]
        return np.eye(len(PAIRS), dtype=np.float32)[topics], {}

    async def yes_no(self, prompt: Prompt) -> Judged:
        assert isinstance(prompt.text, str)
        self.asked.append(prompt.text)
        return Judged(0.9 if any(query in prompt.text and answer in prompt.text for query, answer in PAIRS) else 0.1, {})

    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        assert sampling.schema and sampling.temperature == 0
        return Generated('{"colour": "white"}', True, {})

    async def close(self) -> None: ...


def checked(engine: Right, *verbs: str, seconds: float = 5, enforce: bool = True) -> list[str]:
    prefixes = {"query_prefix": "query: ", "document_prefix": "passage: "}
    return asyncio.run(check(engine, verbs, seconds, template=TEMPLATE, enforce=enforce, **prefixes))  # type: ignore[arg-type]


def test_all_right_in_the_judges_own_template_and_prefixes() -> None:
    engine = Right()
    assert checked(engine, "embed", "yes_no", "generate") == []
    assert set(engine.asked) > {f"query: {query}" for query in QUERIES} | {f"passage: {answer}" for answer in ANSWERS}
    judged = [text for text in engine.asked if "<Query>" in text]
    assert len(judged) == 4 and all(TEMPLATE["instruct"] in text for text in judged)


def test_only_the_asked_verbs_are_tried() -> None:
    engine = Right()
    assert checked(engine, "generate") == [] and engine.asked == []
    with pytest.raises(ValueError, match=r"verbs \['sing'\]: expected some of embed, yes_no, generate"):
        checked(engine, "sing")


class Constant(Right):
    """What a wrong template or a wrong pooling looks like."""

    async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        return np.tile(np.float32([1, 0]), (len(texts), 1)), {}

    async def yes_no(self, prompt: Prompt) -> Judged:
        return Judged(0.5, {})


class Prefers(Right):
    """Says yes to one text, whatever the query: right for the first query, by chance."""

    async def yes_no(self, prompt: Prompt) -> Judged:
        return Judged(0.9 if ANSWERS[0] in prompt.text else 0.1, {})


class Nan(Right):
    async def yes_no(self, prompt: Prompt) -> Judged:
        return Judged(float("nan"), {})


@pytest.mark.parametrize(
    ("engine", "verb", "why"),
    [
        (Constant(), "yes_no", "P\\(yes\\) 0.500 .* and 0.500 .*template"),
        (Prefers(), "yes_no", f"{QUERIES[1]}.*0.100 .* and 0.900"),
        (Nan(), "yes_no", "P\\(yes\\) nan"),
        (Constant(), "embed", "similarity 1.000 to its answer and 1.000 .*pooling"),
    ],
)
def test_a_wrong_order_is_refused_or_reported(engine: Right, verb: str, why: str) -> None:
    with pytest.raises(BadInput, match=f"self-test of {verb}: .*{why}"):
        checked(engine, verb)
    [said] = checked(engine, verb, enforce=False)
    assert said.startswith(f"self-test of {verb}: ")


class Long(Right):
    async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        vectors, usage = await super().embed(texts)
        return vectors * 2, usage


class Blank(Right):
    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        return Generated('{"colour":' + " " * 90, False, {})


class Chatty(Right):
    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        return Generated('["white"]', True, {})


class Absent(Right):
    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        raise EngineError("engine dead")


class Slow(Right):
    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        await asyncio.sleep(60)
        raise AssertionError


@pytest.mark.parametrize(
    ("engine", "verb", "why"),
    [
        (Long(), "embed", "vectors of length 2.0 to 2.0, expected 1"),
        (Blank(), "generate", "cut off after 100 tokens"),
        (Chatty(), "generate", r"got '\[\"white\"\]'; check"),
        (Absent(), "generate", r"no answer \(engine dead\); check .*memory"),
        (Slow(), "generate", "no answer within the time limit; check .*memory"),
    ],
)
def test_what_no_weak_model_excuses(engine: Right, verb: str, why: str) -> None:
    for enforce in (True, False):
        with pytest.raises(BadInput, match=f"self-test of {verb}: .*{why}"):
            checked(engine, verb, seconds=0.1, enforce=enforce)


def test_the_time_limit_is_for_all_verbs_together() -> None:
    class Half(Right):
        async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
            await asyncio.sleep(0.2)
            return await super().embed(texts)

        async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
            await asyncio.sleep(0.2)
            return await super().generate(prompt, sampling)

    assert checked(Half(), "embed", seconds=0.3) == []
    with pytest.raises(BadInput, match="self-test of generate: no answer within"):
        checked(Half(), "embed", "generate", seconds=0.3)


def test_yes_no_needs_the_judges_template() -> None:
    with pytest.raises(ValueError, match="the judge's own template"):
        asyncio.run(check(Right(), {"yes_no"}, 5))
