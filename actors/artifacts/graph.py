"""The corpus graph: every document's nearest neighbours, memory-mapped; made in blocks of rows that resume.

`neighbours.i32.npy` [N, k] nearest first, the document itself excluded, -1 where fewer; `similarities.f16.npy` [N, k]
the inner products, 0.0 where fewer.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.artifacts.blocks import forget_torn, join_blocks, missing_spans, open_array, save_block
from actors.artifacts.store import BadArtifact

NEIGHBOURS = "neighbours.i32.npy"
SIMILARITIES = "similarities.f16.npy"


class Graph(NamedTuple):
    neighbours: NDArray[np.int32]  # [N, k]
    similarities: NDArray[np.float16]  # [N, k]


def write(folder: Path, neighbours: NDArray[np.int32], similarities: NDArray[np.float16]) -> None:
    """Write a whole graph at once: a small one, or one that was brought."""
    write_block(folder, 0, neighbours, similarities)
    join(folder, *neighbours.shape)


def write_block(folder: Path, first: int, neighbours: NDArray[np.int32], similarities: NDArray[np.float16]) -> None:
    """Keep the rows that begin at `first`, both arrays [n, k]. The neighbours come last: they mark the block as done."""
    if neighbours.ndim != 2 or neighbours.shape != similarities.shape:
        raise ValueError(
            f"block at row {first}: neighbours {neighbours.shape} and similarities {similarities.shape}, "
            "expected the same [n, k] for both"
        )
    save_block(folder / "blocks", "similarities", first, similarities.astype("<f2"))
    save_block(folder / "blocks", "neighbours", first, neighbours.astype("<i4"))


def missing_blocks(folder: Path, rows: int, step: int) -> list[tuple[int, int]]:
    """The spans (first, last) of at most `step` rows that are still to be written; `step` may change between attempts."""
    return [] if (folder / NEIGHBOURS).exists() else missing_spans(folder / "blocks", "neighbours", rows, step)


def join(folder: Path, rows: int, k: int) -> None:
    """Make the two files of all blocks, then remove the blocks. Raises ValueError when rows are missing.

    May be killed and called again at any moment. The neighbours come last: they mark the join as done.
    """
    blocks = folder / "blocks"
    if not (folder / NEIGHBOURS).exists():
        forget_torn(blocks, ("similarities", "neighbours"))
        join_blocks(blocks, "similarities", folder / SIMILARITIES, (rows, k), "<f2")
        join_blocks(blocks, "neighbours", folder / NEIGHBOURS, (rows, k), "<i4")
    shutil.rmtree(blocks, ignore_errors=True)


def open_graph(folder: Path) -> Graph:
    """Both arrays, memory-mapped. Raises BadArtifact, naming the file, when they do not fit each other."""
    neighbours, similarities = (open_array(folder / name) for name in (NEIGHBOURS, SIMILARITIES))
    for name, array, dtype in ((NEIGHBOURS, neighbours, "<i4"), (SIMILARITIES, similarities, "<f2")):
        if array.dtype != dtype or array.ndim != 2 or array.shape != neighbours.shape:
            raise BadArtifact(
                f"{folder / name}: {array.dtype} {array.shape}, expected {np.dtype(dtype)} of the shape "
                f"{neighbours.shape}. Remove {folder} and run its job again."
            )
    return Graph(neighbours, similarities)
