"""JSONL: one object per line, in a file or a folder of files, plain or .gz, with configured keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from actors.corpora.lines import JsonRecord, document, json_objects, label, query, source_files
from actors.corpora.records import BadInput, Document, Query, Refused
from conf.schema import Jsonl, Queries

SUFFIXES = (".jsonl", ".jsonl.gz")

# A key that this many records lack is taken for a wrong setting, without reading the rest.
ENOUGH = 1000


def files(node: Jsonl | Queries) -> list[Path]:
    """Every file of records, sorted."""
    return source_files("queries.path" if isinstance(node, Queries) else "corpus.path", node.path, SUFFIXES)


def documents(corpus: Jsonl) -> Iterator[Document | Refused]:
    """The documents in the order of the files and lines. Raises `BadInput` if a configured key is in no record."""
    wanted = {corpus.id: f"corpus.id={corpus.id}", corpus.text: f"corpus.text={corpus.text}"}
    if corpus.title:
        wanted.setdefault(corpus.title, f"corpus.title={corpus.title}")
    for record in read(files(corpus), corpus.path, wanted, sparse=corpus.title):
        if isinstance(record, Refused):
            yield record
            continue
        where, line, fields = record
        title = fields.get(corpus.title) if corpus.title else None
        yield document(where, line, fields.get(corpus.id), title, fields.get(corpus.text))


def queries(queries: Queries) -> Iterator[Query | Refused]:
    """The queries in order. The optional key `excluded_ids` lists the documents that do not exist for a query."""
    wanted = {queries.id: f"queries.id={queries.id}", queries.text: f"queries.text={queries.text}"}
    for record in read(files(queries), queries.path, wanted):
        if isinstance(record, Refused):
            yield record
            continue
        where, line, fields = record
        yield query(where, line, fields.get(queries.id), fields.get(queries.text), fields.get("excluded_ids"))


def read(sources: list[Path], path: str, wanted: dict[str, str], sparse: str = "") -> Iterator[JsonRecord | Refused]:
    """The records of all files. `wanted` maps each key that records need to the setting that names it.

    Raises `BadInput` once the first 1,000 records lack a key, or all of them at the end; for the `sparse` key, which
    few records may have, only at the end. A record that lacks a key that others have is left to the caller.
    """
    keys = _Keys(wanted, sparse)
    for file in sources:
        for record in json_objects(file, label(file, path)):
            if isinstance(record, JsonRecord):
                keys.note(record.fields)
            yield record
    keys.require(*keys.missing)


class _Keys:
    """Which of the wanted keys no record has had so far."""

    def __init__(self, wanted: dict[str, str], sparse: str) -> None:
        self.missing = dict(wanted)
        self._sparse = sparse
        self._count = 0
        self._there = dict[str, None]()

    def note(self, fields: dict[str, object]) -> None:
        if not self.missing:
            return
        for key in self.missing.keys() & fields.keys():
            del self.missing[key]
        self._count += 1
        if self._count <= ENOUGH:
            self._there.update(dict.fromkeys(fields))
        if self._count == ENOUGH:
            self.require(*(key for key in self.missing if key != self._sparse))

    def require(self, *missing: str) -> None:
        for key in missing if self._count else ():
            raise BadInput(
                f"{self.missing[key]}: none of the first {self._count} records has the key {key!r}; "
                f"expected one of their keys: {', '.join(self._there)}. Name it, or another path or reader."
            )
