"""A job that is killed and started again makes the same bytes as one that was never killed, and does no part twice.

First every stage in one process without Ray, killed before each change it makes to the file system; then real jobs with
their Ray, killed in the midst of their work.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import multiprocessing
import os
import signal
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.artifacts import embeddings as vector_files
from actors.artifacts import graph as graph_files
from actors.artifacts import run as run_files
from actors.artifacts.store import draft, finish
from actors.searcher import Searcher, in_process, open_index
from conf import schema
from conf.load import compose
from jobs.stages import STAGES, Addresses
from tests.jobs.conftest import SMALL_PARTS, Job, artifact, living_below, payload, shelf_of, take, write_collection

STAGE_JOBS = {kind: f"build_{kind}" for kind in STAGES} | {"run": "run_queries", "metrics": "score_run"}
ALL = " ".join(STAGES)

# --- every moment, without Ray ----------------------------------------------------------------------------------------

CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree")


class HashEmbedder:
    """Vectors that depend on the text alone, at once."""

    def embed_documents(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], dict[str, int]]:
        return np.array([self.embed_query(text) for text in texts]), {"tokens": sum(map(len, texts))}

    def embed_query(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(16, np.float32)
        for word in text.lower().replace(",", " ").replace(".", " ").split():
            vector[zlib.crc32(word.encode()) % 16] += 1
        return vector / np.linalg.norm(vector)


class HereRay:
    """What the stages use of Ray, done at once in this process."""

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self._function = function

    def __call__(self, function: Callable[..., Any]) -> HereRay:
        return HereRay(function)

    def remote(self, *arguments: Any, **options: Any) -> Any:
        return self._function(*arguments) if self._function else HereRay()

    def get(self, result: Any) -> Any:
        return result


def without_ray() -> None:
    """Make the stages of this process, a child of the test's, run here and with a model that costs nothing."""
    names = sorted({*STAGE_JOBS.values()} - {"build_index", "score_run"})
    stages = {name: importlib.import_module(f"jobs.{name}") for name in names}
    for module in stages.values():
        for name, stand_in in (("ray", HereRay()), ("map_spans", _map_spans), ("run_tasks", lambda done, *told: done)):
            if hasattr(module, name):
                setattr(module, name, stand_in)
    stages["run_queries"].searchers, stages["run_queries"].answer_all = _searchers, _answer_all  # type: ignore[attr-defined]
    for name in ("actors.embedder", "actors.summarizer", "actors.judges.build"):
        importlib.import_module(name).build_embedder = lambda model, cache: HashEmbedder()  # type: ignore[attr-defined]
    importlib.import_module("jobs.session").start_ray = lambda cluster: None  # type: ignore[attr-defined]
    importlib.import_module("jobs.stages").model_digest = lambda node: "of no model"  # type: ignore[attr-defined]


def _map_spans(cluster: Any, pool: Any, worker: Any, arguments: Any, spans: Sequence[tuple[int, int]], told: Any) -> None:
    one = worker(**arguments) if spans else None
    for first, last in spans:
        one({"first": np.array([first]), "last": np.array([last])})


@contextlib.contextmanager
def _searchers(settings: schema.Settings, index: Path, wanted: int) -> Iterator[Searcher]:
    opened = open_index(str(index))
    yield Searcher(opened, settings.answering, in_process(opened, settings.answering))


def _answer_all(searcher: Searcher, in_flight: int, queries: Iterable[Any]) -> Iterator[Any]:
    return (asyncio.run(searcher.answer(query)) for query in queries)


def stage_here(settings: schema.Settings, kinds: Sequence[str], kill_at: int) -> None:
    """Run stages in this process; SIGKILL before its `kill_at`-th change to the file system, 0: never."""
    without_ray()
    sys.stdout = Path(os.devnull).open("w")
    numbers = itertools.count(1)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and set(str(arguments[1])) & set("wax+")
        if (writes or event in CHANGES) and next(numbers) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    if kill_at:
        sys.addaudithook(watch)
    for kind in kinds:
        importlib.import_module(f"jobs.{STAGE_JOBS[kind]}").run(settings)


def start_here(settings: schema.Settings, kinds: Sequence[str], kill_at: int = 0) -> bool:
    """Run stages in a child process. Returns whether it got to its end."""
    processes = multiprocessing.get_context("forkserver")  # its children come from a process with one thread
    processes.set_forkserver_preload(["__main__", __name__, "pandas", "pyarrow.dataset", *(f"jobs.{name}" for name in STAGE_JOBS.values())])
    child = processes.Process(target=stage_here, args=(settings, kinds, kill_at))
    child.start()
    child.join(60)
    assert child.exitcode in (0, -signal.SIGKILL), child.exitcode
    return child.exitcode == 0


def settings_of(root: Path, *overrides: str) -> schema.Settings:
    return compose((f"artifacts.root={root}", "corpus=beir", *overrides))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A root with everything built, in one go, and where its corpus is."""
    folder = tmp_path_factory.mktemp("tiny")
    corpus = f"corpus.path={write_collection(folder / 'c', 36, 4)}"
    assert start_here(settings_of(folder / "root", corpus, "groups.max_size=9", "loop.budget=30"), list(STAGES))
    return folder / "root", corpus


@pytest.mark.parametrize("kind", STAGES)
def test_killed_before_any_change_to_the_file_system(kind: str, tiny: tuple[Path, str], tmp_path: Path) -> None:
    source, corpus = tiny
    expected = payload(artifact(source, kind))
    for kill_at in itertools.count(1):
        root = take(tmp_path / str(kill_at), source, " ".join(set(STAGES) - {kind}), tmp_path)
        small = ("cluster.embedder.part_rows=16", "cluster.knn.block_rows=16", "cluster.summarizer.part_rows=3")
        settings = settings_of(root, corpus, "groups.max_size=9", "loop.budget=30", *small)
        if start_here(settings, [kind], kill_at):
            assert kill_at > 4, "it was hardly ever killed"
            break
        start_here(settings, [kind], 1 + kill_at * 7 % 11)
        assert start_here(settings, [kind])
        assert payload(artifact(root, kind)) == expected, f"killed before change {kill_at}"
        assert not list(shelf_of(root).glob("*.partial"))
