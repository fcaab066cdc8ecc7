"""The answers of a finished run, given again without its models: the same to the same requests, to others from recorded scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from actors.artifacts.run import ANSWERS, Exchange, open_answers
from actors.judges.judge import FAILED, OK, Ask, Scores, failed

Request = tuple[str, str, tuple[int, ...], tuple[str, ...]]


class ReplayJudge:
    """Knows what one role of a run answered. Another method asks other things: what is not known is counted as "missing"."""

    def __init__(self, run: str, role: str, missing: float) -> None:
        """run: its folder. role: whose answers. missing: the score of what was never judged.

        Raises ValueError naming a folder without answers.
        """
        self._missing = missing
        self._whole: dict[Request, Exchange] = {}
        self._pairs: dict[tuple[str, str, int], float] = {}
        if not (Path(run) / ANSWERS).is_file():
            raise ValueError(f"{run}: holds no {ANSWERS}. Give {role}.path the folder of a finished run.")
        for query_id, answer in open_answers(Path(run), role):
            self._whole[query_id, answer.of, tuple(answer.rows), tuple(answer.texts)] = answer
            if answer.comparable and not answer.texts:
                pairs = zip(answer.rows, answer.values, strict=True)
                self._pairs.update(((query_id, answer.of, row), value) for row, value in pairs if not math.isnan(value))

    async def scores(self, asks: Sequence[Ask]) -> list[Scores]:
        return [self._answer(ask) for ask in asks]

    def _answer(self, ask: Ask) -> Scores:
        if known := self._whole.get((ask.query_id, ask.of, tuple(ask.rows), tuple(ask.texts))):
            return Scores(known.values, known.outcome, known.usage, known.steps, known.comparable)
        if ask.texts:
            return failed(ask, f"{FAILED}: not recorded")
        found = [self._pairs.get((ask.query_id, ask.of, row)) for row in ask.rows]
        missing = found.count(None)
        return Scores([self._missing if s is None else s for s in found], OK, {"missing": missing} if missing else {})
