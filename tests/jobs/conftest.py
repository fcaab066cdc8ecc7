"""A small made-up collection, and jobs as processes that can be killed and that leave nothing behind."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

import jobs
from actors.artifacts.store import ASIDE

T = TypeVar("T")
REPOSITORY = Path(jobs.__file__).parents[1]
PATIENCE = 300.0  # seconds for anything that a loaded machine may be slow at
LOOK = 0.002  # seconds between two looks at the file system
TOPICS = {
    "ships": "harbour anchor sail mast keel captain voyage cargo tide rope deck lighthouse",
    "bread": "flour yeast oven dough crust loaf kneading salt wheat mill baker hearth",
    "stars": "telescope galaxy nebula orbit comet lens planet eclipse spectrum moon dust gravity",
    "bees": "hive honey queen swarm pollen wax comb nectar drone flower sting keeper",
    "clocks": "pendulum gear spring escapement dial hour chime winding brass tower minute pivot",
    "rivers": "delta current bank flood bridge ferry silt valley spring estuary rapids dam",
    "violins": "bow string bridge varnish maple scroll orchestra tune resin melody peg luthier",
    "courts": "judge verdict witness jury appeal law evidence oath lawyer sentence trial statute",
    "glass": "furnace sand kiln bubble window lens pane melt blower colour mould shard",
    "trains": "rail locomotive signal station track carriage whistle junction freight timetable guard boiler",
}
SHAPES = (
    "The {0} depends on the {1}, as every account of the {2} tells.",
    "Nobody sees the {0} before the {1} is ready.",
    "An old {0} with a new {1} was found near the {2}.",
    "Good {0} makes poor {1} look better, and the {2} pays for both.",
)


def write_collection(folder: Path, documents: int, queries: int) -> Path:
    """A BEIR folder; topics take turns, and a query names words of one topic that its own document has."""
    draw = random.Random(7)
    topics = list(TOPICS.items())
    texts = []
    for row in range(documents):
        name, words = topics[row % len(topics)]
        sentences = [draw.choice(SHAPES).format(*draw.sample(words.split(), 3)) for _ in range(draw.randint(2, 4))]
        texts.append((f"{name} {row}", " ".join(sentences)))
    (folder / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": doc_id, "title": "", "text": text}) for doc_id, text in texts]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    gold = draw.sample(range(documents), queries)
    asked = [" ".join(draw.sample(TOPICS[texts[row][0].split()[0]].split(), 3)) for row in gold]
    lines = [json.dumps({"_id": f"q{n}", "text": f"what is said about {text}?"}) for n, text in enumerate(asked)]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    judged = [f"q{n}\t{texts[row][0]}\t1" for n, row in enumerate(gold)]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    return folder


def payload(folder: Path) -> dict[str, str]:
    """sha256 of every file of an artifact but its clock and room, by relative name."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in ASIDE)
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def artifact(root: Path, kind: str) -> Path:
    """The one finished artifact of a kind."""
    (folder,) = (p for p in root.glob(f"*/{kind}-*") if p.suffix != ".partial")
    return folder


def take(root: Path, source: Path, kinds: str, models: Path) -> Path:
    """A new root that holds some of another root's artifacts, as links: no job writes into a finished one."""
    for kind in kinds.split():
        folder = artifact(source, kind)
        shutil.copytree(folder, root / folder.parent.name / folder.name, copy_function=os.link)
    root.mkdir(exist_ok=True)
    (root / "models").symlink_to(models)
    return root


class Job:
    """`python -m jobs.<name>` in a session of its own, with a Ray of its own below `scratch`."""

    def __init__(self, name: str, overrides: tuple[str, ...], root: Path, scratch: Path) -> None:
        self.scratch = scratch
        self._log = tempfile.TemporaryFile("w+", dir=scratch)  # noqa: SIM115
        environment = {**os.environ, "GAREN_HOME": str(root), "RAY_TMPDIR": str(scratch)}
        for name_of_ray in ("RAY_ADDRESS", "RAY_AUTH_TOKEN"):
            environment.pop(name_of_ray, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"jobs.{name}", *overrides],
            cwd=REPOSITORY, env=environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip

    @property
    def output(self) -> str:
        self._log.flush()
        return os.pread(self._log.fileno(), 10_000_000, 0).decode()

    def until(self, seen: Callable[[], T]) -> T:
        """Wait, looking often, for something that the running job brings about, and return it."""
        end = time.monotonic() + PATIENCE
        while not (found := seen()):
            assert self.process.poll() is None, f"the job ended before it was caught:\n{self.output}"
            assert time.monotonic() < end, f"nothing to be seen:\n{self.output}"
            time.sleep(LOOK)
        return found

    def end(self) -> str:
        """Let it finish; its output."""
        self.process.wait(PATIENCE)
        assert self.process.returncode == 0, self.output
        return self.output

    def kill(self) -> None:
        """SIGKILL to the job and all of its Ray, and wait until nothing of it lives."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        end_all_below(self.scratch)


def end_all_below(scratch: Path) -> None:
    """Ray's daemons die with their driver; what still lives and keeps a file open below `scratch` is ended by its id."""
    end = time.monotonic() + PATIENCE
    while found := living_below(scratch):
        assert time.monotonic() < end, f"{found} do not end"
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def living_below(scratch: Path) -> dict[int, str]:
    """Processes, other than this one, that keep a file below `scratch` open: pid -> title. Ray's logs are such files."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(process.name) != os.getpid() and any(
                str(file.readlink()).startswith(f"{scratch}/") for file in (process / "fd").iterdir()
            ):
                found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


@contextlib.contextmanager
def a_scratch() -> Iterator[Path]:
    """A folder for Ray's session, short since a socket's path has at most 107 characters; nothing that uses it lives on."""
    folder = Path(tempfile.mkdtemp(prefix="rs", dir="/tmp"))
    try:
        yield folder
    finally:
        end_all_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def scratch() -> Iterator[Path]:
    with a_scratch() as folder:
        yield folder


StartJob = Callable[..., Job]


@pytest.fixture
def job(scratch: Path) -> StartJob:
    """Starts a job: name, root, overrides."""
    return lambda name, root, *overrides: Job(name, overrides, root, scratch)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all tests' roots keep the prepared model: it is made once."""
    return tmp_path_factory.mktemp("models")
