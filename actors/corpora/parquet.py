"""Parquet: a file or a folder of files, with configured columns, read in batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from actors.corpora.lines import document, label, query, source_files
from actors.corpora.records import BadInput, Document, Query, Refused
from conf.schema import Parquet, Queries

ROWS = 1024
BUFFER_BYTES = 1 << 20


def files(node: Parquet | Queries) -> list[Path]:
    """Every file, sorted."""
    return source_files("queries.path" if isinstance(node, Queries) else "corpus.path", node.path, (".parquet",))


def documents(corpus: Parquet) -> Iterator[Document | Refused]:
    """The documents in the order of files and rows; `where` is "file:row", counted from 1."""
    columns = {"corpus.id": corpus.id, "corpus.text": corpus.text}
    if corpus.title:
        columns["corpus.title"] = corpus.title
    for where, row in _rows(files(corpus), corpus.path, columns):
        doc_id, title, text = row[corpus.id], row.get(corpus.title), row[corpus.text]
        yield document(where, str(doc_id or text), doc_id, title, text)


def queries(queries: Queries) -> Iterator[Query | Refused]:
    """The queries in order. The optional list column `excluded_ids` has the documents that do not exist for a query."""
    columns = {"queries.id": queries.id, "queries.text": queries.text}
    for where, row in _rows(files(queries), queries.path, columns):
        query_id, text = row[queries.id], row[queries.text]
        yield query(where, str(query_id or text), query_id, text, row.get("excluded_ids"))


def _rows(sources: list[Path], path: str, columns: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and values of each row. `columns` maps settings to columns; every file is checked before any is read."""
    for file in sources:
        with _opened(file) as parquet:
            _check(file, parquet.schema_arrow, columns)
    for file in sources:
        yield from _file_rows(file, label(file, path), list(dict.fromkeys(columns.values())), "queries.id" in columns)


def _file_rows(file: Path, name: str, wanted: list[str], has_excluded: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    with _opened(file) as parquet:
        if has_excluded and "excluded_ids" in parquet.schema_arrow.names:
            wanted = [*wanted, "excluded_ids"]
        batches = parquet.iter_batches(batch_size=ROWS, columns=wanted)
        while (batch := _next_batch(batches, file, number)) is not None:
            for values in zip(*(_values(batch.column(each)) for each in wanted), strict=True):
                number += 1
                yield f"{name}:{number}", dict(zip(wanted, values, strict=True))


def _opened(file: Path) -> pq.ParquetFile:
    try:
        # Without both settings, a whole row group is held: that may be the whole file.
        return pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    except pa.ArrowInvalid as error:
        raise BadInput(f"{file}: expected a Parquet file ({error}); fetch or write it again.") from error


def _next_batch(batches: Iterator[pa.RecordBatch], file: Path, number: int) -> pa.RecordBatch | None:
    try:
        return next(batches, None)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{file}: damaged after row {number} ({error}); fetch or write it again.") from error


def _values(column: pa.Array) -> list[Any]:
    """Values as Python objects; a string that is not UTF-8 as its bytes."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_text(each) for each in column.cast(pa.large_binary()).to_pylist()]


def _text(raw: bytes | None) -> str | bytes | None:
    try:
        return raw if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


def _check(file: Path, schema: pa.Schema, columns: dict[str, str]) -> None:
    for setting, column in columns.items():
        if schema.names.count(column) != 1:
            names = ", ".join(schema.names)
            raise BadInput(f"{setting}={column}: expected one such column in {file}; name one of its columns: {names}.")
        kind = schema.field(column).type
        values = kind.value_type if pa.types.is_dictionary(kind) else kind
        is_id = setting.endswith(".id")
        if not (_is_string(values) or (is_id and pa.types.is_integer(values))):
            expected = "a string or integer" if is_id else "a string"
            raise BadInput(f"{setting}={column}: its type in {file} is {kind}; expected {expected}: name another.")


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
