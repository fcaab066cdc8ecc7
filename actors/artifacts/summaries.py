"""A concept and a summary per group, with its vector; made in parts of groups that resume.

Files: `summaries.arrow` (group int32, concept, summary, documents list<int64>: the rows that were shown, outcome; uncompressed,
read at random by group through a memory map), `summary_vectors.f16.npy` [M, d] float16, L2-normalised.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from actors.artifacts.blocks import blocks_of, join_blocks, missing_spans, open_array, save_block, write_bytes

VECTORS = "summary_vectors.f16.npy"
TABLE = "summaries.arrow"
BROUGHT = "brought.arrow"  # of a draft
BATCH = 4096  # groups of a record batch: what one random read maps
SCHEMA = pa.schema(
    [
        ("group", pa.int32()),
        ("concept", pa.string()),
        ("summary", pa.string()),
        ("documents", pa.list_(pa.int64())),
        ("outcome", pa.string()),
    ]
)


@dataclass(frozen=True)
class Summary:
    """What the navigator and a person read of a group. outcome: how it came to be, for example "extractive"."""

    group: int
    concept: str
    summary: str
    documents: tuple[int, ...]
    outcome: str

    @property
    def text(self) -> str:
        """What is embedded and what a navigator is shown."""
        return f"{self.concept}\n{self.summary}"


def write_part(folder: Path, summaries: list[Summary], vectors: NDArray[np.float32]) -> None:
    """Keep the summaries of consecutive groups. The vectors come last: they mark the part as done."""
    (folder / "parts").mkdir(exist_ok=True)
    first = summaries[0].group
    sink = pa.BufferOutputStream()
    pq.write_table(_table(summaries), sink)
    write_bytes(folder / "parts" / f"summaries@{first:012d}.parquet", sink.getvalue().to_pybytes())
    save_block(folder / "parts", "vectors", first, vectors.astype(np.float16))


def write_brought(folder: Path, table: pa.Table) -> None:
    """Keep what was brought for a draft: concept and summary, a line for each group, null where there is none."""
    (folder / "parts").mkdir(exist_ok=True)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    write_bytes(folder / "parts" / BROUGHT, sink.getvalue().to_pybytes())


def open_brought(folder: Path) -> pa.Table:
    """The table of `write_brought`, memory-mapped."""
    return pa.ipc.open_file(pa.memory_map(str(folder / "parts" / BROUGHT))).read_all()


class GroupJournal:
    """The descriptions of a part's groups that were paid for: one line each, and what every answer took, usable or not."""

    def __init__(self, folder: Path, first: int) -> None:
        """first: the part's first group. A line that was torn by a kill is done again."""
        (folder / "parts").mkdir(exist_ok=True)
        self._path = folder / "parts" / f"groups@{first:012d}.jsonl"
        self.done: dict[int, Summary] = {}
        whole = _whole_lines(self._path)
        if self._path.exists():
            with self._path.open("r+b") as file:
                file.truncate(sum(map(len, whole)))
        for line in map(json.loads, whole):
            if line["good"]:
                kept = line["summary"]
                self.done[line["group"]] = Summary(**(kept | {"documents": tuple(kept["documents"])}))

    def add(self, summary: Summary, usage: Mapping[str, int], good: bool) -> None:
        """Keep one group's answer. good: whether it need not be asked for again."""
        line = {"group": summary.group, "good": good, "usage": usage, "summary": vars(summary)}
        with self._path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")


def outcomes_so_far(folder: Path) -> dict[str, int]:
    """How many summaries of the parts that are there have each outcome."""
    tables = [pq.read_table(path, columns=["outcome"]) for path in sorted((folder / "parts").glob("summaries@*.parquet"))]
    return dict(Counter(outcome for table in tables for outcome in table.column(0).to_pylist()))


def forget(folder: Path, outcome: str) -> None:
    """Undo the parts in which a summary has this outcome: the next run makes them again, from their journals."""
    for path in sorted((folder / "parts").glob("summaries@*.parquet")):
        if outcome in pq.read_table(path, columns=["outcome"]).column(0).to_pylist():
            first = path.stem.split("@")[1]
            (folder / "parts" / f"vectors@{first}.npy").unlink(missing_ok=True)
            path.unlink()


def usage_so_far(folder: Path) -> dict[str, int]:
    """Counters of all answers of the parts that are there, over all starts of the job."""
    usage: Counter[str] = Counter()
    for path in sorted((folder / "parts").glob("groups@*.jsonl")):
        for line in _whole_lines(path):
            usage.update(json.loads(line)["usage"])
    return dict(usage)


def _whole_lines(path: Path) -> list[bytes]:
    """A journal's lines but one that a kill tore; none where there is no journal."""
    return [line for line in path.read_bytes().splitlines(True) if line.endswith(b"\n")] if path.exists() else []


def missing_parts(folder: Path, groups: int, step: int) -> list[tuple[int, int]]:
    """The spans of at most `step` groups that are not on disk yet."""
    return [] if (folder / TABLE).exists() else missing_spans(folder / "parts", "vectors", groups, step)


def join(folder: Path, groups: int) -> dict[str, int]:
    """Make one table and one array of all parts and remove them. Returns how many summaries had each outcome."""
    parts = folder / "parts"
    if not (folder / TABLE).exists():
        blocks = blocks_of(parts, "vectors")
        dimension = int(np.load(next(iter(blocks.values())), mmap_mode="r").shape[1]) if blocks else 0
        join_blocks(parts, "vectors", folder / VECTORS, (groups, dimension), "<f2")
        beside = folder / (TABLE + ".new")
        with beside.open("wb") as file:
            with pa.ipc.new_file(file, SCHEMA) as writer:
                for batch in _batches(parts / f"summaries@{first:012d}.parquet" for first in blocks):
                    writer.write_batch(batch)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(folder / TABLE)
    shutil.rmtree(parts, ignore_errors=True)
    return Summaries(folder).outcomes()


def _batches(paths: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    """The lines of the parts in batches of BATCH, but for the last, whatever the parts' sizes; some parts in memory at a time."""
    waiting = _table([])
    for path in paths:
        waiting = pa.concat_tables([waiting, pq.read_table(path)])
        whole = waiting.num_rows - waiting.num_rows % BATCH
        for first in range(0, whole, BATCH):
            yield _one_batch(waiting.slice(first, BATCH))
        waiting = waiting.slice(whole)
    if waiting.num_rows:
        yield _one_batch(waiting)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """A copy that holds nothing but these lines."""
    return pa.record_batch([pa.concat_arrays(column.chunks) for column in table.columns], schema=SCHEMA)


def _table(summaries: list[Summary]) -> pa.Table:
    columns = [[s.group for s in summaries], [s.concept for s in summaries], [s.summary for s in summaries],
               [list(s.documents) for s in summaries], [s.outcome for s in summaries]]  # fmt: skip
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


class Summaries:
    """Summaries on disk, by group. Nothing is read until it is asked for; texts stay in the memory map."""

    def __init__(self, folder: Path) -> None:
        self._file = pa.ipc.open_file(pa.memory_map(str(folder / TABLE)))
        self.vectors: NDArray[np.float16] = open_array(folder / VECTORS)
        self._columns = functools.lru_cache(maxsize=1024)(lambda number: self._file.get_batch(number).columns)
        batches = self._file.num_record_batches
        self._length = (batches - 1) * BATCH + self._file.get_batch(batches - 1).num_rows if batches else 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, group: int) -> Summary:
        if not 0 <= group < self._length:
            raise IndexError(f"group {group}: expected 0 to {self._length - 1}")
        line = group % BATCH
        number, concept, summary, documents, outcome = (column[line].as_py() for column in self._columns(group // BATCH))
        return Summary(number, concept, summary, tuple(documents), outcome)

    def outcomes(self) -> dict[str, int]:
        """How many summaries have each outcome."""
        counted: Counter[str] = Counter()
        for number in range(self._file.num_record_batches):
            counted.update(self._file.get_batch(number).column("outcome").to_pylist())
        return dict(counted)


def open_summaries(folder: Path) -> Summaries:
    """Open a finished summaries artifact."""
    return Summaries(folder)
