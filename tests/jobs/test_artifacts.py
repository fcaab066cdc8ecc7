"""What the job says and removes, over a root of made-up artifacts."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actors.artifacts.store import Address, Recipe, draft, is_built
from conf.load import BadConfig, compose
from jobs import artifacts
from jobs.artifacts import age
from jobs.session import with_verb
from tests.artifacts.test_shelves import killed_at_work, put


@pytest.fixture
def root(tmp_path: Path) -> dict[str, Address]:
    """Two corpora. In `a`: an index with a run and its metrics, an index that nothing uses, vectors of another model; and work."""
    a = tmp_path / "a"
    corpus = put(a, "corpus")
    vectors, others = put(a, "embeddings", corpus), put(a, "embeddings", corpus, number=1)
    index, spare = put(a, "index", corpus, vectors), put(a, "index", corpus, number=1)
    run = put(a, "run", index)
    metrics = put(a, "metrics", run)
    graph = Address(a, Recipe("graph", {}, {"embeddings": others.name}))
    with contextlib.suppress(KeyboardInterrupt), draft(graph) as folder:
        (folder / "half").write_bytes(b"123")
        raise KeyboardInterrupt
    return {"corpus": corpus, "vectors": vectors, "others": others, "index": index, "spare": spare, "run": run,
            "metrics": metrics, "graph": graph, "elsewhere": put(tmp_path / "b", "lexicon")}  # fmt: skip


def said(tmp_path: Path, *overrides: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        artifacts.run(compose((f"artifacts.root={tmp_path}", *overrides)))
    return out.getvalue()


def left(root: dict[str, Address]) -> set[str]:
    return {name for name, address in root.items() if is_built(address.folder) or address.partial.exists()}


def test_list_says_what_each_is_made_from_and_what_needs_it(root: dict[str, Address], tmp_path: Path) -> None:
    lines = [line.split() for line in said(tmp_path, "do=list").splitlines()]
    told = {line[1]: line for line in lines if line and line[0].isdigit()}
    number = {name: told[address.name][0] for name, address in root.items() if address.name in told}
    assert told[root["corpus"].name][2] == "finished" and told[root["graph"].name + ".partial"][2] == "unfinished"
    assert [number["corpus"], number["vectors"]] == sorted([number["corpus"], number["vectors"]])
    run = told[root["run"].name]
    assert run[-2:] == [number["index"], number["metrics"]]
    assert told[root["metrics"].name][-2:] == [number["run"], "-"]
    assert told[root["elsewhere"].name][-2:] == ["-", "-"]
    only = said(tmp_path, "do=list", "artifacts.only=b")
    assert root["elsewhere"].name in only and root["corpus"].name not in only


@pytest.mark.parametrize(
    ("overrides", "removed"),
    [
        ((), {"elsewhere"}),
        (("artifacts.keep_kinds=[run,metrics]",), {"elsewhere", "spare"}),
        (("artifacts.keep_kinds=[lexicon]",), {"index", "spare", "run", "metrics", "vectors"}),
        (("artifacts.keep_unfinished=false",), {"elsewhere", "graph", "others"}),
        (("artifacts.keep_kinds=[]", "artifacts.keep_unfinished=false"), {"corpus", "vectors", "others", "index", "spare", "run",
                                                                          "metrics", "graph", "elsewhere"}),
        (("artifacts.keep_kinds=[]", "artifacts.keep_unfinished=false", "artifacts.only=b"), {"elsewhere"}),
    ],
)  # fmt: skip
def test_prune_removes_what_nothing_that_is_kept_needs(
    overrides: tuple[str, ...], removed: set[str], root: dict[str, Address], tmp_path: Path
) -> None:
    foreseen = said(tmp_path, "do=prune", "plan=true", *overrides)
    assert left(root) == set(root), "a plan removes nothing"
    told = said(tmp_path, "do=prune", *overrides)
    assert left(root) == set(root) - removed
    assert foreseen.replace("would remove", "removing") == told
    assert f"removing {len(removed)} of {len(root)} artifacts, " in told
    for name, address in root.items():
        assert (f"  {address.folder.parent.name}/{address.name}" in told) == (name in removed)
    assert "removing 0 of" in said(tmp_path, "do=prune", *overrides)


def test_only_what_is_named_is_kept_with_what_it_is_made_from(root: dict[str, Address], tmp_path: Path) -> None:
    said(tmp_path, "do=prune", f"artifacts.keep=[{root['spare'].name}]", "artifacts.keep_unfinished=false")
    assert left(root) == {"spare", "corpus"}


def test_a_name_that_is_not_there_removes_nothing(root: dict[str, Address], tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"artifacts.keep=\['run-0'\]: expected names as python -m jobs.artifacts list shows them"):
        said(tmp_path, "do=prune", "artifacts.keep=[run-0]")
    with pytest.raises(BadConfig, match=r"artifacts.only='c': expected a corpus with artifacts below .* \(a, b\)"):
        said(tmp_path, "do=prune", "artifacts.only=c")
    with pytest.raises(BadConfig, match="do='remove': expected list or prune"):
        said(tmp_path, "do=remove")
    assert left(root) == set(root)


def test_what_is_being_written_is_kept_and_what_it_is_made_from(root: dict[str, Address], tmp_path: Path) -> None:
    with draft(root["graph"]):
        assert "being written" in said(tmp_path, "do=list")
        said(tmp_path, "do=prune", "artifacts.keep_kinds=[]", "artifacts.keep_unfinished=false")
    assert left(root) == {"corpus", "others", "graph"}


def test_a_corpus_that_a_job_works_on_is_left_alone(root: dict[str, Address], tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from actors.artifacts.shelves import working_on\n"
        "working_on(Path(sys.argv[1])); print('at work', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "a")], stdin=-1, stdout=-1, text=True) as worker:
        assert worker.stdout and worker.stdout.readline() == "at work\n"
        assert "a job is at work here" in said(tmp_path, "do=list", "artifacts.only=a")
        told = said(tmp_path, "do=prune", "artifacts.keep_kinds=[]", "artifacts.keep_unfinished=false")
        worker.communicate(timeout=60)
    assert "a: a job is at work here, so all of it is kept" in told
    assert left(root) == set(root) - {"elsewhere"}


def test_a_prune_that_was_killed_leaves_nothing_half_and_is_finished_by_the_next(
    root: dict[str, Address], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = ("do=prune", "artifacts.keep_kinds=[]", "artifacts.keep_unfinished=false")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", killed_at_work)
        said(tmp_path, *overrides)
    there = left(root)
    assert len(there) == len(root) - 1
    for address in (root[name] for name in there):
        assert all((address.shelf / name).exists() for name in address.recipe.inputs.values())
    said(tmp_path, *overrides)
    assert not [path for shelf in ("a", "b") for path in (tmp_path / shelf).iterdir()]


def test_a_damaged_artifact_is_kept_and_named(root: dict[str, Address], tmp_path: Path) -> None:
    (root["elsewhere"].folder / "manifest.json").write_text("{")
    assert "damaged" in said(tmp_path, "do=list")
    said(tmp_path, "do=prune", "artifacts.keep_kinds=[]", "artifacts.keep_unfinished=false")
    assert [p.name for p in (tmp_path / "b").iterdir()] == [root["elsewhere"].name]


def test_the_word_alone_is_the_verb() -> None:
    assert with_verb(["prune", "plan=true", "--help"], artifacts.VERBS) == ["do=prune", "plan=true", "--help"]
    assert with_verb(["lst"], artifacts.VERBS) == ["do=lst"]  # refused by the job, with the words it knows
    assert with_verb(["prune", "plan=true"], ()) == ["prune", "plan=true"]


def test_from_the_command_line(root: dict[str, Address], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jobs.artifacts", "prune", "plan=true"]
    environment = {**os.environ, "GAREN_HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1].startswith("would remove 1 of 9 artifacts, 0.0 MiB")


@pytest.mark.parametrize(
    ("seconds", "told"), [(-5, "0 seconds"), (90, "90 seconds"), (150, "2 minutes"), (7200, "2 hours"), (200_000, "2 days")]
)
def test_age(seconds: float, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1e9)
    assert age(1e9 - seconds) == told
