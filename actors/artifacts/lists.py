"""Inverted lists of the vectors: documents that lie near one centroid stand together, for approximate search; memory-mapped.

`centroids.f32.npy` [L, d]; the rows of list l, ascending, are `list_rows.i32.npy` [N] from `list_offsets.i64.npy` [L+1] l to
l+1; `list_vectors.f16.npy` [N, d] are their vectors in the same order. A place in that order is called a position. Lists may be
empty. Centroids, assignment and the copy of the vectors are made one after the other, the last two in blocks that resume.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.artifacts.blocks import blocks_of, join_blocks, missing_spans, open_array, save_array, save_block
from actors.artifacts.store import BadArtifact

CENTROIDS = "centroids.f32.npy"
OFFSETS = "list_offsets.i64.npy"
ROWS = "list_rows.i32.npy"
VECTORS = "list_vectors.f16.npy"
PARTS = "parts"


class Lists(NamedTuple):
    centroids: NDArray[np.float32]  # [L, d]
    offsets: NDArray[np.int64]  # [L + 1]
    rows: NDArray[np.int32]  # [N] the row at every position
    vectors: NDArray[np.float16]  # [N, d] the vector at every position

    def span(self, number: int) -> slice:
        """The positions of a list."""
        return slice(int(self.offsets[number]), int(self.offsets[number + 1]))


def write(folder: Path, centroids: NDArray[np.float32], list_of: NDArray[np.int32], vectors: NDArray[np.float16]) -> None:
    """Write whole lists at once: small ones, or some that were brought. vectors: [N, d], list_of: [N] of them, by row."""
    write_centroids(folder, centroids)
    write_assignment(folder, 0, list_of)
    order(folder, len(list_of))
    write_vectors(folder, 0, vectors[unfinished_rows(folder)])
    join(folder, len(list_of))


def write_centroids(folder: Path, centroids: NDArray[np.float32]) -> None:
    """Keep the centroids [L, d]."""
    save_block(folder / PARTS, "centroids", 0, centroids.astype("<f4"))


def missing_centroids(folder: Path) -> bool:
    """Whether lists that are being made have no centroids yet."""
    return not (folder / CENTROIDS).exists() and 0 not in blocks_of(folder / PARTS, "centroids")


def unfinished_centroids(folder: Path) -> NDArray[np.float32]:
    """The centroids of lists that are being made, memory-mapped."""
    centroids: NDArray[np.float32] = open_array(blocks_of(folder / PARTS, "centroids")[0])
    return centroids


def write_assignment(folder: Path, first: int, list_of: NDArray[np.int32]) -> None:
    """Keep the list [n] of each of the rows that begin at `first`."""
    save_block(folder / PARTS, "list_of", first, list_of.astype("<i4"))


def missing_assignments(folder: Path, rows: int, step: int) -> list[tuple[int, int]]:
    """The spans of at most `step` rows whose list is not on disk yet."""
    return [] if (folder / ROWS).exists() else missing_spans(folder / PARTS, "list_of", rows, step)


def order(folder: Path, rows: int) -> None:
    """Put the rows in the order of their lists. Raises ValueError, naming the row, when assignments are missing.

    May be killed and called again at any moment. The rows come last: they mark the order as made.
    """
    if not (folder / ROWS).exists():
        centroids = unfinished_centroids(folder)
        join_blocks(folder / PARTS, "list_of", folder / PARTS / "list_of.npy", (rows,), "<i4")
        list_of = np.load(folder / PARTS / "list_of.npy")
        save_array(folder / CENTROIDS, centroids)
        save_array(folder / OFFSETS, np.cumsum([0, *np.bincount(list_of, minlength=len(centroids))]).astype("<i8"))
        save_array(folder / ROWS, np.argsort(list_of, kind="stable").astype("<i4"))


def unfinished_rows(folder: Path) -> NDArray[np.int32]:
    """The row at every position of lists that are in order and still without vectors, memory-mapped."""
    rows: NDArray[np.int32] = open_array(folder / ROWS)
    return rows


def write_vectors(folder: Path, first: int, vectors: NDArray[np.float16]) -> None:
    """Keep the vectors [n, d] of the positions that begin at `first`."""
    save_block(folder / PARTS, "vectors", first, vectors.astype("<f2"))


def missing_vectors(folder: Path, rows: int, step: int) -> list[tuple[int, int]]:
    """The spans of at most `step` positions whose vectors are not on disk yet."""
    return [] if (folder / VECTORS).exists() else missing_spans(folder / PARTS, "vectors", rows, step)


def join(folder: Path, rows: int) -> None:
    """Make one file of the vectors' blocks and remove what was only needed on the way.

    May be killed and called again at any moment. The vectors come last: they mark the lists as done.
    """
    if not (folder / VECTORS).exists():
        dimension = int(np.load(folder / CENTROIDS, mmap_mode="r").shape[1])
        join_blocks(folder / PARTS, "vectors", folder / VECTORS, (rows, dimension), "<f2")
    shutil.rmtree(folder / PARTS, ignore_errors=True)


def open_lists(folder: Path) -> Lists:
    """The four arrays, memory-mapped. Raises BadArtifact, naming the file, when they do not fit each other."""
    centroids, offsets, rows, vectors = (open_array(folder / name) for name in (CENTROIDS, OFFSETS, ROWS, VECTORS))
    for name, array, dtype, shape in (
        (CENTROIDS, centroids, "<f4", (len(offsets) - 1, vectors.shape[-1])),
        (OFFSETS, offsets, "<i8", (len(offsets),)),
        (ROWS, rows, "<i4", (int(offsets[-1]),)),
        (VECTORS, vectors, "<f2", (len(rows), vectors.shape[-1])),
    ):
        if array.dtype != dtype or array.shape != shape:
            raise BadArtifact(
                f"{folder / name}: {array.dtype} {array.shape}, expected {np.dtype(dtype)} {shape}. "
                f"Remove {folder} and run its job again."
            )
    return Lists(centroids, offsets, rows, vectors)
