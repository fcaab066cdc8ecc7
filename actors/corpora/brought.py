"""What was made elsewhere and is brought in place of an artifact: vectors, neighbours, groups, summaries. Read, checked and put
into our form, a block at a time where it is large.

Row i of an array is document i of the corpus. Everything that does not fit raises BadInput with the key, the file, what was
expected and what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from actors.corpora.lines import existing
from actors.corpora.records import BadInput

TOLERANCE = 2e-3  # from length 1: what float16 takes from a vector
LINES = 256  # documents whose neighbours' vectors are held at once
NONE = -1  # where a neighbour or a group would stand
TSV = pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False)  # an id may hold quotes


class Units(NamedTuple):
    """vectors: float32 [n, d], L2-normalised. scaled: how many of them were not."""

    vectors: NDArray[np.float32]
    scaled: int


def array(key: str, path: str, shape: tuple[int | None, ...], kind: str) -> NDArray[Any]:
    """A memory-mapped .npy file. shape: of which None may be anything from 1. kind: "floating" or "integer" numbers."""
    file = existing(key, path)
    try:
        found = np.load(file, mmap_mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise BadInput(f"{key}={path}: no .npy file of numbers ({error}). Write it with numpy.save.") from None
    wanted = f"{kind} numbers [{', '.join('any' if n is None else f'{n:,}' for n in shape)}]"
    fits = len(found.shape) == len(shape) and all(
        n == m if m is not None else n > 0 for n, m in zip(found.shape, shape, strict=False)
    )
    if not fits or not np.issubdtype(found.dtype, getattr(np, kind)):
        raise BadInput(
            f"{key}={path}: {found.dtype} {found.shape}; expected {wanted}, a line for each document of the corpus in its order. "
            "Bring the array that was made of this corpus."
        )
    return found


def vectors(path: str, rows: int) -> NDArray[np.floating[Any]]:
    """[N, d] floating, as they are in the file."""
    return array("embeddings.path", path, (rows, None), "floating")


def units(block: NDArray[np.floating[Any]], first: int, path: str, key: str = "embeddings.path") -> Units:
    """The vectors of the rows that begin at `first`, of length 1."""
    found = block.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", found, found, dtype=np.float64))
    bad = ~np.isfinite(lengths) | (lengths == 0)
    if bad.any():
        row = int(bad.argmax())
        what = "is 0" if lengths[row] == 0 else "holds a value that is not finite"
        raise BadInput(f"{key}={path}: the vector of row {first + row} {what}; expected a direction. Embed that text again.")
    scaled = int((np.abs(lengths - 1) > TOLERANCE).sum())
    return Units((found / lengths[:, None]).astype(np.float32), scaled)


def neighbours(path: str, rows: int, k: int) -> NDArray[np.integer[Any]]:
    """[N, k or more] integers, as they are in the file."""
    found: NDArray[np.integer[Any]] = array("graph.path", path, (rows, None), "integer")
    if found.shape[1] < k:
        raise BadInput(
            f"graph.path={path}: {found.shape[1]} neighbours for each document; expected at least graph.k={k}. "
            f"Set graph.k={found.shape[1]}, or bring more."
        )
    return found


def similarities(path: str, shape: tuple[int, int]) -> NDArray[np.floating[Any]]:
    """The similarities of brought neighbours, as they are in the file."""
    return array("graph.similarities", path, shape, "floating")


class Edges(NamedTuple):
    """neighbours: int32 [n, k], NONE at the end of a line with fewer. places: [n, k] the columns they had in the file."""

    neighbours: NDArray[np.int32]
    places: NDArray[np.int64]


def edges(block: NDArray[np.integer[Any]], first: int, rows: int, k: int, path: str) -> Edges:
    """The first k neighbours of each document from `first` on, in the file's order; the document itself is left out."""
    near = block.astype(np.int64)
    outside = (near < NONE) | (near >= rows)
    if outside.any():
        line, column = np.argwhere(outside)[0]
        raise BadInput(
            f"graph.path={path}: row {first + line} has the neighbour {near[line, column]}; expected rows of the corpus, 0 to "
            f"{rows - 1:,}, or -1 for none. Bring the graph of this corpus."
        )
    near[near == np.arange(first, first + len(near))[:, None]] = NONE
    ordered = np.sort(near, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NONE)
    if twice.any():
        line, column = np.argwhere(twice)[0]
        raise BadInput(
            f"graph.path={path}: row {first + line} has the neighbour {ordered[line, column]} twice; expected different ones. "
            "Leave one of them out and end the line with -1."
        )
    places = np.argsort(near == NONE, axis=1, kind="stable")[:, :k]
    return Edges(np.take_along_axis(near, places, axis=1).astype(np.int32), places)


def cosines(edges: NDArray[np.int32], first: int, vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """[n, k] inner products of each document from `first` on with its neighbours; 0 where there is none."""
    found = np.empty(edges.shape, np.float32)
    for start in range(0, len(edges), LINES):
        near = edges[start : start + LINES]
        own = vectors[first + start : first + start + len(near)].astype(np.float32)
        found[start : start + LINES] = np.einsum("nkd,nd->nk", vectors[near].astype(np.float32), own)
    return np.where(edges == NONE, np.float32(0.0), found)


def taken(values: NDArray[np.floating[Any]], edges: Edges, first: int, path: str) -> NDArray[np.float32]:
    """[n, k] the similarities in the file of these edges; 0 where there is none."""
    found = np.take_along_axis(values.astype(np.float32), edges.places, axis=1)
    found[edges.neighbours == NONE] = 0.0
    if not np.isfinite(found).all():
        line = int((~np.isfinite(found)).any(axis=1).argmax())
        raise BadInput(
            f"graph.similarities={path}: row {first + line} holds a value that is not finite. Leave the file out: similarities are "
            "then those of the vectors."
        )
    return found


class Membership(NamedTuple):
    """group_of: int32 [N]. alone: documents without a group, each now one of its own. unknown: ids that the corpus has not."""

    group_of: NDArray[np.int32]
    alone: int
    unknown: int


def membership(path: str, doc_ids: pa.ChunkedArray, rows: int) -> Membership:
    """The group of every document, from an array by row or a table by id. doc_ids: of the corpus, in its order."""
    unknown = 0
    if Path(path).suffix == ".npy":
        given = array("groups.path", path, (rows,), "integer").astype(np.int64)
    else:
        names, groups = _columns("groups.path", path, {"doc_id": pa.string(), "group": pa.int64()})
        _check_different("groups.path", path, "doc_id", names)
        place = pc.index_in(doc_ids, value_set=names)
        unknown = len(names) - (len(place) - place.null_count)
        if unknown == len(names):
            held = doc_ids[0].as_py() if len(doc_ids) else None
            raise BadInput(f"groups.path={path}: none of its documents is in the corpus, which holds {held!r}. Mend the ids.")
        given = pc.fill_null(pc.take(groups, place), NONE).to_numpy().astype(np.int64)
    if len(given) and given.min() < NONE:
        raise BadInput(f"groups.path={path}: the group {given.min()}; expected numbers from 0, or -1 for none.")
    used = np.bincount(given[given >= 0]) if len(given) else np.zeros(0, np.int64)
    if not used.all():
        raise BadInput(
            f"groups.path={path}: no document is in group {int((used == 0).argmax())}, and groups go up to {len(used) - 1}; "
            "expected numbers without gaps. Renumber them: numpy.unique(groups, return_inverse=True)[1]."
        )
    alone = np.flatnonzero(given == NONE)
    given[alone] = len(used) + np.arange(len(alone))
    return Membership(given.astype(np.int32), len(alone), unknown)


def summaries(path: str, groups: int) -> pa.Table:
    """A line for each group in order, with concept and summary, both null for a group that the file lacks."""
    kinds = {"group": pa.int64(), "concept": pa.string(), "summary": pa.string()}
    group, concept, summary = _columns("summaries.path", path, kinds)
    _check_different("summaries.path", path, "group", group)
    span = pc.min_max(group).as_py()
    if len(group) and not 0 <= span["min"] <= span["max"] < groups:
        wrong = span["max"] if span["min"] >= 0 else span["min"]
        raise BadInput(
            f"summaries.path={path}: the group {wrong}; expected 0 to {groups - 1:,}. Bring the summaries of these groups."
        )
    for name, column in (("concept", concept), ("summary", summary)):
        blank = pc.equal(pc.utf8_trim_whitespace(column), "")
        if pc.any(blank).as_py():
            number = pc.filter(group, blank)[0].as_py()
            raise BadInput(f"summaries.path={path}: group {number} has an empty {name}. Leave its line out: a stand-in is made.")
    place = pc.index_in(pa.array(range(groups), pa.int64()), value_set=group)
    return pa.table({"concept": pc.take(concept, place), "summary": pc.take(summary, place)})


def question_vectors(path: str) -> tuple[list[str], NDArray[np.float32]]:
    """Texts of questions, and [n, d] float32 their vectors, L2-normalised: a Parquet file of text and vector."""
    key = "embeddings.queries"
    texts, vectors = _columns(key, path, {"text": pa.string(), "vector": pa.list_(pa.float32())})
    lengths = pc.unique(pc.list_value_length(vectors)).to_pylist()
    if len(lengths) != 1:
        raise BadInput(f"{key}={path}: vectors of {sorted(lengths)} values; expected a line or more, all of one dimension.")
    block = pc.list_flatten(vectors).to_numpy().reshape(len(texts), lengths[0])
    return [text.strip() for text in texts.to_pylist()], units(block, 0, path, key).vectors


def _columns(key: str, path: str, kinds: dict[str, pa.DataType]) -> list[pa.ChunkedArray]:
    """Columns of a Parquet file, or of a TAB-separated file with a header line; without null."""
    file = existing(key, path)
    expected = f"Expected {', '.join(kinds)}, in Parquet or separated by TABs below a header line."
    try:
        if file.suffix == ".parquet":
            table = pq.read_table(file, columns=[n for n in kinds if n in pq.read_schema(file).names])
        else:
            options = pyarrow.csv.ConvertOptions(column_types=kinds, strings_can_be_null=False)
            table = pyarrow.csv.read_csv(file, parse_options=TSV, convert_options=options)
        columns = [table.column(name).cast(kind) for name, kind in kinds.items()]
    except KeyError as missing:
        raise BadInput(f"{key}={path}: {missing.args[0]}; found {', '.join(table.column_names)}. {expected}") from None
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{key}={path}: {error}. {expected}") from None
    for name, column in zip(kinds, columns, strict=True):
        if column.null_count:
            raise BadInput(f"{key}={path}: {column.null_count:,} values of {name} are empty. {expected}")
    return columns


def _check_different(key: str, path: str, name: str, column: pa.ChunkedArray) -> None:
    if pc.count_distinct(column).as_py() < len(column):
        counted = pc.value_counts(column)
        twice = counted.filter(pc.greater(counted.field("counts"), 1))[0]["values"].as_py()
        raise BadInput(f"{key}={path}: {name} {twice!r} is there more than once. Keep one of its lines.")
