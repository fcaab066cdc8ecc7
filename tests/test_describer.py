"""Groups described by a scripted model: asked again with another seed, in parts, and never twice for what is kept."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors import summarizer
from actors.artifacts import summaries as summary_files
from actors.artifacts.summaries import GroupJournal, Summary
from actors.corpora.records import BadInput
from actors.describer import Described, Describer, description_schema
from actors.engines.build import Place
from actors.engines.engine import EngineError, Generated, Sampling
from actors.index import Index
from conf import schema
from tests import toy
from tests.scripted import MODEL, Answer, ScriptedEngine, shown

STAND_IN = schema.ExtractiveSummaries("extractive", 2, 1, 3, 200, 5, 2000, 0.95, 0.7)
NODE = schema.LlmSummaries(
    "llm", MODEL, prompt={"user": "Describe {n}:\n{documents}"}, parts_prompt={"user": "Join {n}:\n{documents}"},
    document_tokens=30, answer_tokens=40, attempts=3, temperature=0.5, seed=100, duplicate_similarity=0.999,
    stand_in=STAND_IN, stand_ins=0.5,
)  # fmt: skip
ROOM = 60  # words of a prompt: MODEL's, less the answer's and a chat template's
TIGHT = replace(NODE, model=replace(MODEL, max_model_len=ROOM + 40 + 64))


def told(concept: str, about: str = "what is said of it") -> str:
    return json.dumps({"common_theme": "t", "concept": concept, "summary": f"A group of documents about {about}."})


def described(texts: list[str], answer: Callable[[str, Sampling], Answer], node: schema.LlmSummaries = NODE) -> Any:
    engine = ScriptedEngine(answer)
    return asyncio.run(Describer(node, engine).describe(texts)), engine


# --- one group --------------------------------------------------------------------------------------------------------


def test_a_group_is_asked_for_once() -> None:
    found, engine = described(["copper kettle", "copper ore"], lambda text, sampling: told("copper"))
    assert found[:3] == ("copper", "A group of documents about what is said of it.", "ok")
    assert engine.asked == ["Describe 2:\n[1] copper kettle\n[2] copper ore"]
    assert engine.sampled == [Sampling(40, 0.5, 100, description_schema(2))]
    words = len(told("copper").split())
    assert found.usage == {"model_calls": 1, "prompt_tokens": 8, "generated_tokens": words, "cut_texts": 0, "unfinished": 0}


def test_the_schema_asks_for_fingerprints_of_documents_and_for_none_of_parts() -> None:
    whole, parts = json.loads(description_schema(7)), json.loads(description_schema(0))
    assert whole["required"] == ["detailed_fingerprints", "common_theme", "concept", "summary"]
    assert whole["properties"]["detailed_fingerprints"]["maxItems"] == 7
    assert parts["required"] == list(parts["properties"]) == ["common_theme", "concept", "summary"]


def test_an_answer_that_cannot_be_used_is_asked_for_again_with_another_seed() -> None:
    answers: list[Answer] = ["no JSON", EngineError("timeout"), told("copper")]
    found, engine = described(["a b"], lambda text, sampling: answers[sampling.seed - 100])
    assert (found.concept, found.outcome) == ("copper", "ok")
    assert [sampling.seed for sampling in engine.sampled] == [100, 101, 102] and len(set(engine.asked)) == 1
    assert (found.usage["model_calls"], found.usage["failed_calls"]) == (3, 1)
    assert found.usage["prompt_tokens"] == 2 * 5, "of the two answers that came"


@pytest.mark.parametrize(("last", "outcome"), [("no JSON", "unusable"), (EngineError("timeout"), "failed: timeout")])
def test_after_the_last_attempt_the_last_reason_is_told(last: Answer, outcome: str) -> None:
    found, engine = described(["a b"], lambda text, sampling: last if sampling.seed == 102 else "{}")
    assert found[:3] == ("", "", outcome) and len(engine.asked) == 3
    assert found.usage["model_calls"] == 3


def test_what_was_cut_and_what_was_broken_off_is_counted() -> None:
    cut_off = Generated(told("copper"), False, {"prompt_tokens": 9})
    found, _ = described(["word " * 31, "short"], lambda text, sampling: cut_off)
    assert (found.usage["cut_texts"], found.usage["unfinished"], found.usage["prompt_tokens"]) == (1, 1, 9)


def test_a_template_that_does_not_fit_is_a_failure_and_no_crash() -> None:
    long = replace(TIGHT, prompt={"user": "word " * 61 + "{documents}"})
    found, engine = described(["a"], lambda text, sampling: told("copper"), long)
    assert found.concept == "" and found.outcome.startswith("failed: a prompt of ") and engine.asked == []
    assert found.usage == {"model_calls": 3, "failed_calls": 3}


# --- a group that is too large ----------------------------------------------------------------------------------------

TEXTS = [f"doc{n} " + "word " * 19 for n in range(6)]  # 20 words each, 26 with what stands around: 156, of 58 in a prompt


def of_parts(text: str, sampling: Sampling) -> Answer:
    if text.startswith("Join"):
        return told("all of it", "the whole of it: " + " ".join(shown(text)).replace(".", ""))
    return told(f"part of {shown(text)[0].split()[0]}")


def test_a_large_group_is_described_in_parts_and_then_from_them() -> None:
    found, engine = described(TEXTS, of_parts, TIGHT)
    *parts, joined = engine.asked
    assert [[line.split()[0] for line in shown(part)] for part in parts] == [["doc0", "doc1"], ["doc2", "doc3"], ["doc4", "doc5"]]
    assert all(len(part.split()) <= ROOM for part in engine.asked)
    assert joined.startswith("Join 3:") and [line.split(":")[0] for line in shown(joined)] == [
        "part of doc0", "part of doc2", "part of doc4"
    ]  # fmt: skip
    assert (found.concept, found.outcome) == ("all of it", "ok") and "doc4" in found.summary
    assert [s.schema for s in engine.sampled] == [description_schema(2)] * 3 + [description_schema(0)]
    assert found.usage["model_calls"] == 4 and found.usage["prompt_tokens"] == sum(len(text.split()) for text in engine.asked)


def test_a_group_that_just_fits_is_not_parted() -> None:
    assert len(described(TEXTS[:2], of_parts, TIGHT)[1].asked) == 1, "2 + 2 x 26 words of 60"
    assert len(described(TEXTS[:3], of_parts, TIGHT)[1].asked) == 1, "a part has two documents at least: these are cut"
    assert len(described(TEXTS[:4], of_parts, TIGHT)[1].asked) == 3


def test_a_part_without_an_answer_is_left_out_of_the_whole() -> None:
    def answer(text: str, sampling: Sampling) -> Answer:
        return EngineError("timeout") if "doc2" in text and text.startswith("Describe") else of_parts(text, sampling)

    found, engine = described(TEXTS, answer, TIGHT)
    assert found.concept == "all of it" and [s.split(":")[0] for s in shown(engine.asked[-1])] == ["part of doc0", "part of doc4"]
    assert (found.usage["model_calls"], found.usage["failed_calls"]) == (2 + 3 + 1, 3)


def test_parts_that_all_failed_are_a_failure() -> None:
    found, engine = described(TEXTS, lambda text, sampling: EngineError("timeout"), TIGHT)
    assert found == Described("", "", "failed: timeout", Counter(model_calls=9, failed_calls=9)) and len(engine.asked) == 9


# --- a worker's parts, on the toy -------------------------------------------------------------------------------------


class Embedder:
    """A vector that tells how long the text is."""

    def embed_documents(self, texts: list[str]) -> tuple[np.ndarray, dict[str, int]]:
        return np.array([[len(text), 1] for text in texts], np.float32), {}


class Worker:
    """Describes groups of the toy, as a worker of the job does; started again on the same draft as often as one wants."""

    def __init__(self, index: Index, draft: Path, patch: pytest.MonkeyPatch) -> None:
        self.draft, self._patch = draft, patch
        shelf = index.folder.parent
        kinds = ("corpus", "embeddings", "groups", "lexicon")
        self._inputs = {kind: str(next(shelf.glob(f"{kind}-*"))) for kind in kinds}
        patch.setattr(summarizer, "build_embedder", lambda *given: Embedder())

    def start(self, answer: Callable[[str, Sampling], Answer], node: schema.LlmSummaries = NODE) -> Any:
        """The worker, and the engine that it asks; what was asked for the self-test is forgotten."""
        engine = ScriptedEngine(lambda text, sampling: '{"colour": "white"}' if "snow" in text else answer(text, sampling))

        async def build(model: schema.Model, verbs: tuple[str, ...], place: Place) -> ScriptedEngine:
            assert tuple(verbs) == ("generate",)
            return engine

        self._patch.setattr(summarizer, "build_engine", build)
        place = Place(1, 0.9, schema.Endpoint(1, 1.0, 1, 0))
        part = summarizer.DescribePart(self._inputs, str(self.draft), node, None, "", place)  # type: ignore[arg-type]
        engine.asked.clear()
        return part, engine

    def run(self, answer: Callable[[str, Sampling], Answer], first: int, last: int, **changes: Any) -> ScriptedEngine:
        part, engine = self.start(answer, replace(NODE, **changes))
        part({"first": np.array([first]), "last": np.array([last])})
        return engine

    def made(self, groups: int) -> list[Summary]:
        summary_files.join(self.draft, groups)
        opened = summary_files.open_summaries(self.draft)
        return [opened[group] for group in range(groups)]


@pytest.fixture
def worker(toy_index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worker:
    return Worker(toy_index, tmp_path, monkeypatch)


def right(text: str, sampling: Sampling) -> Answer:
    return told(shown(text)[0].split()[0])


def wrong_about(word: str) -> Callable[[str, Sampling], Answer]:
    return lambda text, sampling: "no JSON" if word in text else right(text, sampling)


def test_groups_are_described_from_their_documents(worker: Worker) -> None:
    engine = worker.run(right, 0, 4)
    assert [shown(text) for text in engine.asked] == [toy.TEXTS[first : first + 3] for first in (0, 3, 6, 9)]
    made = worker.made(4)
    assert [s.concept for s in made] == ["copper", "copper", "roofs", "a"] and {s.outcome for s in made} == {"ok"}
    assert [s.documents for s in made] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]
    vectors = summary_files.open_summaries(worker.draft).vectors
    assert vectors[:, 0].tolist() == [len(s.text) for s in made], "the vector is that of the description"


def test_a_stand_in_is_the_extractive_summary_and_is_asked_for_again(worker: Worker) -> None:
    engine = worker.run(wrong_about("verdigris"), 0, 4)
    assert sum("verdigris" in text for text in engine.asked) == NODE.attempts and len(engine.asked) == 3 + NODE.attempts
    assert summary_files.outcomes_so_far(worker.draft) == {"ok": 3, "extractive": 1}
    assert set(GroupJournal(worker.draft, 0).done) == {0, 1, 3}
    summary_files.forget(worker.draft, "extractive")
    assert summary_files.missing_parts(worker.draft, 4, 4) == [(0, 4)]
    again = worker.run(right, 0, 4)
    assert [shown(text)[1] for text in again.asked] == [toy.TEXTS[7]], "the others were paid for"
    assert summary_files.usage_so_far(worker.draft)["model_calls"] == 3 + NODE.attempts + 1
    assert [s.outcome for s in worker.made(4)] == ["ok"] * 4


def test_a_stand_in_says_what_it_is(worker: Worker) -> None:
    worker.run(wrong_about("verdigris"), 0, 4)
    stand_in = worker.made(4)[2]
    assert stand_in.outcome == "extractive" and stand_in.concept and stand_in.summary
    assert set(stand_in.documents) <= {6, 7, 8}


def test_a_worker_that_was_killed_asks_nothing_twice(worker: Worker) -> None:
    class Killed(BaseException):
        pass

    def dies(text: str, sampling: Sampling) -> Answer:
        if "money" in text:
            raise Killed
        return right(text, sampling)

    part, engine = worker.start(dies)
    with pytest.raises(Killed):
        part({"first": np.array([0]), "last": np.array([4])})
    kept = set(GroupJournal(worker.draft, 0).done)
    assert kept == {0, 1, 2} and len(engine.asked) == 4 and summary_files.outcomes_so_far(worker.draft) == {}
    again = worker.run(right, 0, 4)
    assert [shown(text)[1] for text in again.asked] == [toy.TEXTS[10]]
    assert [s.concept for s in worker.made(4)] == ["copper", "copper", "roofs", "a"]


def test_near_duplicates_are_shown_once(worker: Worker) -> None:
    """The cosines of documents 0, 1 and 2 are .8 (0, 1), .6 (0, 2) and .96 (1, 2)."""
    engine = worker.run(right, 0, 1, duplicate_similarity=0.95)
    assert shown(engine.asked[0]) == toy.TEXTS[:2]
    assert worker.made(1)[0].documents == (0, 1)


def test_a_model_that_is_not_what_it_must_be_describes_nothing(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def build(*given: Any) -> ScriptedEngine:
        return ScriptedEngine(lambda text, sampling: "purple")

    worker.start(right)
    monkeypatch.setattr(summarizer, "build_engine", build)
    with pytest.raises(BadInput, match="self-test of generate: expected JSON"):
        summarizer.DescribePart(worker._inputs, str(worker.draft), NODE, None, "", Place(1, 0.9, schema.Endpoint(1, 1.0, 1, 0)))  # type: ignore[arg-type]
