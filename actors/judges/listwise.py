"""A language model orders a whole window (Eq. 1): the prompt of Table 10, with or without a reasoning trace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from actors.algorithms import answers, prompts
from actors.engines.engine import Engine, EngineError, Sampling
from actors.judges.judge import FAILED, Ask, Scores, failed
from actors.judges.reading import texts_of
from conf import schema


class ListwiseJudge:
    """Its values stand for an order only: n for the first of n documents, 1 for the last."""

    def __init__(self, node: schema.ListwiseReranker, engine: Engine) -> None:
        self._node, self._engine = node, engine
        self._template = node.prompt
        room = node.model.max_model_len - node.answer_tokens - prompts.CHAT_TOKENS
        self._limits = prompts.Limits(node.document_tokens, node.query_tokens, room)
        self._sampling = Sampling(node.answer_tokens, node.temperature, node.seed)

    async def scores(self, asks: Sequence[Ask]) -> list[Scores]:
        return list(await asyncio.gather(*map(self._answer, asks)))

    async def _answer(self, ask: Ask) -> Scores:
        try:
            prompt = prompts.listwise(
                self._template, ask.query, texts_of(ask), self._node.least, self._engine.tokens, self._limits
            )
            generated = await self._engine.generate(prompt, self._sampling)
        except EngineError as error:
            return failed(ask, f"{FAILED}: {error}")._replace(usage={"model_calls": 1, "failed_calls": 1})
        except ValueError as error:  # not even the query fits
            return failed(ask, f"{FAILED}: {error}")
        ranking = answers.parse_ranking(generated.text, len(ask.rows), self._node.least)
        values = [0.0] * len(ask.rows)
        for position, place in enumerate(ranking.order):
            values[place] = float(len(ask.rows) - position)
        usage = {"model_calls": 1, "cut_texts": prompt.cut, "unfinished": int(not generated.finished), **generated.usage}
        return Scores(values, ranking.outcome, usage, answers.steps(generated.text) if ask.plan else (), comparable=False)
