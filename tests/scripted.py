"""An engine that answers as a test says and keeps what it was asked; every word is a token."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.prompts import Prompt
from actors.engines.engine import EngineError, Generated, Judged, Sampling, Usage
from conf import schema

MODEL = schema.OpenAIModel("openai", "scripted", "http://nowhere/v1", "", max_model_len=400, thinking=False, tokenizer="")
Answer = str | Generated | EngineError
NUMBERED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


class Words:
    """Counts words; white space is kept where a text is cut."""

    def count(self, text: str) -> int:
        return len(text.split())

    def cut(self, text: str, n: int) -> str:
        words = list(re.finditer(r"\S+", text))
        return text if len(words) <= n else text[: words[n - 1].end()] if n > 0 else ""


class ScriptedEngine:
    """`answer` gets a prompt's text and how it is sampled, `yes` a prompt's text; an error that they return is raised."""

    tokens = Words()

    def __init__(
        self,
        answer: Callable[[str, Sampling], Answer] = lambda text, sampling: EngineError("nothing to say"),
        yes: Callable[[str], float | EngineError] = lambda text: 0.5,
    ) -> None:
        self._answer, self._yes = answer, yes
        self.asked: list[str] = []
        self.sampled: list[Sampling] = []

    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        text = self._text(prompt)
        self.sampled.append(sampling)
        answer = self._answer(text, sampling)
        if isinstance(answer, EngineError):
            raise answer
        if isinstance(answer, Generated):
            return answer
        usage = {"prompt_tokens": self.tokens.count(text), "generated_tokens": self.tokens.count(answer)}
        return Generated(answer, True, usage)

    async def yes_no(self, prompt: Prompt) -> Judged:
        text = self._text(prompt)
        yes = self._yes(text)
        if isinstance(yes, EngineError):
            raise yes
        return Judged(yes, {"prompt_tokens": self.tokens.count(text), "generated_tokens": 1})

    async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        raise EngineError("embeds nothing")

    async def close(self) -> None: ...

    def _text(self, prompt: Prompt) -> str:
        text = prompt.text if isinstance(prompt.text, str) else "\n".join(message["content"] for message in prompt.text)
        self.asked.append(text)
        return text


def shown(text: str) -> list[str]:
    """The numbered documents of a prompt."""
    return [document for _, document in NUMBERED.findall(text)]
