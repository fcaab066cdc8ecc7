"""What is searched, and what is asked."""

from __future__ import annotations

from dataclasses import dataclass

from conf.schema.node import value

ON_BAD = ("stop", "skip")


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


@dataclass
class Synthetic:
    reader: str = value("synthetic: documents drawn around planted topics, to try sizes", choices=("synthetic",))
    name: str = value("folder name of the corpus' artifacts", identity=False)
    documents: int = value("number of documents", minimum=1)
    leaf_documents: float = value("documents of a topic at the bottom of the tree of topics, on average", minimum=1.0)
    branching: int = value("about so many topics make one of the level above", minimum=2)
    near_duplicates: float = value("share of documents that are an earlier one with few words changed", minimum=0.0, maximum=0.5)
    changed: float = value("share of a near-duplicate's words that are changed", minimum=0.0, maximum=1.0)
    isolated: float = value("share of documents that have no topic", minimum=0.0, maximum=0.5)
    words: float = value("words of a document, on average", minimum=1.0)
    words_spread: float = value("standard deviation of the logarithm of their number", minimum=0.0, maximum=2.0)
    vocabulary: float = value("words of the language for each square root of the number of documents", minimum=1.0)
    node_words: int = value("words that a topic has of its own, in each of its two wordings", minimum=1)
    topic_share: float = value("share of a document's words that tell its topics", minimum=0.01, maximum=1.0)
    reworded: float = value("share of documents that use the second wording; questions use the first", minimum=0.0, maximum=1.0)
    seed: int = value("seed of all that is drawn", minimum=0)
    queries: int = value("questions that come with it: queries.limit, where nothing else is said", minimum=0, identity=False)


@dataclass
class Queries:
    reader: str = value(
        "python_docs, synthetic: its own questions; beir: a BEIR folder; jsonl, table or parquet: one file of queries; "
        "none: the corpus has no queries of its own",
        choices=("python_docs", "synthetic", "beir", "jsonl", "table", "parquet", "none"),
    )
    path: str = value("the BEIR folder, or the file of queries; empty for python_docs and synthetic", identity=False)
    qrels: str = value(
        "TSV of query-id, corpus-id, score with a header line; empty: <path>/qrels/<split>.tsv for BEIR, else no qrels",
        identity=False,
    )
    split: str = value("which qrels of a BEIR folder")
    id: str = value("key or column that holds the query's id (jsonl, table, parquet)")
    text: str = value("key or column that holds the query's text (jsonl, table, parquet)")
    limit: int = value("use only the first so many judged queries; 0: all (synthetic: one for each topic)", minimum=0)
    on_bad: str = value("what to do with a refused record", choices=ON_BAD)


Corpus = PythonDocs | Beir | Jsonl | Parquet | Table | Folder | Synthetic
