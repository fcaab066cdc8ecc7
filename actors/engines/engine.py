"""What a model is asked, whatever runs it: to generate, to say yes or no, to embed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.prompts import Prompt, Tokens

Usage = dict[str, int]  # prompt_tokens, generated_tokens, cached_tokens (of the prompt), retries


class EngineError(Exception):
    """A request that got no answer. The message is short and holds nothing that a parser could take for one: "timeout"."""


class Sampling(NamedTuple):
    """temperature 0 and a seed unless somebody wants otherwise. schema: JSON schema that the answer must follow; None: any text."""

    max_tokens: int
    temperature: float = 0.0
    seed: int = 0
    schema: str | None = None


class Generated(NamedTuple):
    """finished: whether the model ended by itself, and was not cut off at max_tokens."""

    text: str
    finished: bool
    usage: Usage


class Judged(NamedTuple):
    """yes: P(yes) of yes and no alone, from the first token's log-probabilities."""

    yes: float
    usage: Usage


class Engine(Protocol):
    """A model that was loaded, or an endpoint. Requests may be made at once: it batches them or holds them back by itself.

    Every method raises EngineError when there is no answer.
    """

    @property
    def tokens(self) -> Tokens:
        """The model's tokenizer, for prompts that must fit."""

    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated: ...

    async def yes_no(self, prompt: Prompt) -> Judged: ...

    async def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], Usage]:
        """[n, d] float32, L2-normalised. Prefixes are in the texts already."""

    async def close(self) -> None:
        """Give back what it holds."""
