"""A language model says yes or no to each row by itself (Eq. 6): the score is P(yes) of the two."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from actors.algorithms import prompts
from actors.engines.engine import Engine, EngineError, Judged
from actors.judges.judge import FAILED, OK, Ask, Scores, failed
from actors.judges.reading import texts_of
from conf import schema


class PointwiseJudge:
    """The prompts of one request begin alike, so that an engine with a prefix cache reads their beginning once."""

    def __init__(self, node: schema.PointwiseJudge, engine: Engine) -> None:
        self._engine = engine
        self._template = node.prompt
        room = node.model.max_model_len - 1 - prompts.CHAT_TOKENS
        self._limits = prompts.Limits(node.document_tokens, node.query_tokens, room)

    async def scores(self, asks: Sequence[Ask]) -> list[Scores]:
        return list(await asyncio.gather(*map(self._answer, asks)))

    async def _answer(self, ask: Ask) -> Scores:
        try:
            asked = prompts.yes_no(self._template, ask.query, texts_of(ask), self._engine.tokens, self._limits)
        except ValueError as error:  # not even the query fits
            return failed(ask, f"{FAILED}: {error}")
        answers = await asyncio.gather(*(self._judged(prompt) for prompt in asked))
        usage: Counter[str] = Counter(model_calls=len(asked), cut_texts=sum(prompt.cut for prompt in asked))
        errors = [answer for answer in answers if isinstance(answer, str)]
        for answer in answers:
            usage.update({"failed_calls": 1} if isinstance(answer, str) else answer.usage)
        values = [float("nan") if isinstance(answer, str) else answer.yes for answer in answers]
        return Scores(values, f"{FAILED}: {errors[0]}" if errors else OK, dict(usage))

    async def _judged(self, prompt: prompts.Prompt) -> Judged | str:
        """The answer, or why there is none: one prompt that fails leaves the others theirs."""
        try:
            return await self._engine.yes_no(prompt)
        except EngineError as error:
            return str(error)
