"""From a corpus or queries node to its reader. A reader is the module of this folder that has its name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from actors.corpora import beir
from actors.corpora.records import Document, Judgement, Query, Refused
from conf.schema import Corpus, Queries


def documents(corpus: Corpus) -> Iterator[Document | Refused]:
    """Every document of the corpus, in an order that is always the same."""
    yield from _module(corpus).documents(corpus)


def queries(queries: Queries) -> Iterator[Query | Refused]:
    """Every query, in an order that is always the same; nothing for the reader `none`."""
    if queries.reader != "none":
        yield from _module(queries).queries(queries)


def judgements(queries: Queries) -> Iterator[Judgement | Refused]:
    """Every judgement; nothing where there are no qrels."""
    if queries.reader == "python_docs":
        yield from _module(queries).judgements(queries)
    elif queries.reader != "none":
        yield from beir.judgements(queries)


def files(node: Corpus | Queries) -> list[Path]:
    """Every file whose content matters, qrels included, sorted. The corpus python_docs has none, but its version."""
    if node.reader == "none":
        return []
    qrels = beir.qrels_file(node) if isinstance(node, Queries) else None
    return sorted([*_module(node).files(node), *([qrels] if qrels else [])])


def _module(node: Corpus | Queries) -> Any:
    return import_module(f"actors.corpora.{node.reader}")
