"""What every configuration value means, its type and its range. The values themselves live in the YAML files beside this one.

Plain dataclasses and nothing but the standard library, so that jobs, actors and a notebook can all use them.
No field has a default: a value has one home. `conf/load.py` turns the composed YAML into these classes and checks them.

Field metadata: `help` one line for `--help`; `minimum`, `maximum`, `choices` what is accepted;
`identity=False` marks a value that says *where* and not *what*, and so does not enter an artifact's identity
(what lies there enters by its sha256).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def value(help: str, *, minimum: float | None = None, maximum: float | None = None, choices: tuple[str, ...] = (),
          identity: bool = True) -> Any:
    return field(metadata={"help": help, "minimum": minimum, "maximum": maximum, "choices": choices, "identity": identity})


ON_BAD = ("stop", "skip")


@dataclass
class Artifacts:
    root: str = value("absolute folder that holds every artifact; shared by all nodes of a cluster", identity=False)
    collections: str = value("folder in which the named BEIR collections lie (corpus=scifact reads <collections>/scifact)", identity=False)


# --- corpus: what is searched -----------------------------------------------------------------------------------------


@dataclass
class PythonDocs:
    reader: str = value("python_docs", choices=("python_docs",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Beir:
    reader: str = value("beir", choices=("beir",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("BEIR folder: corpus.jsonl[.gz], queries.jsonl[.gz], qrels/<split>.tsv", identity=False)
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Jsonl:
    reader: str = value("jsonl", choices=("jsonl",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("a .jsonl or .jsonl.gz file, or a folder of them", identity=False)
    id: str = value("key that holds the document's id")
    title: str = value("key that holds the title; empty: no titles")
    text: str = value("key that holds the text")
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Parquet:
    reader: str = value("parquet", choices=("parquet",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("a .parquet file, or a folder of them", identity=False)
    id: str = value("column that holds the document's id")
    title: str = value("column that holds the title; empty: no titles")
    text: str = value("column that holds the text")
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Table:
    reader: str = value("table", choices=("table",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("a .csv or .tsv file with a header line (also .gz)", identity=False)
    id: str = value("column that holds the document's id")
    title: str = value("column that holds the title; empty: no titles")
    text: str = value("column that holds the text")
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


@dataclass
class Folder:
    reader: str = value("folder", choices=("folder",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    path: str = value("a folder; its .txt and .md files are read, subfolders too", identity=False)
    split: str = value("one document per file, or per Markdown section", choices=("file", "section"))
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


# --- queries: what is asked -------------------------------------------------------------------------------------------


@dataclass
class Queries:
    reader: str = value("python_docs: its own questions; beir: a BEIR folder; jsonl, table or parquet: one file of queries; "
                        "none: the corpus has no queries of its own",
                        choices=("python_docs", "beir", "jsonl", "table", "parquet", "none"))
    path: str = value("the BEIR folder, or the file of queries; empty for python_docs", identity=False)
    qrels: str = value("TSV of query-id, corpus-id, score with a header line; empty: <path>/qrels/<split>.tsv for BEIR, else no qrels",
                       identity=False)
    split: str = value("which qrels of a BEIR folder")
    id: str = value("key or column that holds the query's id (jsonl, table, parquet)")
    text: str = value("key or column that holds the query's text (jsonl, table, parquet)")
    limit: int = value("use only the first so many judged queries; 0: all", minimum=0)
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)
