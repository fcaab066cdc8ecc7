"""A judge that asks a model is tested before it judges: one that ranks a known pair wrongly is refused, or reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from actors.corpora.records import BadInput
from actors.engines.build import Place
from actors.engines.engine import EngineError, Sampling
from actors.engines.self_test import PAIRS
from actors.judges.build import build_judge
from actors.judges.judge import Judge
from actors.judges.listwise import ListwiseJudge
from actors.judges.pointwise import PointwiseJudge
from conf import schema
from tests.judges import test_listwise, test_pointwise
from tests.scripted import Answer, ScriptedEngine, shown

PLACE = Place(1, 0.9, schema.Endpoint(1, 1.0, 1, 0))
LISTWISE, POINTWISE = test_listwise.NODE, test_pointwise.NODE
(QUERY, RELEVANT), (_, IRRELEVANT) = PAIRS[:2]
Start = Callable[..., Judge]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Builds the judge of a node on an engine; `start.verbs` is what the engine was built for."""

    def started(node: Any, engine: ScriptedEngine) -> Judge:
        async def build(model: schema.Model, verbs: Sequence[str], place: Place) -> ScriptedEngine:
            assert (model, place) == (node.model, PLACE)
            started.verbs = tuple(verbs)  # type: ignore[attr-defined]
            return engine

        monkeypatch.setattr("actors.judges.model.build_engine", build)
        return asyncio.run(build_judge(node, "reranker", PLACE))

    return started


def ranks(answer: Answer) -> ScriptedEngine:
    return ScriptedEngine(lambda text, sampling: answer)


def knows(text: str) -> float:
    return 0.9 if any(query in text and answer in text for query, answer in PAIRS) else 0.1


def test_a_model_that_ranks_the_pair_rightly_judges(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ranks("[2] > [1]")
    assert isinstance(start(LISTWISE, engine), ListwiseJudge)
    assert start.verbs == ("generate",)  # type: ignore[attr-defined]
    (asked,) = engine.asked
    assert shown(asked) == [IRRELEVANT, RELEVANT] and f"Query: {QUERY}\n" in asked, "window order is the wrong one"
    assert engine.sampled == [Sampling(50, 0.25, 7)] and capsys.readouterr().out == ""


@pytest.mark.parametrize(("answer", "outcome"), [("[1] > [2]", "ok"), ("I cannot say.", "unusable"), ("", "unusable")])
def test_a_model_that_ranks_it_wrongly_is_refused(answer: str, outcome: str, start: Start) -> None:
    said = rf"^reranker: scripted did not rank .* \(outcome {outcome}\)\. Check prompt and chat template.*self_test=report\.$"
    with pytest.raises(BadInput, match=said):
        start(LISTWISE, ranks(answer))


def test_a_weak_model_is_only_reported_where_that_is_wanted(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(start(replace(LISTWISE, self_test="report"), ranks("[1] > [2]")), ListwiseJudge)
    assert "reranker: scripted did not rank a text" in capsys.readouterr().out


@pytest.mark.parametrize("self_test", ["enforce", "report"])
def test_a_model_without_an_answer_is_always_refused(self_test: str, start: Start) -> None:
    with pytest.raises(BadInput, match=r"^reranker: scripted gave no answer within 300 s \(out of memory\)\. Check"):
        start(replace(LISTWISE, self_test=self_test), ranks(EngineError("out of memory")))


def test_a_model_that_never_answers_is_not_waited_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(ScriptedEngine):
        async def generate(self, *given: Any) -> Any:
            await asyncio.sleep(60)

    monkeypatch.setattr("actors.judges.model.TEST_SECONDS", 0.01)
    with pytest.raises(BadInput, match="gave no answer within 0 s"):
        start(LISTWISE, Silent())


def test_yes_and_no_are_tested_in_the_judge_s_own_template(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ScriptedEngine(yes=knows)
    assert isinstance(start(POINTWISE, engine), PointwiseJudge)
    assert start.verbs == ("yes_no",)  # type: ignore[attr-defined]
    assert len(engine.asked) == 4 and all(text.startswith("Say yes or no.\nQuery: ") for text in engine.asked)
    assert capsys.readouterr().out == ""


def test_yes_to_everything_is_refused_or_reported(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match=r"^self-test of yes_no: .* has P\(yes\) 0\.500 with its answer and 0\.500 with another"):
        start(POINTWISE, ScriptedEngine())
    assert isinstance(start(replace(POINTWISE, self_test="report"), ScriptedEngine()), PointwiseJudge)
    assert "self-test of yes_no: " in capsys.readouterr().out
    with pytest.raises(BadInput, match=r"self-test of yes_no: no answer \(gone\)"):
        start(replace(POINTWISE, self_test="report"), ScriptedEngine(yes=lambda text: EngineError("gone")))


@pytest.mark.parametrize("node", [LISTWISE, POINTWISE], ids=["listwise", "pointwise"])
def test_where_there_is_no_place_for_a_model_that_is_said(node: Any) -> None:
    with pytest.raises(ValueError, match=rf"reranker\.judge={node.judge} asks a model: it answers in jobs\.search and"):
        asyncio.run(build_judge(node, "reranker", None))
