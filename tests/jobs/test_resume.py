"""A job that is killed and started again makes the same bytes as one that was never killed, and does no part twice.

First every stage in one process without Ray, killed before each change it makes to the file system; then real jobs with
their Ray, killed in the midst of their work.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import itertools
import multiprocessing
import os
import signal
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from actors.artifacts import embeddings as vector_files, graph as graph_files, run as run_files
from actors.artifacts.queries import Query
from actors.artifacts.store import draft, finish
from actors.index import open_index
from actors.roles import in_process
from actors.searcher import Searcher
from conf import schema
from conf.load import compose
from jobs.stages import STAGES, Addresses
from tests.jobs.conftest import Job, StartJob, a_scratch, artifact, living_below, payload, take, write_collection

STAGE_JOBS = {kind: f"build_{kind}" for kind in STAGES} | {"run": "run_queries", "metrics": "score_run"}
ALL = " ".join(STAGES)

# --- every moment, without Ray ----------------------------------------------------------------------------------------

LAZY = ("pandas", "pyarrow.dataset", "scipy.sparse")  # what stages import late: seconds, once instead of in every child
CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree")


class HashEmbedder:
    """Vectors that depend on the text alone, at once."""

    def embed_documents(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], dict[str, int]]:
        return np.array([self.embed_query(text).result() for text in texts]), {"tokens": sum(map(len, texts))}

    def embed_query(self, text: str) -> Future[NDArray[np.float32]]:
        done: Future[NDArray[np.float32]] = Future()
        vector = np.zeros(16, np.float32)
        for word in text.lower().replace(",", " ").replace(".", " ").split():
            vector[zlib.crc32(word.encode()) % 16] += 1
        done.set_result(vector / np.linalg.norm(vector))
        return done


class HereRay:
    """What the stages use of Ray, in this process: `remote` makes a thing to be called, and it is called when it is waited for."""

    @staticmethod
    def remote(**options: Any) -> Callable[[Callable[..., Any]], Any]:
        return lambda function: SimpleNamespace(remote=lambda *arguments: functools.partial(function, *arguments))

    @staticmethod
    def get(task: Callable[[], Any]) -> Any:
        return task()


def without_ray() -> None:
    """Make the stages of this process, a child of the test's, run here and with a model that costs nothing."""
    names = sorted({*STAGE_JOBS.values(), "brought", "approximate_graph"} - {"build_index", "score_run"})
    stages = {name: importlib.import_module(f"jobs.{name}") for name in names}
    for module in stages.values():
        for name, stand_in in (("ray", HereRay), ("map_spans", _map_spans), ("run_tasks", _run_tasks)):
            if hasattr(module, name):
                setattr(module, name, stand_in)
    stages["run_queries"].service = _HereService  # type: ignore[attr-defined]
    for name in ("actors.embedder", "actors.summarizer", "actors.judges.embedding"):
        importlib.import_module(name).build_embedder = lambda model, cache, place=None: HashEmbedder()  # type: ignore[attr-defined]
    importlib.import_module("jobs.building").start_ray = lambda cluster: None  # type: ignore[attr-defined]
    importlib.import_module("jobs.stages").model_digest = lambda node: "of no model"  # type: ignore[attr-defined]


def _map_spans(cluster: Any, pool: Any, worker: Any, arguments: Any, spans: Sequence[tuple[int, int]], told: Any) -> None:
    one = worker(**arguments)
    for first, last in reversed(spans):  # Ray keeps no order: what is missing may lie before what is done
        one({"first": np.array([first]), "last": np.array([last])})


def _run_tasks(tasks: Sequence[Callable[[], Any]], *told: Any) -> None:
    for task in reversed(tasks):
        task()


class _HereService(contextlib.nullcontext[Any]):
    """The searcher of this process, as the service of a job."""

    def __init__(self, cluster: schema.Cluster) -> None:
        super().__init__(self)

    def answer(self, settings: schema.Settings, index: Path, queries: Path, asked: list[Query]) -> Iterator[run_files.Result]:
        searcher = Searcher(open_index(str(index)), settings.answering, in_process(settings.answering), str(queries))
        return (asyncio.run(searcher.answer(query)) for query in asked)


def stage_here(settings: schema.Settings, kinds: Sequence[str], kill_at: int) -> None:
    """Run stages in this process; SIGKILL before its `kill_at`-th change to the file system, 0: never."""
    without_ray()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
    processes.set_forkserver_preload(["__main__", __name__, *LAZY, *(f"jobs.{name}" for name in STAGE_JOBS.values())])
    child = processes.Process(target=stage_here, args=(settings, kinds, kill_at))
    child.start()
    child.join(60)
    assert child.exitcode in (0, -signal.SIGKILL), child.exitcode
    return child.exitcode == 0


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> schema.Settings:
    """Settings with everything built, in one go."""
    folder = tmp_path_factory.mktemp("tiny")
    corpus = f"corpus.path={write_collection(folder / 'c', 36, 4)}"
    settings = compose((f"artifacts.root={folder / 'root'}", "corpus=beir", corpus, "groups.max_size=9", "loop.budget=30"))
    assert start_here(settings, list(STAGES))
    return settings


def elsewhere(settings: schema.Settings, root: Path, rows: int, groups: int) -> schema.Settings:
    """The same work in another root, cut into parts of so many rows and groups."""
    cluster = settings.cluster
    embedder, knn = replace(cluster.embedder, part_rows=rows), replace(cluster.knn, block_rows=rows)
    lexicon, summarizer = replace(cluster.lexicon, block_rows=2 * rows), replace(cluster.summarizer, part_rows=groups)
    cut = replace(cluster, embedder=embedder, knn=knn, lexicon=lexicon, summarizer=summarizer)
    return replace(settings, artifacts=replace(settings.artifacts, root=str(root)), cluster=cut)


@pytest.mark.parametrize("kind", [kind if kind == "embeddings" else pytest.param(kind, marks=pytest.mark.slow) for kind in STAGES])
def test_killed_before_any_change_to_the_file_system(kind: str, tiny: schema.Settings, tmp_path: Path) -> None:
    """Killed twice, and started again with parts of another size each time."""
    source = Path(tiny.artifacts.root)
    expected = payload(artifact(source, kind))
    for kill_at in itertools.count(1):
        root = take(tmp_path / str(kill_at), source, " ".join(set(STAGES) - {kind}), tmp_path)
        if start_here(elsewhere(tiny, root, 12, 3), [kind], kill_at):
            assert kill_at > 4, "it was hardly ever killed"
            break
        start_here(elsewhere(tiny, root, 8, 2), [kind], 1 + kill_at * 7 % 11)
        assert start_here(elsewhere(tiny, root, 5, 2), [kind])
        assert payload(artifact(root, kind)) == expected, f"killed before change {kill_at}"
        assert not list(root.glob("*/*.partial"))


def test_a_line_of_the_journal_that_was_torn_is_done_again(tmp_path: Path) -> None:
    results = [run_files.Result(f"q{n}", ["a", "b"], [], [], {"reranker": {"calls": n}}, {"total": 0.1}) for n in range(3)]
    run_files.Journal(tmp_path).append(results[:2])
    path = tmp_path / run_files.JOURNAL
    whole = path.read_bytes()
    for torn in (1, 5, len(whole) // 2 - 1):
        path.write_bytes(whole[:-torn])
        journal = run_files.Journal(tmp_path)
        assert journal.done == {"q0"}
        journal.append([results[2], results[1]])
        assert run_files.Journal(tmp_path).done == {"q0", "q1", "q2"}
        assert list(journal.results()) == [results[0], results[2], results[1]]
    counts = run_files.write(tmp_path, ["q0", "q1", "q2"], "tag")
    assert counts == {"queries": 3, "documents": 6, "empty pools": 0, "usage": {"reranker": {"calls": 3}}}


# --- real jobs, killed at work ----------------------------------------------------------------------------------------

SMALL_PARTS = ("cluster.embedder.part_rows=8", "cluster.summarizer.part_rows=1", "cluster.summarizer.actors=1",
               "cluster.knn.block_rows=256", "cluster.partition_cpus=4")  # fmt: skip
BEFORE = {"embeddings": "corpus", "graph": "embeddings", "groups": "graph", "summaries": "corpus embeddings groups lexicon"}
PARTS = {"embeddings": "vectors@*", "graph": "neighbours@*", "groups": "refined@*", "summaries": "vectors@*"}
ONE_QUERY_AT_A_TIME = ("cluster.searchers.actors=1", "cluster.searchers.queries_in_flight=1")
Files = dict[Path, tuple[int, int]]
T = TypeVar("T", Files, list[bytes])


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Overrides that name a small collection."""
    folder = write_collection(tmp_path_factory.mktemp("collection") / "c", 300, 60)
    return ("corpus=beir", f"corpus.path={folder}", "cluster.num_cpus=4")


@pytest.fixture(scope="module")
def never_killed(given: tuple[str, ...], models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything from the collection, with parts as large as the configuration's own."""
    root = take(tmp_path_factory.mktemp("finished") / "root", Path(), "", models)
    with a_scratch() as scratch:
        for name in ("build_index", "run_queries"):
            Job(name, (*given, "cluster.in_process=true"), root, scratch).end()
    return root


@pytest.fixture(scope="module")
def large(given: tuple[str, ...], models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of 20,000 and a graph of 120,000 documents, both brought: enough to be killed at. Their graph and groups."""
    draw, rows = np.random.default_rng(0), np.arange(120_000)
    vectors = draw.standard_normal((20_000, 64)).astype(np.float32)
    near = draw.permutation(rows)[(rows[:, None] + draw.integers(1, 40, (120_000, 8))) % 120_000].astype(np.int32)
    near[near == rows[:, None]] = -1
    near = -np.sort(-near, axis=1)
    root = tmp_path_factory.mktemp("large")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    bring(root, given, "embeddings", lambda folder: write_vectors(folder, vectors), documents=20_000, dimension=64)
    alike = (near >= 0).astype(np.float16)
    bring(
        root / "groups", given, "graph", lambda folder: graph_files.write(folder, near, alike), documents=120_000, edges=near.size
    )
    with a_scratch() as scratch:
        Job("build_graph", given, root, scratch).end()
        Job("build_groups", given, root / "groups", scratch).end()
    return root


def bring(root: Path, given: tuple[str, ...], kind: str, write: Callable[[Path], object], **counts: int) -> None:
    """Put an artifact where a job would have built it."""
    address = Addresses(compose((f"artifacts.root={root}", *given)))[kind]
    with draft(address) as folder:
        write(folder)
        finish(address, counts)


def write_vectors(folder: Path, vectors: NDArray[np.float32]) -> None:
    vector_files.write_part(folder, 0, vectors, {})
    vector_files.join(folder, len(vectors))


def parts(root: Path, kind: str) -> Files:
    """The parts of the one draft below a root: path -> inode and time of change, which a second writing would change."""
    found = {}
    for path in root.glob(f"*/{kind}-*.partial/*/{PARTS[kind]}"):
        with contextlib.suppress(FileNotFoundError):
            found[path] = (path.stat().st_ino, path.stat().st_mtime_ns)
    return found


def more(found: T, kept: T) -> T | None:
    return found if len(found) > len(kept) else None


@pytest.mark.slow
@pytest.mark.parametrize("kind", PARTS)
def test_killed_among_its_parts(
    kind: str, never_killed: Path, large: Path, given: tuple[str, ...], job: StartJob, models: Path, tmp_path: Path
) -> None:
    source = {"graph": large, "groups": large / "groups"}.get(kind, never_killed)
    root = take(tmp_path / "root", source, BEFORE[kind], models)
    first = job(f"build_{kind}", root, *given, *SMALL_PARTS)
    first.until(lambda: parts(root, kind))
    first.kill()
    kept = parts(root, kind)
    second = job(f"build_{kind}", root, *given, *SMALL_PARTS)
    now = second.until(lambda: more(parts(root, kind), kept))
    assert now and kept.items() <= now.items(), "a finished part was written again"
    assert "were done before; going on from there" in second.end()
    assert payload(artifact(root, kind)) == payload(artifact(source, kind))


@pytest.mark.slow
def test_only_the_driver_is_killed_and_its_successor_starts_at_once(
    never_killed: Path, given: tuple[str, ...], job: StartJob, models: Path, tmp_path: Path
) -> None:
    """As by the kernel when memory is short: Ray and its workers live on for a few seconds and may write another part."""
    root = take(tmp_path / "root", never_killed, "corpus", models)
    first = job("build_embeddings", root, *given, *SMALL_PARTS)
    first.until(lambda: parts(root, "embeddings"))
    first.process.kill()
    second = job("build_embeddings", root, *given, *SMALL_PARTS)
    assert "were done before; going on from there" in second.end()
    assert payload(artifact(root, "embeddings")) == payload(artifact(never_killed, "embeddings"))


@pytest.mark.slow
def test_one_worker_is_killed_and_the_job_goes_on(
    never_killed: Path, given: tuple[str, ...], job: StartJob, models: Path, tmp_path: Path
) -> None:
    root = take(tmp_path / "root", never_killed, "corpus", models)
    running = job("build_embeddings", root, *given, *SMALL_PARTS)
    running.until(lambda: parts(root, "embeddings"))
    workers = [pid for pid, title in living_below(running.scratch).items() if title.startswith("ray::MapWorker")]
    os.kill(workers[0], signal.SIGKILL)
    assert len(parts(root, "embeddings")) < 300 // 8 - 1, "it was killed too late to matter"
    running.end()
    assert payload(artifact(root, "embeddings")) == payload(artifact(never_killed, "embeddings"))


@pytest.mark.slow
@pytest.mark.parametrize("judges", ["cluster.in_process=true", "cluster.in_process=false"])
def test_killed_among_its_queries(
    judges: str, never_killed: Path, given: tuple[str, ...], job: StartJob, models: Path, tmp_path: Path
) -> None:
    root = take(tmp_path / "root", never_killed, " ".join(set(STAGES) - {"lists", "run", "metrics"}), models)
    first = job("run_queries", root, *given, *ONE_QUERY_AT_A_TIME, judges)
    first.until(lambda: journal(root))
    first.kill()
    kept = journal(root)
    second = job("run_queries", root, *given, *ONE_QUERY_AT_A_TIME, judges)
    now = second.until(lambda: more(journal(root), kept))
    assert now and now[: len(kept)] == kept, "a finished query was answered again"
    assert f"{len(kept)} of 60 queries were done before; going on from there" in second.end()
    assert payload(artifact(root, "run")) == payload(artifact(never_killed, "run"))


def journal(root: Path) -> list[bytes]:
    """The whole lines of the journal of the one draft below a root."""
    for path in root.glob(f"*/run-*.partial/{run_files.JOURNAL}"):
        with contextlib.suppress(FileNotFoundError):
            return path.read_bytes().split(b"\n")[:-1]
    return []
