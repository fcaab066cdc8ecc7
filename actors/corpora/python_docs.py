"""The standard library documentation of the running Python as a corpus, and questions that programmers ask about it.

Every machine that runs this program has this corpus. One document is one docstring: of a public module, class,
function, method or property. Its text is the name with its signature, the docstring, and the docstring's other names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from actors.corpora.records import Document, Judgement, Query, Refused
from conf.schema import PythonDocs, Queries

QUESTIONS = Path(__file__).with_name("python_docs_questions.jsonl")
GATHERER = Path(__file__).with_name("python_docs_gather.py")
SECONDS_PER_MODULE = 30.0
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def version() -> str:
    """What decides the documents beside the gatherer: "CPython 3.11.7 linux without _gdbm, _tkinter"."""
    missing = sorted(name for name in sys.stdlib_module_names if importlib.util.find_spec(name) is None)
    built = f"{platform.python_implementation()} {platform.python_version()} {sys.platform}"
    return f"{built} without {', '.join(missing)}" if missing else built


def files(settings: PythonDocs | Queries) -> list[Path]:
    """Files whose content enters the identity: what gathers the documents, or the questions."""
    return [QUESTIONS] if isinstance(settings, Queries) else [GATHERER]


def documents(corpus: PythonDocs) -> Iterator[Document | Refused]:
    """Every docstring once, sorted by id, then the modules that cannot be read. Same Python, same bytes."""
    return gather()


def gather(
    modules: Sequence[str] = (), path: Sequence[str] = (), seconds: float = SECONDS_PER_MODULE
) -> Iterator[Document | Refused]:
    """`documents` of the given modules (none: the whole library), imported from the folders `path` before all others.

    Modules are imported in a child process. One that ends or blocks the child (`seconds`) is refused, and a new child
    reads the rest. Raises RuntimeError if a child ends after it has begun to deliver.
    """
    fatal: dict[str, str] = {}
    job: dict[str, Any] = {"modules": list(modules), "path": list(path), "seconds": seconds}
    while ended_at := (yield from _records_of_child(job | {"skip": sorted(fatal)})):
        module, reason = ended_at
        fatal[module] = reason
    for module, reason in sorted(fatal.items()):
        yield _refused_module(module, reason)


def _records_of_child(job: dict[str, Any]) -> Generator[Document | Refused, None, tuple[str, str] | None]:
    """Yields what one child delivers. Returns None, or the module at which the child ended early, with the reason."""
    reading, delivered = "", False
    with tempfile.TemporaryFile() as messages, _child(job, messages) as child:
        try:
            for line in child.stdout or ():
                record = json.loads(line)
                if "done" in record:
                    return None
                reading = record.get("reading", reading)
                if "reading" not in record:
                    delivered = True
                    yield _as_record(record)
        finally:
            child.kill()
        reason = _why_ended(child.wait(), messages, job["seconds"])
    if delivered or not reading or reading in job["skip"]:
        raise RuntimeError(f"{GATHERER.name} did not deliver the documentation of {sys.executable}: {reason}")
    return reading, reason


def _child(job: dict[str, Any], messages: IO[bytes]) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in DISPLAYS}
    command = [sys.executable, "-I", "-W", "ignore", str(GATHERER), json.dumps(job)]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, env=environment, encoding="utf-8"
    )


def _why_ended(status: int, messages: IO[bytes], seconds: float) -> str:
    messages.seek(0)
    said = messages.read().decode(errors="replace")
    if "Timeout (" in said:  # the words of faulthandler, which watches over the child
        return f"importing it takes more than {seconds:g} s"
    last = said.strip().rpartition("\n")[2]
    return f"importing it ends the process with status {status}" + (f": {last}" if last else "")


def _as_record(record: dict[str, Any]) -> Document | Refused:
    if "refused" in record:
        return _refused_module(*record["refused"])
    name, text = record["document"]
    return Document(name, text, name)


def _refused_module(module: str, reason: str) -> Refused:
    return Refused(module, "module cannot be read", reason[:80])


def queries(queries: Queries) -> Iterator[Query | Refused]:
    """The questions, in the order of their file."""
    for where, question in _questions():
        yield question if isinstance(question, Refused) else Query(question["_id"], question["text"], (), where)


def judgements(queries: Queries) -> Iterator[Judgement | Refused]:
    """The answers to each question: 2 for what it asks for, 1 for what answers it too, or answers part of it."""
    for where, question in _questions():
        if isinstance(question, Refused):
            yield question
            continue
        for doc_id, relevance in question["gold"].items():
            yield Judgement(question["_id"], doc_id, relevance, where)


def _questions() -> Iterator[tuple[str, dict[str, Any] | Refused]]:
    with QUESTIONS.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            where = f"{QUESTIONS.name}:{number}"
            try:
                question = json.loads(line)
                if not (question["_id"] and question["text"] and question["gold"].items()):
                    raise ValueError("_id, text or gold is empty")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                yield where, Refused(where, f'expected {{"_id", "text", "gold"}}: {error!r}', line[:80].rstrip())
            else:
                yield where, question
