"""Yes or no to each row, on the toy: P(yes) is the value, and a prompt without an answer leaves the others theirs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from actors.engines.build import Place
from actors.engines.engine import EngineError
from actors.index import Index
from actors.judges.judge import GROUPS, Ask, Scores, best_first
from actors.judges.pointwise import PointwiseJudge
from actors.reranker import Reranker
from conf import schema
from tests import toy
from tests.scripted import MODEL, ScriptedEngine

CHAT = {"system": "Say yes or no.", "user": "Query: {query} Document: {document}"}
NODE = schema.PointwiseJudge("pointwise", MODEL, CHAT, document_tokens=8, query_tokens=8, self_test="enforce")
ROWS = [3, 0, 8]
Yes = Callable[[str], float | EngineError]


@pytest.fixture
def ask(toy_index: Index) -> Ask:
    return Ask(str(toy_index.folder), "q1", toy.QUERY, ROWS)


def by_row(text: str) -> float | EngineError:
    """The probability that the toy's table has for the document of a prompt."""
    return next(toy.DOCUMENT_SCORE[row] for row, document in enumerate(toy.TEXTS) if text.endswith(f"Document: {document}"))


def failing_at(row: int) -> Yes:
    return lambda text: EngineError("timeout") if text.endswith(toy.TEXTS[row]) else by_row(text)


def answered(ask: Ask, yes: Yes = by_row, node: schema.PointwiseJudge = NODE) -> tuple[Scores, ScriptedEngine]:
    engine = ScriptedEngine(yes=yes)
    (scores,) = asyncio.run(PointwiseJudge(node, engine).scores([ask]))
    return scores, engine


def test_a_value_is_the_probability_of_yes(ask: Ask) -> None:
    scores, engine = answered(ask)
    assert (scores.values, scores.outcome) == ([toy.DOCUMENT_SCORE[row] for row in ROWS], "ok")
    assert scores.comparable, "a probability means the same in every request"
    assert engine.asked == [f"Say yes or no.\nQuery: copper Document: {toy.TEXTS[row]}" for row in ROWS]


def test_the_qwen3_interface_is_used_with_its_instruction(ask: Ask) -> None:
    _, engine = answered(ask, lambda text: 0.5, replace(NODE, prompt={"instruct": "Find metals"}))
    assert all("<Instruct>: Find metals\n<Query>: copper\n<Document>: " in text for text in engine.asked)
    assert toy.TEXTS[8] in engine.asked[2]


def test_one_prompt_without_an_answer_leaves_the_others(ask: Ask) -> None:
    scores, _ = answered(ask, failing_at(0))
    assert [scores.values[0], scores.values[2]] == [toy.DOCUMENT_SCORE[3], toy.DOCUMENT_SCORE[8]]
    assert math.isnan(scores.values[1]) and scores.outcome == "failed: timeout"
    assert best_first(ROWS, scores.values) is None
    assert (scores.usage["model_calls"], scores.usage["failed_calls"], scores.usage["generated_tokens"]) == (3, 1, 2)


def test_the_reranker_has_no_order_then(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    async def build(*given: object) -> ScriptedEngine:
        return ScriptedEngine(yes=failing_at(0))

    async def ranked() -> Scores:
        shell = Reranker(replace(NODE, self_test="report"), Place(1, 0.9, schema.Endpoint(1, 1.0, 1, 0)))
        await shell.start()
        (scores,) = await shell.answer([ask])
        return scores

    async def passes(*given: object, **named: object) -> list[str]:
        return []

    monkeypatch.setattr("actors.judges.model.build_engine", build)
    monkeypatch.setattr("actors.engines.self_test.check", passes)
    scores = asyncio.run(ranked())
    assert best_first(ROWS, scores.values) is None and scores.values[2] == toy.DOCUMENT_SCORE[8]


def test_all_prompts_without_an_answer(ask: Ask) -> None:
    scores, _ = answered(ask, lambda text: EngineError("gone"))
    assert all(map(math.isnan, scores.values)) and scores.outcome == "failed: gone"
    assert scores.usage == {"model_calls": 3, "cut_texts": 0, "failed_calls": 3}


def test_counters(ask: Ask) -> None:
    scores, engine = answered(ask._replace(rows=[4, 0]), lambda text: 0.5)  # doc 4 has nine words, one more than may be shown
    assert engine.asked[0].endswith("to every last")
    assert scores.usage == {"model_calls": 2, "cut_texts": 1, "prompt_tokens": 7 + 8 + 7 + 2, "generated_tokens": 2}


def test_a_query_that_does_not_fit_is_never_sent(ask: Ask) -> None:
    tight = replace(NODE, model=replace(MODEL, max_model_len=1 + 64 + 10), query_tokens=100)  # 10 words for all that is sent
    scores, engine = answered(ask._replace(query="word " * 20), by_row, tight)
    assert scores.outcome.startswith("failed: a prompt of 26 tokens without any document, where 10 are allowed")
    assert len(scores.values) == 3 and all(map(math.isnan, scores.values)) and engine.asked == []


def test_groups_are_read_by_their_summaries(ask: Ask) -> None:
    by_concept = dict(zip(toy.CONCEPTS, toy.GROUP_SCORE, strict=True))

    def yes(text: str) -> float:
        concept, _, said = text.partition("Document: ")[2].partition("\n")
        assert said == f"All about {concept}."
        return by_concept[concept]

    scores, _ = answered(ask._replace(of=GROUPS, rows=[3, 1, 0, 2]), yes)
    assert scores.values == [toy.GROUP_SCORE[group] for group in (3, 1, 0, 2)]


def test_of_several_requests_each_has_its_own_answer(ask: Ask) -> None:
    def yes(text: str) -> float | EngineError:
        return EngineError("lost") if "Query: rust" in text else by_row(text)

    asks = [ask._replace(query=query, rows=rows) for query, rows in (("copper", [1]), ("rust", [4, 2]), ("wire", [10]))]
    found = asyncio.run(PointwiseJudge(NODE, ScriptedEngine(yes=yes)).scores(asks))
    assert [scores.outcome for scores in found] == ["ok", "failed: lost", "ok"]
    assert [found[0].values, found[2].values] == [[toy.DOCUMENT_SCORE[1]], [toy.DOCUMENT_SCORE[10]]]
