"""The corpus: documents in row order, as Arrow files that are streamed by the stages and read at random by row through a memory
map.

Files: `documents-00000.arrow`, ... (row int64, doc_id string, text string), `refused.parquet` (where, reason, excerpt).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BATCH = 4096  # rows of a record batch: what one random read maps
PART = 64  # record batches in one file
SCHEMA = pa.schema([("row", pa.int64()), ("doc_id", pa.string()), ("text", pa.string())])
REFUSED = pa.schema([("where", pa.string()), ("reason", pa.string()), ("excerpt", pa.string())])


def write(folder: Path, documents: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Write (doc_id, text) pairs in row order, holding one batch at a time. Returns counts: documents, characters."""
    count = characters = 0
    writer: pa.RecordBatchFileWriter | None = None
    for ids, texts in _batches(documents):
        if count % (BATCH * PART) == 0:
            if writer is not None:
                writer.close()
            writer = pa.ipc.new_file(str(folder / f"documents-{count // (BATCH * PART):05d}.arrow"), SCHEMA)
        assert writer is not None
        rows = pa.array(range(count, count + len(ids)), pa.int64())
        writer.write_batch(pa.record_batch([rows, pa.array(ids, pa.string()), pa.array(texts, pa.string())], schema=SCHEMA))
        count += len(ids)
        characters += sum(map(len, texts))
    if writer is not None:
        writer.close()
    return {"documents": count, "characters": characters}


def write_refused(folder: Path, refused: Iterable[tuple[str, str, str]]) -> None:
    """Keep every record that was refused: (where, reason, excerpt)."""
    columns = [list(column) for column in zip(*refused, strict=True)] or [[], [], []]
    pq.write_table(pa.table([pa.array(c, pa.string()) for c in columns], schema=REFUSED), folder / "refused.parquet")


def _batches(documents: Iterable[tuple[str, str]]) -> Iterator[tuple[list[str], list[str]]]:
    ids: list[str] = []
    texts: list[str] = []
    for doc_id, text in documents:
        ids.append(doc_id)
        texts.append(text)
        if len(ids) == BATCH:
            yield ids, texts
            ids, texts = [], []
    if ids:
        yield ids, texts


class Corpus:
    """A corpus on disk. Nothing is read until it is asked for; texts stay in the memory map."""

    def __init__(self, folder: Path) -> None:
        self._files = [pa.ipc.open_file(pa.memory_map(str(p))) for p in sorted(folder.glob("documents-*.arrow"))]
        self._length = 0
        if self._files:  # every batch but the last is full
            batches = self._files[-1].num_record_batches - 1
            self._length = ((len(self._files) - 1) * PART + batches) * BATCH + self._files[-1].get_batch(batches).num_rows
        self._batch = functools.lru_cache(maxsize=1024)(self._read_batch)

    def __len__(self) -> int:
        return self._length

    def doc_id(self, row: int) -> str:
        """The string id of a row."""
        doc_id: str = self._batch(row // BATCH).column(1)[row % BATCH].as_py()
        return doc_id

    def text(self, row: int) -> str:
        """The text of a row, its title joined."""
        return str(self._batch(row // BATCH).column(2)[row % BATCH])

    def texts(self, first: int = 0, last: int | None = None) -> Iterator[str]:
        """The texts of rows first..last in row order, one batch in memory at a time."""
        end = self._length if last is None else min(last, self._length)
        while first < end:
            start = first % BATCH
            batch = self._read_batch(first // BATCH).column(2).slice(start, end - first)
            yield from batch.to_pylist()
            first += len(batch)

    def rows_of(self, doc_ids: Iterable[str]) -> dict[str, int]:
        """Rows of the ids that exist; the others are left out. Scans the id column once."""
        wanted = pa.array(sorted(set(doc_ids)), pa.string())
        rows: dict[str, int] = {}
        for number in range(-(-self._length // BATCH)) if len(wanted) else ():
            batch = self._read_batch(number)
            found = batch.filter(pc.is_in(batch.column(1), value_set=wanted))
            rows.update(zip(found.column(1).to_pylist(), found.column(0).to_pylist(), strict=True))
        return rows

    def _read_batch(self, number: int) -> pa.RecordBatch:
        return self._files[number // PART].get_batch(number % PART)


def open_corpus(folder: Path) -> Corpus:
    """Open a finished corpus artifact's documents."""
    return Corpus(folder)
