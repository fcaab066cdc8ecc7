"""From a corpus or queries node to its reader. A reader is the module of this folder that has its name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from actors.corpora import beir, python_docs
from actors.corpora.records import Document, Judgement, Query, Refused
from conf.schema import Corpus, PythonDocs, Queries, Synthetic

PACKED = 5  # a .gz of texts is about that many times smaller
BYTES_PER_WORD, BYTES_PER_DOCUMENT = 7, 40  # of a synthetic corpus


def documents(corpus: Corpus) -> Iterator[Document | Refused]:
    """Every document of the corpus, in an order that is always the same."""
    yield from _module(corpus).documents(corpus)


def rows(corpus: Corpus) -> int:
    """The number of documents of a corpus of which any span of rows can be read; 0 for one that is read from its beginning."""
    return corpus.documents if isinstance(corpus, Synthetic) else 0


def span(corpus: Corpus, first: int, last: int) -> tuple[pa.StringArray, pa.StringArray]:
    """Ids, all different, and texts, none empty, of rows of a corpus that has `rows`."""
    ids, texts = _module(corpus).span(corpus, first, last)
    return ids, texts


def size(corpus: Corpus) -> float:
    """Bytes on disk that the documents may take."""
    if isinstance(corpus, Synthetic):
        return corpus.documents * (corpus.words * BYTES_PER_WORD + BYTES_PER_DOCUMENT)
    return PACKED * sum(file.stat().st_size for file in files(corpus))


def queries(queries: Queries, corpus: Corpus | None = None) -> Iterator[Query | Refused]:
    """Every query, in an order that is always the same; nothing for the reader `none`. corpus: what `synthetic` asks about."""
    if queries.reader == "synthetic":
        yield from _module(queries).queries(queries, corpus)
    elif queries.reader != "none":
        yield from _module(queries).queries(queries)


def judgements(queries: Queries, corpus: Corpus | None = None) -> Iterator[Judgement | Refused]:
    """Every judgement; nothing where there are no qrels. corpus: what `synthetic` asks about."""
    if queries.reader == "synthetic":
        yield from _module(queries).judgements(queries, corpus)
    elif queries.reader == "python_docs":
        yield from _module(queries).judgements(queries)
    elif queries.reader != "none":
        yield from beir.judgements(queries)


def versions(node: Corpus | Queries) -> dict[str, str]:
    """What decides the records beside settings and files."""
    if isinstance(node, PythonDocs):
        return {"python": python_docs.version()}
    if node.reader == "synthetic":
        return {"generator": _module(node).VERSION}
    return {}


def files(node: Corpus | Queries) -> list[Path]:
    """Every file whose content matters, qrels included, sorted. The corpus python_docs has none, but its version."""
    if node.reader == "none":
        return []
    qrels = beir.qrels_file(node) if isinstance(node, Queries) else None
    return sorted([*_module(node).files(node), *([qrels] if qrels else [])])


def _module(node: Corpus | Queries) -> Any:
    return import_module(f"actors.corpora.{node.reader}")
