"""What is foreseen is what a model would be asked, on the toy; and what it costs, by hand."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from actors.algorithms.prompts import Prompt
from actors.artifacts import queries as query_files
from actors.artifacts.queries import Query
from actors.describer import Describer
from actors.engines.dry import MESSAGE_TOKENS
from actors.engines.endpoint_tokens import EstimatedTokens
from actors.engines.engine import Generated, Judged, Sampling
from actors.index import Index
from actors.judges.judge import Ask, Scores
from actors.judges.listwise import ListwiseJudge
from actors.judges.pointwise import PointwiseJudge
from actors.searcher import Searcher
from conf import schema
from conf.load import compose
from jobs import costs
from jobs.console import duration
from tests import test_describer, toy
from tests.scripted import MODEL, ScriptedEngine, shown

ROOMY = replace(MODEL, max_model_len=32768)
TEXTS = ["copper", "bread and money", "green copper roofs in the rain", "wire", "who mines metal"]
PRICE = schema.Price(prompt_price=2.0, cached_price=0.5, generated_price=8.0, prompt_speed=1000.0, generated_speed=50.0)
FREE = schema.Price(0.0, 0.0, 0.0, 1000.0, 100.0)
PRICES = schema.Prices("EUR", reasoning_tokens=500, description_tokens=60, models={"scripted": PRICE, "default": FREE})


class CountingEngine(ScriptedEngine):
    """Ranks and says yes by the toy's tables, and counts like a server: every message comes with tokens around it."""

    tokens = EstimatedTokens()  # type: ignore[assignment]

    async def generate(self, prompt: Prompt, sampling: Sampling) -> Generated:
        text = self._text(prompt)
        value = {document: toy.DOCUMENT_SCORE[row] for row, document in enumerate(toy.TEXTS)}
        best = sorted(enumerate(shown(text), 1), key=lambda item: -value[item[1]])
        answer = f"<answer> {' > '.join(f'[{number}]' for number, _ in best)} </answer>"
        return Generated(answer, True, {"prompt_tokens": self._count(prompt), "generated_tokens": self.tokens.count(answer)})

    async def yes_no(self, prompt: Prompt) -> Judged:
        text = self._text(prompt)
        group = next(n for n, concept in enumerate(toy.CONCEPTS) if f"All about {concept}." in text)
        return Judged(toy.GROUP_SCORE[group], {"prompt_tokens": self._count(prompt), "generated_tokens": 1})

    def _count(self, prompt: Prompt) -> int:
        if isinstance(prompt.text, str):
            return self.tokens.count(prompt.text)
        return sum(self.tokens.count(message["content"]) + MESSAGE_TOKENS for message in prompt.text)


@pytest.fixture(scope="module")
def settings() -> schema.Settings:
    """The paper's judges and their prompts, with the toy's loop."""
    made = compose(["reranker=listwise", "navigator=pointwise", "navigator.prompt=navigator_chat"])
    assert isinstance(made.reranker, schema.ListwiseReranker) and isinstance(made.navigator, schema.PointwiseJudge)
    answering = toy.answering(Path("/nowhere"))
    judges = {"reranker": replace(made.reranker, model=ROOMY, least=4), "navigator": replace(made.navigator, model=ROOMY)}
    return replace(made, first_stage=answering.first_stage, loop=answering.loop, prices=PRICES, **judges)


def asked(folder: Path, texts: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    query_files.write(folder, [Query(f"q{n}", text, ()) for n, text in enumerate(texts)], [])
    return folder


def really(settings: schema.Settings, index: Index, folder: Path) -> dict[str, Counter[str]]:
    """What all queries take when a model is asked."""
    judges = {
        "reranker": ListwiseJudge(settings.reranker, CountingEngine()),  # type: ignore[arg-type]
        "navigator": PointwiseJudge(settings.navigator, CountingEngine()),  # type: ignore[arg-type]
    }

    def reached(judge: ListwiseJudge | PointwiseJudge):  # type: ignore[no-untyped-def]
        async def answer(ask: Ask) -> Scores:
            return (await judge.scores([ask]))[0]

        return answer

    searcher = Searcher(index, settings.answering, {role: reached(judge) for role, judge in judges.items()}, str(folder))
    usage: dict[str, Counter[str]] = {"reranker": Counter(), "navigator": Counter()}
    for query in query_files.open_queries(folder):
        for role, counters in asyncio.run(searcher.answer(query)).usage.items():
            usage.setdefault(role, Counter()).update(counters)
    return usage


# --- foreseen ---------------------------------------------------------------------------------------------------------


def test_a_dry_run_foresees_what_a_model_is_asked(settings: schema.Settings, toy_index: Index, tmp_path: Path) -> None:
    """A model that judges goes another way through the graph than one that has no opinion, and reads about as much."""
    folder = asked(tmp_path, TEXTS)
    foreseen, real = costs.of_run(settings, toy_index.folder, folder), really(settings, toy_index, folder)
    assert foreseen["reranker"]["model_calls"] == foreseen["reranker"]["calls"] == real["reranker"]["model_calls"] > len(TEXTS)
    assert foreseen["reranker"]["prompt_tokens"] > 1000
    for role in ("reranker", "navigator"):
        for counter in ("calls", "model_calls", "prompt_tokens", "generated_tokens"):
            assert foreseen[role][counter] == pytest.approx(real[role][counter], rel=0.2), (role, counter)


def test_for_a_model_without_an_opinion_it_is_exact(
    settings: schema.Settings, toy_index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy, "DOCUMENT_SCORE", [0.5] * 12)
    monkeypatch.setattr(toy, "GROUP_SCORE", [0.5] * 4)
    folder = asked(tmp_path, TEXTS)
    foreseen, real = costs.of_run(settings, toy_index.folder, folder), really(settings, toy_index, folder)
    for role in ("reranker", "navigator"):
        for counter in ("calls", "judged", "model_calls", "prompt_tokens", "cut_texts"):
            assert foreseen[role][counter] == real[role][counter], (role, counter)
    assert foreseen["loop"] == real["loop"]


def test_a_method_without_a_judge_takes_nothing(settings: schema.Settings, toy_index: Index, tmp_path: Path) -> None:
    only_pool = replace(settings, loop=schema.Bm25Loop("bm25", 8))
    assert costs.of_run(only_pool, toy_index.folder, asked(tmp_path, TEXTS))["reranker"] == {}
    assert costs.models_of(only_pool) == {}


def test_a_reasoning_trace_is_foreseen_by_its_stated_length(settings: schema.Settings, toy_index: Index, tmp_path: Path) -> None:
    folder = asked(tmp_path, TEXTS[:1])
    node = replace(settings.reranker, prompt={"user": "Reasoning first. {query} {documents}"}, answer_tokens=2048)
    found = costs.of_run(replace(settings, reranker=node), toy_index.folder, folder)["reranker"]
    ids = EstimatedTokens().count("<answer> " + " > ".join(f"[{n}]" for n in range(1, 5)) + " </answer>")
    assert found["generated_tokens"] == found["model_calls"] * (ids + 500)


def test_a_sample_of_the_queries_stands_for_all(settings: schema.Settings, toy_index: Index, tmp_path: Path) -> None:
    one = costs.of_run(settings, toy_index.folder, asked(tmp_path / "one", ["copper"]))
    many = costs.of_run(settings, toy_index.folder, asked(tmp_path / "many", ["copper"] * 75))
    assert many["reranker"] == {name: 75 * number for name, number in one["reranker"].items()}
    assert many["navigator"] == {name: 75 * number for name, number in one["navigator"].items()}


def test_a_sample_is_spread_over_all() -> None:
    assert costs._spread(range(100), 4) == [0, 25, 50, 75] and costs._spread("abc", 4) == ["a", "b", "c"]
    assert costs._scaled({"calls": 7, "none": 0}, 2.5) == {"calls": 18, "none": 0}  # 17.5, to the even


def test_only_roles_that_ask_a_model_have_one(settings: schema.Settings) -> None:
    assert costs.models_of(settings) == {"reranker": ROOMY, "navigator": ROOMY}
    sliding = schema.SlidingLoop("slidegar", 4, 2, 8)
    assert costs.models_of(replace(settings, loop=sliding)) == {"reranker": ROOMY}
    own = replace(settings, reranker=schema.EmbeddingReranker("embedding", 0.0, 3))
    assert costs.models_of(own) == {"navigator": ROOMY}
    plan = schema.RepairLoop("repair", 4, 2, 8, 2, 3, 1.0, 1.0)
    assert costs.models_of(replace(settings, loop=plan)) == {"reranker": ROOMY}, "texts are compared by the index' own model"


def inputs(index: Index) -> dict[str, Path]:
    return {kind: next(index.folder.parent.glob(f"{kind}-*")) for kind in ("corpus", "embeddings", "groups")}


def test_describing_groups_is_foreseen(toy_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    node = replace(test_describer.NODE, model=ROOMY, answer_tokens=4096)
    foreseen = costs.of_summaries(node, inputs(toy_index), PRICES)
    assert (foreseen["model_calls"], foreseen["generated_tokens"]) == (4, 4 * (4 * 60 + 3 * 60)), "4 groups of 3 documents"
    engine = ScriptedEngine(lambda text, sampling: test_describer.told("copper"))
    engine.tokens = EstimatedTokens()  # type: ignore[assignment]
    for first in (0, 3, 6, 9):
        asyncio.run(Describer(node, engine).describe(toy.TEXTS[first : first + 3]))
    real = sum(map(EstimatedTokens().count, engine.asked)) + 4 * MESSAGE_TOKENS
    assert foreseen["prompt_tokens"] == real
    monkeypatch.setattr(costs, "SAMPLE", 2)
    sampled = costs.of_summaries(node, inputs(toy_index), PRICES)
    assert (sampled["model_calls"], sampled["generated_tokens"]) == (4, 4 * (4 * 60 + 3 * 60))
    assert sampled["prompt_tokens"] == 2 * sum(EstimatedTokens().count(engine.asked[n]) + MESSAGE_TOKENS for n in (0, 2))


def test_near_duplicates_are_not_foreseen(toy_index: Index) -> None:
    node = replace(test_describer.NODE, model=ROOMY, answer_tokens=4096, duplicate_similarity=0.95)
    assert costs.of_summaries(node, inputs(toy_index), PRICES)["generated_tokens"] < 4 * (4 * 60 + 3 * 60)


def test_embedding_documents_is_foreseen(toy_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    node = schema.ModelEmbeddings("model", ROOMY, max_tokens=9, query_prefix="", document_prefix="passage: ")
    lengths = [-(-len(f"passage: {text}") // 3) for text in toy.TEXTS]
    assert max(lengths) > 9 > min(lengths)
    corpus = inputs(toy_index)["corpus"]
    assert costs.of_embeddings(node, corpus) == {"model_calls": 12, "prompt_tokens": sum(min(n, 9) for n in lengths)}
    monkeypatch.setattr(costs, "DOCUMENTS", 3)
    scaled = 4 * sum(min(lengths[row], 9) for row in (0, 4, 8))
    assert costs.of_embeddings(node, corpus) == {"model_calls": 12, "prompt_tokens": scaled}


# --- priced -----------------------------------------------------------------------------------------------------------

USED = {"model_calls": 1234, "prompt_tokens": 1_000_000, "cached_tokens": 400_000, "generated_tokens": 100_000}


def shown_costs(
    capsys: pytest.CaptureFixture[str], usage: Mapping[str, Mapping[str, int]], foreseen: bool, name: str = "scripted"
) -> str:
    costs.show(usage, {"reranker": replace(MODEL, name=name)}, PRICES, foreseen)
    return capsys.readouterr().out


def test_a_cached_token_has_its_own_price_and_takes_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    """.6 x 2.00 + .4 x 0.50 + .1 x 8.00 = 2.20; 600,000 / 1000 + 100,000 / 50 = 2,600 seconds."""
    head, line = shown_costs(capsys, {"reranker": USED}, foreseen=True).rstrip().splitlines()
    assert line.split() == ["reranker", "scripted", "1,234", "1,000,000", "400,000", "100,000", "2.20", "EUR", duration(2600)]
    assert head.split("  ")[-1].strip() == "at stated speed"


def test_what_was_measured_has_no_stated_speed(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown_costs(capsys, {"reranker": USED, "loop": {"documents": 3}}, foreseen=False)
    assert said.rstrip().endswith("2.20 EUR") and "speed" not in said and "loop" not in said


def test_a_model_that_is_not_named_has_the_default_price(capsys: pytest.CaptureFixture[str]) -> None:
    line = shown_costs(capsys, {"reranker": USED}, foreseen=True, name="another").rstrip().splitlines()[1]
    assert line.split()[-3:] == ["0.00", "EUR", duration(600 + 1000)]


def test_a_role_that_was_never_asked_cost_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown_costs(capsys, {}, foreseen=False).rstrip().endswith("0.00 EUR")
    costs.show({"reranker": USED}, {}, PRICES, foreseen=True)
    assert capsys.readouterr().out == "", "no model, no table"
