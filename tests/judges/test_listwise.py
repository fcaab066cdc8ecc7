"""A window ordered by a model's answer, on the toy: what is asked, what the answer becomes, and what stands in for none."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from actors.engines.engine import EngineError, Generated, Sampling
from actors.index import Index
from actors.judges.judge import GROUPS, Ask, Scores, best_first
from actors.judges.listwise import ListwiseJudge
from conf import schema
from tests import toy
from tests.scripted import MODEL, Answer, ScriptedEngine, shown

NODE = schema.ListwiseReranker(
    "listwise", MODEL, {"user": "Query: {query}\n{documents}\nRank {n}, {least} at least."},
    least=3, document_tokens=8, query_tokens=8, answer_tokens=50, temperature=0.25, seed=7, self_test="enforce",
)  # fmt: skip
ROWS = [3, 0, 8]
TRACE = "[Reasoning Trace]\nStep 1: what conducts\nStep 2: what is green\n\n[Document Ranking]\n[2] > [3] > [1]"


@pytest.fixture
def ask(toy_index: Index) -> Ask:
    return Ask(str(toy_index.folder), "q1", toy.QUERY, ROWS)


def answered(ask: Ask, answer: Answer, node: schema.ListwiseReranker = NODE) -> tuple[Scores, ScriptedEngine]:
    engine = ScriptedEngine(lambda text, sampling: answer)
    (scores,) = asyncio.run(ListwiseJudge(node, engine).scores([ask]))
    return scores, engine


def test_the_answer_s_order_becomes_values(ask: Ask) -> None:
    scores, engine = answered(ask, "[2] > [3] > [1]")
    assert best_first(ROWS, scores.values) == [0, 8, 3]
    assert (scores.values, scores.outcome) == ([1, 3, 2], "ok")
    assert not scores.comparable, "the first of another window is not as good for being first"
    prompt = f"Query: copper\n[1] {toy.TEXTS[3]}\n[2] {toy.TEXTS[0]}\n[3] {toy.TEXTS[8]}\nRank 3, 3 at least."
    assert engine.asked == [prompt]
    assert engine.sampled == [Sampling(max_tokens=50, temperature=0.25, seed=7)]


def test_what_is_not_named_follows_in_window_order_and_is_told(ask: Ask) -> None:
    scores, _ = answered(ask, "[3]")
    assert (best_first(ROWS, scores.values), scores.outcome) == ([8, 3, 0], "missing ids")
    scores, _ = answered(ask, "[3]", replace(NODE, least=1))
    assert (best_first(ROWS, scores.values), scores.outcome) == ([8, 3, 0], "ok")


def test_an_unusable_answer_keeps_the_window_s_order_and_says_so(ask: Ask) -> None:
    scores, _ = answered(ask, "I would rather not.")
    assert (best_first(ROWS, scores.values), scores.outcome) == (ROWS, "unusable")
    assert scores.usage["model_calls"] == 1, "it was paid for"


def test_steps_are_handed_over_where_a_plan_is_asked_for(ask: Ask) -> None:
    scores, _ = answered(ask._replace(plan=True), TRACE)
    assert list(scores.steps) == ["what conducts", "what is green"]
    assert best_first(ROWS, scores.values) == [0, 8, 3]
    assert list(answered(ask, TRACE)[0].steps) == []


def test_no_answer_is_no_order(ask: Ask) -> None:
    scores, _ = answered(ask._replace(plan=True), EngineError("timeout"))
    assert scores.outcome == "failed: timeout" and list(scores.steps) == []
    assert len(scores.values) == 3 and all(map(math.isnan, scores.values))
    assert best_first(ROWS, scores.values) is None


def test_a_query_that_does_not_fit_is_never_sent(ask: Ask) -> None:
    tight = replace(NODE, model=replace(MODEL, max_model_len=50 + 64 + 10), query_tokens=100)  # 10 words for all that is sent
    scores, engine = answered(ask._replace(query="word " * 20), "[1] > [2] > [3]", tight)
    assert scores.outcome.startswith("failed: a prompt of 29 tokens without any document, where 10 are allowed")
    assert all(map(math.isnan, scores.values)) and engine.asked == []


def test_counters(ask: Ask) -> None:
    long = ask._replace(query="copper " * 9, rows=[4, 0])  # doc 4 has nine words, one more than may be shown
    cut_off = Generated("[1] > [2]", False, {"prompt_tokens": 20, "generated_tokens": 50, "cached_tokens": 4})
    scores, engine = answered(long, cut_off)
    assert scores.usage == {
        "model_calls": 1, "cut_texts": 2, "unfinished": 1, "prompt_tokens": 20, "generated_tokens": 50, "cached_tokens": 4,
    }  # fmt: skip
    assert shown(engine.asked[0])[0] == " ".join(toy.TEXTS[4].split()[:8])
    assert answered(ask, "[1] > [2] > [3]")[0].usage == {
        "model_calls": 1, "cut_texts": 0, "unfinished": 0, "prompt_tokens": 2 + 4 + 3 + 7 + 5, "generated_tokens": 5,
    }  # fmt: skip


def test_of_several_requests_each_has_its_own_answer(ask: Ask) -> None:
    def answer(text: str, sampling: Sampling) -> Answer:
        return EngineError("lost") if "rust" in text else "[1] > [2]" if "one" in text else "[2] > [1]"

    asks = [ask._replace(query=query, rows=[1, 2]) for query in ("one", "rust", "two")]
    found = asyncio.run(ListwiseJudge(NODE, ScriptedEngine(answer)).scores(asks))
    assert [best_first([1, 2], scores.values) for scores in found] == [[1, 2], None, [2, 1]]
    assert [scores.outcome for scores in found] == ["ok", "failed: lost", "ok"]


def test_groups_are_read_by_their_summaries(ask: Ask) -> None:
    scores, engine = answered(ask._replace(of=GROUPS, rows=[3, 1]), "[2] > [1]")
    assert shown(engine.asked[0]) == ["coins All about coins.", "wires All about wires."]
    assert best_first([3, 1], scores.values) == [1, 3]
