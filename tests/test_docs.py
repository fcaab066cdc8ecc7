"""The README says what the code does: its commands compose, its table of stages is the flow, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from conf.load import compose
from jobs.artifacts import VERBS
from jobs.session import with_verb
from jobs.stages import STAGES

ROOT = Path(__file__).parent.parent
PATH = ROOT / "README.md"
README = PATH.read_text(encoding="utf-8") if PATH.exists() else ""
JOBS = {"run": "run_queries", "metrics": "score_run"} | {kind: f"build_{kind}" for kind in STAGES if kind not in ("run", "metrics")}
CODE = re.compile(r"^```[^\n]*\n.*?^```|^(?:    .*\n?)+", re.MULTILINE | re.DOTALL)  # fenced, or set in by four spaces


def commands(start: str) -> list[str]:
    """The command lines in code that start so, alone or behind a pipe, a prompt or variables; a backslash joins lines."""
    lines = "\n".join(CODE.findall(README)).replace("\\\n", " ").splitlines()
    parts = (part.strip() for line in lines for part in re.split(r"\s(?:\||\|\||&&|;|#)\s", f" {line.strip().removeprefix('$ ')} "))
    return [found[0] for part in parts if (found := re.search(rf"(?<!\S){re.escape(start)}.*", part))]


def rows() -> Iterator[tuple[str, str, str]]:
    """job, reads, writes of the README's table of stages."""
    head = r"^\|\s*job\s*\|\s*reads\s*\|\s*writes\s*\|.*\n\|[-:| ]+\|\n((?:\|.*\n?)+)"
    for table in re.findall(head, README, re.MULTILINE | re.IGNORECASE):
        for line in table.strip().splitlines():
            job, reads, writes = (cell.strip().replace("`", "") for cell in line.strip("|").split("|")[:3])
            yield job.removeprefix("jobs.").removeprefix("python -m jobs."), reads, writes


def kinds(cell: str) -> set[str]:
    """The artifacts among the items of a cell: "corpus" is one, "the files that `corpus` names" is not."""
    return {item.strip() for item in cell.replace(" and ", ", ").split(",")} & set(STAGES)


def test_there_is_a_readme_that_shows_its_commands() -> None:
    assert README
    assert commands("make quickstart")
    assert commands("python -m jobs.")


@pytest.mark.parametrize("command", commands("python -m jobs."))
def test_a_command_composes(command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GAREN_HOME", str(tmp_path))
    _, _, module, *arguments = shlex.split(command, comments=True)
    arguments = with_verb(arguments, VERBS if module == "jobs.artifacts" else ())
    assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
    for stop in (">", ">>", "<", "&", "2>&1"):
        arguments = arguments[: arguments.index(stop)] if stop in arguments else arguments
    flags = [a for a in arguments if a.startswith("-")]
    overrides = [a for a in arguments if "=" in a and not a.startswith("-")]
    if flags:
        assert set(flags) <= {"--help", "--cfg", "--multirun", "-m", "--info"}
    else:
        assert overrides == arguments
        compose(overrides)


@pytest.mark.parametrize("command", commands("make "))
def test_a_make_target_exists(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in (word for word in shlex.split(command, comments=True)[1:] if "=" not in word):
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), target


def test_the_table_of_stages_is_the_flow() -> None:
    table = {job: (kinds(reads), kinds(writes)) for job, reads, writes in rows()}
    assert {job: found for job, found in table.items() if job in JOBS.values()} == {
        JOBS[kind]: (set(stage.inputs), {kind}) for kind, stage in STAGES.items()
    }
    assert [job for job in table if not (ROOT / "jobs" / f"{job}.py").is_file()] == []


def test_relative_links_lead_somewhere() -> None:
    text = CODE.sub("", README)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    files = [link.partition("#")[0] for link in links if "://" not in link and not link.startswith(("#", "mailto:"))]
    assert [file for file in files if not (ROOT / file).exists()] == []
    headings = {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    assert [link for link in links if link.startswith("#") and link[1:] not in headings] == []


def test_paths_in_backticks_exist() -> None:
    """Files that the README names: a path with a folder of ours and an ending."""
    named = re.findall(r"`((?:conf|jobs|actors|tests|cluster)/[\w./-]+\.\w+)`", README)
    assert [path for path in named if not (ROOT / path).exists()] == []
