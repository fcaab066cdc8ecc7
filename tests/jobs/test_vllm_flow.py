"""The whole flow with real models by vLLM, on a hundred short documents.

MiniLM embeds; SmolLM2, which judges near chance, describes groups, ranks windows and weighs groups. Once inside actors and
replicas, once through an endpoint: a vLLM server on this machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from actors.artifacts.summaries import open_summaries
from tests import vllm_corpus, vllm_models

pytestmark = [pytest.mark.vllm, pytest.mark.skipif(find_spec("vllm") is None, reason="run it in .venv-vllm (make test-vllm)")]

BUDGET = 30  # a window of at most twenty, and ten new documents; where the pool is short, ten more
GROUPS = 5
SMALL = [
    "embeddings=minilm_vllm", "embeddings.max_tokens=48", f"loop.budget={BUDGET}", f"loop.K_g={GROUPS}",
    "cluster.embedder.actors=1", "cluster.summarizer.actors=1",
]  # fmt: skip
SHORT = [
    "summaries=llm", "summaries.document_tokens=48", "summaries.answer_tokens=300", "summaries.attempts=1",
    "summaries.stand_ins=1.0",
    "reranker=listwise", "reranker.document_tokens=48", "reranker.query_tokens=48", "reranker.self_test=report",
    "navigator=pointwise", "navigator.prompt=navigator_chat", "navigator.document_tokens=96", "navigator.self_test=report",
]  # fmt: skip
ROLES = ("summaries", "reranker", "navigator")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of artifacts with both models in it."""
    root = tmp_path_factory.mktemp("home")
    (root / "models").mkdir()
    try:
        for prepare in (vllm_models.minilm, vllm_models.smollm2):
            made = prepare(tmp_path_factory.getbasetemp())
            (root / "models" / made.name).symlink_to(made)
    except vllm_models.Unavailable as reason:
        pytest.skip(str(reason))
    return root


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return vllm_corpus.write(tmp_path_factory.mktemp("corpus"))


def job(home: Path, name: str, overrides: list[str]) -> str:
    """Run a job to its end; its output."""
    command = [sys.executable, "-m", f"jobs.{name}", *overrides]
    done = subprocess.run(command, env=os.environ | {"GAREN_HOME": str(home)}, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def ledger(home: Path, output: str) -> dict[str, dict[str, int]]:
    """Role -> counters of the run that a job's output names."""
    folder = re.findall(r"run: (/\S+)", output)[-1]
    usage: dict[str, dict[str, int]] = json.loads((Path(folder) / "manifest.json").read_text())["counts"]["usage"]
    return usage


def check_run(usage: dict[str, dict[str, int]]) -> None:
    queries, windows = len(vllm_corpus.QUESTIONS), usage["loop"]["iterations"]
    assert usage["loop"]["documents"] == queries * BUDGET and windows >= 2 * queries
    assert usage["reranker"]["model_calls"] == usage["reranker"]["calls"] == windows
    assert usage["navigator"]["calls"] <= windows - queries and usage["navigator"]["model_calls"] <= GROUPS * (windows - queries)
    assert usage["navigator"]["generated_tokens"] == usage["navigator"]["model_calls"]
    assert not [name for counters in usage.values() for name in counters if name.startswith("outcome failed")]
    classes = {"outcome ok", "outcome repaired", "outcome missing ids", "outcome repeated ids", "outcome unusable"}
    assert sum(usage["reranker"].get(name, 0) for name in classes) == windows


@pytest.fixture(scope="module")
def in_actors(home: Path, corpus: list[str]) -> tuple[list[str], str]:
    """Overrides and the output of a run whose models live in actors and replicas."""
    overrides = [*corpus, *SMALL, *SHORT, *(f"model@{role}.model=smollm2_135m" for role in ROLES)]
    job(home, "build_index", overrides)
    return overrides, job(home, "run_queries", overrides)


def test_in_actors_and_replicas(home: Path, in_actors: tuple[list[str], str]) -> None:
    overrides, output = in_actors
    check_run(ledger(home, output))
    assert "recall_100" in job(home, "score_run", overrides)


def test_every_group_has_a_description(home: Path, in_actors: tuple[list[str], str]) -> None:
    (folder,) = home.glob("docstrings/summaries-*")
    opened = open_summaries(folder)
    outcomes = [opened[group].outcome for group in range(len(opened))]
    assert outcomes and set(outcomes) <= {"ok", "repaired", "extractive"}
    (manifest,) = home.glob("docstrings/summaries-*/manifest.json")
    counts = json.loads(manifest.read_text())["counts"]
    assert counts["usage"]["model_calls"] >= len(outcomes) and sum(counts["outcomes"].values()) == len(outcomes)


def test_the_plan_foresaw_what_the_run_took(home: Path, in_actors: tuple[list[str], str]) -> None:
    """Calls and prompt tokens within a fifth. What SmolLM2 generates is not foreseen: it does not end its answers."""
    overrides, output = in_actors
    used = ledger(home, output)
    planned = job(home, "run_queries", [*overrides, "plan=true", "run_seed=1"])
    for role in ("reranker", "navigator"):
        line = next(line for line in planned.splitlines() if line.split()[:1] == [role])
        calls, prompt = (int(number.replace(",", "")) for number in line.split()[2:4])
        assert calls == pytest.approx(used[role]["model_calls"], rel=0.2)
        assert prompt == pytest.approx(used[role]["prompt_tokens"], rel=0.2)


def test_vectors_of_vllm_are_those_of_onnx(home: Path, corpus: list[str], in_actors: tuple[list[str], str]) -> None:
    """8-bit weights on ONNX against float32 by vLLM, the same texts cut to the same length: weights differ and nothing else."""
    onnx = [*corpus, "embeddings=minilm", "embeddings.max_tokens=48", "embeddings.quantise=false"]
    job(home, "build_embeddings", onnx)
    theirs, ours = (np.load(path).astype(np.float32) for path in sorted(home.glob("docstrings/embeddings-*/vectors.f16.npy")))
    assert len(ours) == 100 and np.sum(ours * theirs, axis=1).min() > 0.99


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[str]:
    """The URL of a vLLM server with SmolLM2."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = home / "models" / "SmolLM2-135M-Instruct"
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--served-model-name", "smol"]
    quick = {
        "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1",
        "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR",
    }  # fmt: skip
    log = (home / "server.log").open("wb")
    flags = ["--port", str(port), "--host", "127.0.0.1", "--max-model-len", "2048", "--dtype", "float32", "--enforce-eager"]
    process = subprocess.Popen(
        [*command, *flags], env=os.environ | quick, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        for _ in range(300):
            assert process.poll() is None, (home / "server.log").read_text()[-3000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
                break
            except OSError:
                time.sleep(2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def test_through_an_endpoint(home: Path, corpus: list[str], in_actors: tuple[list[str], str], server: str) -> None:
    """The same flow where every language model is behind a URL; nothing is loaded, so the judges answer in process."""
    endpoint = [
        o
        for role in ROLES
        for o in (f"model@{role}.model=openai", f"{role}.model.name=smol", f"{role}.model.url={server}", f'{role}.model.key=""',
                  f"{role}.model.max_model_len=2048", f"{role}.model.tokenizer={home}/models/SmolLM2-135M-Instruct")
    ]  # fmt: skip
    overrides = [*corpus, *SMALL, *SHORT, *endpoint, "cluster.in_process=true", "cluster.endpoint.concurrency=4"]
    job(home, "build_index", overrides)
    usage = ledger(home, job(home, "run_queries", overrides))
    check_run(usage)
    assert usage["reranker"]["prompt_tokens"] > 0 < usage["navigator"]["prompt_tokens"]
