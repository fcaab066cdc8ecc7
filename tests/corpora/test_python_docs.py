from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from actors.corpora import python_docs
from actors.corpora.records import Document, Judgement, Query, Refused
from conf.schema import PythonDocs, Queries

CORPUS = PythonDocs(reader="python_docs", name="python_docs", on_bad="skip")
QUERIES = Queries(reader="python_docs", path="", qrels="", split="test", id="_id", text="text", limit=0, on_bad="stop")

TOY = '''
"""A toy."""
import json
from json import JSONDecodeError
__all__ = ["Public", "Renamed", "documented", "shown_default", "JSONDecodeError", "json", "many", "bare"]

class _Private:
    def taken_over(self):
        "Comes from a base without documents."

class Parent(_Private):
    "Not exported."
    def own(self):
        "Not exported either."

class Public(Parent):
    def __init__(self, size):
        "Needs a size."
    def method(self):
        "Does it."
    def _hidden(self):
        "Nobody's business."
    def own(self):
        pass
    @classmethod
    def make(cls):
        "Makes one."
    @property
    def size(self):
        "How large it is."

Renamed = Public
def documented(a, b=1):
    "A function."
def shown_default(key=object()):
    "Has a default with an address."
def bare():
    pass
class many:
    pass
for _i in range(14):
    exec(f"def f{_i:02}(self):\\n  'The same.'")
    setattr(many, f"f{_i:02}", locals()[f"f{_i:02}"])
'''


@pytest.fixture(scope="module")
def library() -> list[Document | Refused]:
    return list(python_docs.documents(CORPUS))


@pytest.fixture(scope="module")
def texts(library: list[Document | Refused]) -> dict[str, str]:
    return {record.doc_id: record.text for record in library if isinstance(record, Document)}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("toy")
    (folder / "toy.py").write_text(TOY)
    return {record.doc_id: record.text for record in python_docs.gather(["toy"], [str(folder)])}


def test_the_library_is_read_once_sorted_and_whole(library: list[Document | Refused], texts: dict[str, str]) -> None:
    documents = [record for record in library if isinstance(record, Document)]
    ids = [document.doc_id for document in documents]
    assert ids == sorted(set(ids)) and len(ids) > 5000
    refused = {record.where for record in library if isinstance(record, Refused)}
    optional = {"dbm.gnu", "dbm.ndbm", "dbm.sqlite3", "sqlite3", "tkinter", "turtle", "curses", "readline", "lzma", "bz2"}
    assert refused <= optional  # parts that a Python may be built without
    assert library[: len(documents)] == documents


def test_names_are_the_public_ones(texts: dict[str, str]) -> None:
    for name in (
        "json.JSONEncoder.default",
        "builtins.str.split",
        "builtins.open",
        "builtins.OSError",
        "os.path.join",
        "os.getcwd",
        "random.choice",
        "asyncio.TaskGroup",
        "concurrent.futures.ThreadPoolExecutor",
        "pathlib.PurePath.stem",
        "socket.socket.sendall",
        "argparse.ArgumentParser.add_argument",
        "builtins.property",
        "types.GeneratorType.send",
    ):
        assert name in texts, name
    outside = re.compile(r"(^|\.)_|^(test|idlelib|lib2to3|this|antigravity|turtledemo|posix|posixpath|distutils)(\.|$)")
    assert not [name for name in texts if outside.search(name)]


def test_no_docstring_is_there_twice_and_nothing_depends_on_the_run(texts: dict[str, str]) -> None:
    bodies = Counter(text.partition("\n")[2].partition("\nAlso: ")[0] for text in texts.values())
    assert [body for body, count in bodies.items() if count > 1] == []
    assert not [name for name, text in texts.items() if re.search(r" at 0x[0-9a-f]{6}", text)]
    assert not [name for name, text in texts.items() if sys.prefix in text.partition("\n")[0]]  # nor on where it is installed
    assert texts["platform.architecture"].startswith("platform.architecture(executable='sys.executable', ")
    assert "Also: io.open" in texts["builtins.open"]


def test_another_hash_seed_gives_the_same_bytes(texts: dict[str, str]) -> None:
    job = json.dumps({"modules": [], "path": [], "seconds": 30, "skip": []})
    command = [sys.executable, "-P", "-W", "ignore", str(python_docs.GATHERER), job]
    output = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONHASHSEED": "1"}, check=True).stdout
    again = [json.loads(line)["document"] for line in output.splitlines() if line.startswith(b'{"document"')]
    assert again == [list(item) for item in texts.items()]


def test_a_document_is_name_signature_docstring_and_other_names(toy: dict[str, str]) -> None:
    same = ", ".join(f"toy.many.f{number:02}" for number in range(1, 11))
    assert toy == {
        "toy": "toy\nA toy.",
        "toy.JSONDecodeError": toy["toy.JSONDecodeError"],
        "toy.Public": "toy.Public(size)\nNeeds a size.\nAlso: toy.Renamed",
        "toy.Public.make": "toy.Public.make(cls)\nMakes one.\nAlso: toy.Renamed.make",
        "toy.Public.method": "toy.Public.method(self)\nDoes it.\nAlso: toy.Renamed.method",
        "toy.Public.size": "toy.Public.size\nHow large it is.\nAlso: toy.Renamed.size",
        "toy.Public.taken_over": (
            "toy.Public.taken_over(self)\nComes from a base without documents.\nAlso: toy.Renamed.taken_over"
        ),
        "toy.documented": "toy.documented(a, b=1)\nA function.",
        "toy.many.f00": f"toy.many.f00(self)\nThe same.\nAlso: {same} and 3 more",
        "toy.shown_default": "toy.shown_default(key=<object object>)\nHas a default with an address.",
    }


def test_no_module_can_spoil_or_stop_the_rest(tmp_path: Path) -> None:
    modules = {
        "printing": "import os\nprint('{\"done\": true}', flush=True)\nos.system('echo words')\ndef f():\n  'Still here.'",
        "raising": "raise SystemExit('no, thank you')",
        "hanging": "while True: pass",
        "exiting": "import os\nos._exit(3)",
        "threaded": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
    }
    for name, code in modules.items():
        (tmp_path / f"{name}.py").write_text(code)
    records = list(python_docs.gather(list(modules), [str(tmp_path)], seconds=2.0))
    assert [record.text for record in records if isinstance(record, Document)] == ["printing.f()\nStill here."]
    reasons = {record.where: record.excerpt for record in records if isinstance(record, Refused)}
    assert reasons == {
        "exiting": "importing it ends the process with status 3",
        "hanging": "importing it takes more than 2 s",
        "raising": "SystemExit: no, thank you",
    }


def test_a_child_that_cannot_work_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise ValueError('out of order')")
    monkeypatch.setattr(python_docs, "GATHERER", broken)
    with pytest.raises(RuntimeError, match=r"broken\.py did not deliver .* status 1: ValueError: out of order"):
        list(python_docs.gather())


def test_questions_are_well_formed_and_their_answers_exist(texts: dict[str, str]) -> None:
    queries = list(python_docs.queries(QUERIES))
    judgements = list(python_docs.judgements(QUERIES))
    assert all(isinstance(query, Query) for query in queries)
    assert all(isinstance(judgement, Judgement) for judgement in judgements)
    assert len({query.query_id for query in queries}) == len({query.text for query in queries}) == len(queries) >= 80
    gold = Counter(judgement.query_id for judgement in judgements)
    assert set(gold) == {query.query_id for query in queries} and set(gold.values()) <= {1, 2, 3, 4, 5}
    assert {judgement.relevance for judgement in judgements} == {1, 2}
    assert {judgement.query_id for judgement in judgements if judgement.relevance == 2} == set(gold)
    assert [judgement for judgement in judgements if judgement.doc_id not in texts] == []


def test_a_question_does_not_name_its_answer() -> None:
    questions = {query.query_id: query.text for query in python_docs.queries(QUERIES)}
    named = [
        judgement
        for judgement in python_docs.judgements(QUERIES)
        if re.search(rf"\b{re.escape(judgement.doc_id)}\b", questions[judgement.query_id]) and judgement.doc_id != "copy"
    ]
    assert named == []


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"_id": "q"}', '{"_id": "q", "text": "", "gold": {"a": 1}}', '{"_id": "q", "text": "t", "gold": 1}']
)
def test_a_bad_question_is_refused_with_its_line(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"_id": "q1", "text": "t", "gold": {"a": 2, "b": 1}}\n' + line + "\n")
    monkeypatch.setattr(python_docs, "QUESTIONS", path)
    good, bad = python_docs.queries(QUERIES)
    assert good == Query("q1", "t", (), "questions.jsonl:1")
    assert isinstance(bad, Refused) and bad.where == "questions.jsonl:2" and bad.excerpt == line[:80]
    assert list(python_docs.judgements(QUERIES)) == [
        Judgement("q1", "a", 2, "questions.jsonl:1"),
        Judgement("q1", "b", 1, "questions.jsonl:1"),
        bad,
    ]


def test_identity() -> None:
    assert python_docs.version().startswith(f"CPython {sys.version.split()[0]} {sys.platform}")
    assert python_docs.files(CORPUS) == [python_docs.GATHERER] and python_docs.files(QUERIES) == [python_docs.QUESTIONS]
