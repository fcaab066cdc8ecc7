"""Describes a group by a language model: a concept and a summary that tell it from other groups (Appendix F, Table 11)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from actors.algorithms import answers, prompts
from actors.engines.engine import Engine, EngineError, Sampling
from conf import schema

NUMBER_TOKENS = 6  # "[12] " before a document and the line break after it
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT, "maxItems": 12}
_FINGERPRINT = {"one_line_summary": _TEXT, "key_entities": _TEXTS, "genre_or_category": _TEXTS, "name": _TEXT}


def description_schema(fingerprints: int) -> str:
    """What Table 11 asks for, as a JSON schema. fingerprints: how many there may be; 0: none are asked for."""
    fingerprint = {"type": "object", "properties": _FINGERPRINT, "required": list(_FINGERPRINT), "additionalProperties": False}
    told: dict[str, Any] = {"common_theme": _TEXT, "concept": _TEXT, "summary": _TEXT}
    if fingerprints:
        told = {"detailed_fingerprints": {"type": "array", "items": fingerprint, "maxItems": fingerprints}, **told}
    return json.dumps({"type": "object", "properties": told, "required": list(told), "additionalProperties": False})


class Described(NamedTuple):
    """outcome: "ok" or "repaired", or what went wrong last; then concept and summary are empty."""

    concept: str
    summary: str
    outcome: str
    usage: Counter[str]


class Describer:
    """Asks until an answer can be used, each time with another seed, at most `attempts` times."""

    def __init__(self, node: schema.LlmSummaries, engine: Engine) -> None:
        self._node, self._engine = node, engine
        self._whole = node.prompt
        self._of_parts = node.parts_prompt
        room = node.model.max_model_len - node.answer_tokens - prompts.CHAT_TOKENS
        self._limits = prompts.Limits(node.document_tokens, 0, room)

    async def describe(self, texts: Sequence[str]) -> Described:
        """One group. A group that does not fit a prompt is described in parts, and then from the descriptions of its parts."""
        parts = self._parts(texts)
        if len(parts) == 1:
            return await self._ask(self._whole, texts)
        described = await asyncio.gather(*(self._ask(self._whole, part) for part in parts))
        usage: Counter[str] = sum((part.usage for part in described), Counter())
        usable = [f"{part.concept}: {part.summary}" for part in described if part.concept]
        if not usable:
            return described[0]._replace(usage=usage)
        joined = await self._ask(self._of_parts, usable)
        partly = len(usable) < len(parts) and joined.outcome == answers.OK
        return joined._replace(usage=joined.usage + usage, outcome=answers.REPAIRED if partly else joined.outcome)

    def _parts(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """As few parts as fit, of about equal size; a part has two documents at least, which are cut to fit."""
        tokens = self._engine.tokens
        room = self._limits.prompt - sum(map(tokens.count, self._whole.values()))
        needed = sum(min(tokens.count(text), self._node.document_tokens) + NUMBER_TOKENS for text in texts)
        count = min(-(-needed // max(room, 1)), max(1, len(texts) // 2))
        bounds = [len(texts) * i // count for i in range(count + 1)]
        return [texts[first:last] for first, last in zip(bounds, bounds[1:], strict=False)]

    async def _ask(self, template: prompts.Template, texts: Sequence[str]) -> Described:
        usage: Counter[str] = Counter()
        outcome = ""
        schema_of_answer = description_schema(len(texts) if template is self._whole else 0)
        for attempt in range(self._node.attempts):
            sampling = Sampling(self._node.answer_tokens, self._node.temperature, self._node.seed + attempt, schema_of_answer)
            try:
                prompt = prompts.summary(template, texts, self._engine.tokens, self._limits)
                generated = await self._engine.generate(prompt, sampling)
            except (EngineError, ValueError) as error:  # ValueError: not even the template fits
                usage.update({"model_calls": 1, "failed_calls": 1})
                outcome = f"failed: {error}"
                continue
            usage.update({"model_calls": 1, "cut_texts": prompt.cut, "unfinished": int(not generated.finished), **generated.usage})
            found = answers.parse_description(generated.text)
            if found.outcome != answers.UNUSABLE:
                return Described(found.concept, found.summary, found.outcome, usage)
            outcome = found.outcome
        return Described("", "", outcome, usage)


