"""Jobs on a running Ray: submitted or joined, interrupted, killed, two at once. Each test ends only what it started."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conf.load import BadConfig, compose
from jobs import ray_session, session

REPO = Path(__file__).parents[2]
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "GAREN_"))}
TOPICS = ("whales swim in oceans", "bread rises with yeast", "engines burn fuel", "stars fuse hydrogen", "rivers carve canyons")


def beir(folder: Path, documents: int, queries: int) -> Path:
    """A corpus of a few topics in BEIR's layout."""
    random_ = random.Random(0)
    words = ["north", "stone", "light", "metal", "flower", "winter", "paper", "glass", "music", "bread", "star", "string"]

    def text(i: int, count: int) -> str:
        return f"{TOPICS[i % len(TOPICS)]} and {' '.join(random_.choices(words, k=count))} {i}"

    (folder / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": f"d{i}", "title": "", "text": text(i, 12)}) for i in range(documents)]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    lines = [json.dumps({"_id": f"q{i}", "text": text(i, 3)}) for i in range(queries)]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    lines = [f"q{i}\td{i % documents}\t1" for i in range(queries)]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\n")
    return folder


def until(said: Callable[[], Any], what: str, seconds: float = 300) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := said():
            return answer
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds} s for {what}")


def members(sid: int) -> list[int]:
    """The living processes of a session, as /proc says."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_sid, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(its_sid) == sid and state != "Z":
            found.append(int(stat.parent.name))
    return found


@dataclass
class Job:
    """A job in a session of its own, with its output in a file."""

    process: subprocess.Popen[bytes]
    log: Path

    def says(self, pattern: str, seconds: float = 300) -> str:
        def found() -> re.Match[str] | None:
            match = re.search(pattern, self.log.read_text())
            assert match or self.process.poll() is None, f"it ended without {pattern!r}:\n{self.log.read_text()}"
            return match

        return str(until(found, pattern, seconds).group(0))

    def ends(self, status: int, seconds: float = 400) -> str:
        assert self.process.wait(seconds) == status, self.log.read_text()
        return self.log.read_text()

    def interrupt(self) -> None:
        """What Ctrl-C in a terminal does: SIGINT for the whole process group."""
        os.killpg(self.process.pid, signal.SIGINT)


@dataclass
class Machine:
    """Starts jobs, and at the end kills those that are left with their sessions."""

    folder: Path
    env: dict[str, str]
    jobs: list[Job] = field(default_factory=list)

    def start(self, *command: str, env: dict[str, str] | None = None) -> Job:
        log = self.folder / f"log-{len(self.jobs)}"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=REPO, env=env or self.env, stdout=file, stderr=file, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self.jobs.append(Job(process, log))
        return self.jobs[-1]

    def job(self, *arguments: str, env: dict[str, str] | None = None) -> Job:
        return self.start(sys.executable, "-m", *arguments, env=env)

    def end(self) -> None:
        for job in self.jobs:
            for pid in members(job.process.pid):
                os.kill(pid, signal.SIGKILL)
            job.process.wait()


@dataclass
class Head:
    """One Ray head by cluster/local.sh, and what its dashboard says."""

    machine: Machine
    port: int

    def submit(self, *arguments: str) -> Job:
        return self.machine.start(str(REPO / "cluster" / "submit.sh"), *arguments)

    def join(self, *arguments: str) -> Job:
        """A driver of its own that joins the head."""
        lines = subprocess.run([str(LOCAL), "env"], env=self.machine.env, capture_output=True, text=True, check=True).stdout
        joined = dict(pair.split("=", 1) for pair in lines.replace("export ", "").replace("'", "").split())
        return self.machine.job(*arguments, env=self.machine.env | joined)

    def get(self, path: str) -> Any:
        token = Path(self.machine.env["XDG_RUNTIME_DIR"], f"garen-{os.getuid()}", f"token-{self.port}").read_text()
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port + 1}{path}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=30) as answer:
            return json.load(answer)

    def apps(self) -> list[str]:
        return list(self.get("/api/serve/applications/")["applications"])

    def driver(self) -> int:
        """Process id of the one driver that runs."""
        (pid,) = (j["driver_info"]["pid"] for j in self.get("/api/jobs/") if j["status"] == "RUNNING" and j["driver_info"])
        return int(pid)


LOCAL = REPO / "cluster" / "local.sh"
QUERIES = 400


def free_ports() -> int:
    """The first of three free ports in a row, outside of those that Ray gives to its workers."""
    for port in random.SystemRandom().sample(range(20000, 32000), 100):
        with socket.socket() as a, socket.socket() as b, socket.socket() as c:
            try:
                for offset, tried in enumerate((a, b, c)):
                    tried.bind(("", port + offset))
            except OSError:
                continue
            return port
    raise AssertionError("no three free ports in a row")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    its = Machine(tmp_path, PLAIN | {"GAREN_HOME": str(tmp_path / "home")})
    yield its
    its.end()


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    folder, run, port = tmp_path_factory.mktemp("head"), tempfile.mkdtemp(prefix="garen-test-"), free_ports()
    env = PLAIN | {"GAREN_HOME": str(folder / "home"), "XDG_RUNTIME_DIR": run, "GAREN_RAY_PORT": str(port), "GAREN_CPUS": "2"}
    machine = Machine(folder, env)
    try:
        machine.start(str(LOCAL), "start").ends(0)
        yield Head(machine, port)
    finally:
        subprocess.run([str(LOCAL), "stop"], env=env, check=True, stdout=subprocess.DEVNULL)
        machine.end()
        shutil.rmtree(run)
        shutil.rmtree(f"/tmp/garen-{os.getuid()}/ray-{port}", ignore_errors=True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = beir(tmp_path_factory.mktemp("corpora") / "tiny", 60, QUERIES)
    return ["corpus=beir", f"corpus.path={folder}"]


# what needs no Ray


def test_an_input_file_is_refused_by_a_relative_path_in_a_copy_only() -> None:
    for key in ("corpus.path", "queries.path", "queries.qrels", "ask"):
        overrides = ["corpus=jsonl", "corpus.path=/there", "queries=jsonl", "queries.path=/there", f"{key}=some/file"]
        with pytest.raises(BadConfig, match=re.escape(f"{key}='some/file': expected an absolute path")):
            session.on_this_machine(compose(overrides), in_copy=True)
        settings: Any = session.on_this_machine(compose(overrides), in_copy=False)
        for name in key.split("."):
            settings = getattr(settings, name)
        assert settings == str(Path.cwd() / "some/file")


def test_what_is_no_file_passes_in_a_copy() -> None:
    settings = session.on_this_machine(compose(["artifacts.root=/elsewhere"]), in_copy=True)
    assert (settings.ask, settings.embeddings.model, settings.queries.qrels) == ("-", "minilm", "")


def test_artifacts_may_not_lie_in_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside = compose([f"artifacts.root={tmp_path}/kept"])
    with pytest.raises(BadConfig, match="artifacts.root=.*kept.*GAREN_HOME"):
        session.on_this_machine(inside, in_copy=True)
    assert session.on_this_machine(inside, in_copy=False).artifacts.root == f"{tmp_path}/kept"


def test_ray_address_decides_where_a_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert [compose([f"cluster={name}"]).cluster.address for name in ("laptop", "gpu_nodes")] == ["local", "auto"]
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert [compose([f"cluster={name}"]).cluster.address for name in ("laptop", "gpu_nodes")] == ["10.0.0.1:6379"] * 2


def test_a_job_servers_url_is_no_address() -> None:
    with pytest.raises(BadConfig, match="cluster/submit.sh"):
        ray_session.start_ray(compose(["cluster.address=http://127.0.0.1:8265"]).cluster)


def test_only_code_is_uploaded() -> None:
    environment = ray_session.code()
    assert environment["working_dir"] == str(REPO)
    assert {"/tests", "/pyproject.toml", "/cluster"} <= set(environment["excludes"])
    assert not {"/conf", "/jobs", "/actors"} & set(environment["excludes"])


def test_submit_wants_a_job() -> None:
    ended = subprocess.run([str(REPO / "cluster" / "submit.sh"), "conf.load"], capture_output=True, text=True, env=PLAIN)
    assert ended.returncode == 2 and "expected a job" in ended.stderr


# a session of its own


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_and_the_job_goes_on_from_there(machine: Machine, tmp_path: Path) -> None:
    given = ["corpus=beir", f"corpus.path={beir(tmp_path / 'tiny', 200, QUERIES)}", "cluster.embedder.part_rows=4"]
    for module, running, resumed in (
        ("jobs.build_index", r"embeddings: [\d,]+ of 200 documents", r"embeddings: \d+ of 200 documents were done before"),
        ("jobs.run_queries", r"garen: [\d,]+ of 400 queries", r"garen: [\d,]+ of 400 queries were done before"),
    ):
        job = machine.job(module, *given)
        job.says(running)
        assert len(members(job.process.pid)) > 3  # the driver, and Ray's own
        job.interrupt()
        assert "start the same command again" in job.ends(130)
        until(lambda job=job: not members(job.process.pid), "its processes to end", 20)
        assert re.search(resumed, machine.job(module, *given).ends(0))


# on a running head


@pytest.mark.slow
def test_every_job_runs_submitted(head: Head, corpus: list[str], tmp_path: Path) -> None:
    assert "index: " in head.submit("jobs.build_index", *corpus).ends(0)
    copies = Path(f"/tmp/garen-{os.getuid()}/ray-{head.port}/session_latest/runtime_resources/working_dir_files")
    (copy,) = (path for path in copies.iterdir() if path.is_dir())
    assert sorted(path.name for path in copy.iterdir()) == ["actors", "conf", "jobs"]
    assert (copy / "jobs" / "session.py").exists()  # an empty copy would run whatever is installed
    assert "run: " in head.submit("jobs.run_queries", "queries.limit=20", *corpus).ends(0)
    assert "ndcg_cut_10" in head.submit("jobs.score_run", "queries.limit=20", *corpus).ends(0)
    assert "iteration 1" in head.submit("jobs.show_trace", "queries.limit=20", "query_id=q3", *corpus).ends(0)
    (tmp_path / "question").write_text("why does bread rise")
    assert "bread rises with yeast" in head.submit("jobs.search", f"ask={tmp_path}/question", *corpus).ends(0)
    assert head.apps() == []


@pytest.mark.slow
def test_a_users_mistake_is_the_submitted_jobs_status(head: Head) -> None:
    said = head.submit("jobs.build_corpus", "corpus=beir", "corpus.path=some/where").ends(2)
    assert "corpus.path='some/where': expected an absolute path in a submitted job" in said


@pytest.mark.slow
def test_ctrl_c_ends_a_submitted_job_with_its_deployments(head: Head, corpus: list[str]) -> None:
    head.submit("jobs.build_index", *corpus).ends(0)
    job = head.submit("jobs.run_queries", *corpus, "loop=retrieve_and_rerank", "loop.budget=31")
    job.says(r"\d+ of 400 queries")
    assert len(head.apps()) == 1  # this method asks no navigator
    job.interrupt()
    assert "start the same command again" in job.ends(130)
    assert head.apps() == []


@pytest.mark.slow
def test_the_dead_are_swept_and_the_living_left_alone(head: Head, corpus: list[str], machine: Machine) -> None:
    head.submit("jobs.build_index", *corpus).ends(0)
    garen = ("jobs.run_queries", *corpus)
    rival = ("jobs.run_queries", *corpus, "loop=retrieve_and_rerank")

    joined = head.join(*garen)
    joined.says(r"garen: \d+ of 400 queries")
    os.kill(joined.process.pid, signal.SIGKILL)
    joined.ends(-signal.SIGKILL)
    left = head.apps()
    assert len(left) == 2  # nobody could remove them

    submitted = head.submit(*garen)
    submitted.says(r"garen: [\d,]+ of 400 queries, ")
    assert not set(left) & set(head.apps())
    os.kill(head.driver(), signal.SIGKILL)
    said = submitted.ends(128 + signal.SIGKILL)
    assert said.count("its job is dead") == 2 and "were done before" in said
    left = head.apps()
    assert len(left) == 2

    at_once = (head.submit(*garen), head.join(*rival))
    said = at_once[0].ends(0) + at_once[1].ends(0)
    assert "its job is dead" in said
    assert head.apps() == []

    shutil.copytree(head.machine.env["GAREN_HOME"], machine.env["GAREN_HOME"], ignore=shutil.ignore_patterns("run-*"))
    for undisturbed in (garen, rival):  # the same, alone and without Serve
        machine.job(*undisturbed, "cluster.in_process=true").ends(0)
    ours, theirs = (sorted(Path(m.env["GAREN_HOME"]).glob("tiny/run-*/run.parquet")) for m in (head.machine, machine))
    kept = {path.parent.name: path.read_bytes() for path in ours}
    assert len(theirs) == 2 and all(kept[path.parent.name] == path.read_bytes() for path in theirs)
