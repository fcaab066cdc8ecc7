"""CSV and TSV with a header line and configured columns, plain or .gz. Quoted fields may hold line breaks."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actors.corpora.lines import Line, document, label, lines, query, refused, source_files
from actors.corpora.records import BadInput, Document, Query, Refused
from conf.schema import Queries, Table

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")

# Also how far a quote that is never closed is followed. The csv module's own limit is less than a long document.
FIELD_CHARACTERS = 1 << 24


def files(node: Table | Queries) -> list[Path]:
    """The file."""
    key = "queries.path" if isinstance(node, Queries) else "corpus.path"
    sources = source_files(key, node.path, SUFFIXES)
    if Path(node.path).expanduser().is_dir():
        raise BadInput(f"{key}={node.path}: expected one file and not a folder; name one, such as {sources[0].name}.")
    return sources


def documents(corpus: Table) -> Iterator[Document | Refused]:
    """The documents in order; `where` is the first line of each."""
    columns = {"corpus.id": corpus.id, "corpus.text": corpus.text}
    if corpus.title:
        columns["corpus.title"] = corpus.title
    for row in _rows(files(corpus)[0], corpus.path, columns):
        if isinstance(row, Refused):
            yield row
            continue
        where, line, fields = row
        yield document(where, line, fields[corpus.id], fields.get(corpus.title), fields[corpus.text])


def queries(queries: Queries) -> Iterator[Query | Refused]:
    """The queries in order; a table has no column for excluded documents."""
    columns = {"queries.id": queries.id, "queries.text": queries.text}
    for row in _rows(files(queries)[0], queries.path, columns):
        if isinstance(row, Refused):
            yield row
            continue
        where, line, fields = row
        yield query(where, line, fields[queries.id], fields[queries.text])


class _Source:
    """Text lines for csv.reader. Remembers the lines of the record being read, so that they can be read again.

    Bytes that are not UTF-8 come through as surrogates, which valid UTF-8 never gives.
    """

    def __init__(self, file: Path) -> None:
        self._lines = lines(file)
        self._again = deque[Line]()
        self.record = list[Line]()

    def __iter__(self) -> _Source:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self.record.append(line)
        return line.raw.decode("utf-8", "surrogateescape")

    def give_back_all_but_first(self) -> None:
        self._again.extendleft(reversed(self.record[1:]))


def _rows(file: Path, path: str, columns: dict[str, str]) -> Iterator[tuple[str, str, dict[str, str]] | Refused]:
    """Place, first line and wanted fields of each record below the header.

    A record that is not CSV costs its first line only: the next one is tried as the beginning of a record, so that
    a stray quote does not take the lines below with it.
    """
    source, name = _Source(file), label(file, path)
    reader = csv.reader(source, delimiter="\t" if ".tsv" in file.suffixes[-2:] else ",", strict=True)
    header = _header(reader, file)
    at = {column: _position(header, column, setting, file) for setting, column in columns.items()}
    while (fields := _next_record(reader, source)) != []:
        first = source.record[0].raw.decode("utf-8", "replace")
        where = f"{name}:{source.record[0].number}"
        if fields is None:
            yield refused(where, "not CSV", first)
            source.give_back_all_but_first()
        elif not _is_utf8(fields):
            yield refused(where, "not UTF-8", first)
        elif len(fields) != len(header):
            yield refused(where, "wrong number of columns", first)
        else:
            yield where, first, {column: fields[position] for column, position in at.items()}


def _next_record(reader: Any, source: _Source) -> list[str] | None:
    """The fields of the next record that is not blank; [] at the end, None if it is not CSV."""
    before = csv.field_size_limit(FIELD_CHARACTERS)
    try:
        while True:
            source.record.clear()
            fields: list[str] = next(reader, [])
            if fields or not source.record:
                return fields
    except csv.Error:
        return None
    finally:
        csv.field_size_limit(before)


def _is_utf8(fields: list[str]) -> bool:
    try:
        "".join(fields).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _header(reader: Any, file: Path) -> list[str]:
    try:
        header: list[str] = next(reader, [])
    except csv.Error as error:
        raise BadInput(f"{file}:1: expected a header line with the names of the columns ({error}).") from error
    if not header:
        raise BadInput(f"{file}:1: expected a header line with the names of the columns; add one.")
    return header


def _position(header: list[str], column: str, setting: str, file: Path) -> int:
    if header.count(column) != 1:
        names = ", ".join(header)
        raise BadInput(f"{setting}={column}: expected one such column in {file}; name one of its columns: {names}.")
    return header.index(column)
