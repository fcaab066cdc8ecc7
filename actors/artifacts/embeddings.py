"""Document vectors: `vectors.f16.npy` [N, d] float16, L2-normalised, memory-mapped; made in parts that resume."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.artifacts.blocks import blocks_of, join_blocks, missing_spans, open_array, save_block, write_bytes

VECTORS = "vectors.f16.npy"
USAGE = "usage.json"  # tokens, truncated and empty texts


def write_part(folder: Path, first: int, vectors: NDArray[np.float32], usage: dict[str, int]) -> None:
    """Keep the vectors of the rows that begin at `first` and what making them took. The vectors come last: they mark
    the part as done.
    """
    (folder / "parts").mkdir(exist_ok=True)
    write_bytes(folder / "parts" / f"usage@{first:012d}.json", json.dumps(usage).encode())
    save_block(folder / "parts", "vectors", first, vectors.astype(np.float16))


def missing_parts(folder: Path, rows: int, step: int) -> list[tuple[int, int]]:
    """The spans of at most `step` rows whose vectors are not on disk yet."""
    return [] if (folder / VECTORS).exists() else missing_spans(folder / "parts", "vectors", rows, step)


def join(folder: Path, rows: int) -> dict[str, int]:
    """Make one file of all parts and remove them. Returns the usage summed over the parts and the dimension.

    May be killed and called again at any moment. The vectors come last: they mark the join as done.
    """
    parts = folder / "parts"
    if not (folder / VECTORS).exists():
        blocks = blocks_of(parts, "vectors")
        total = {"dimension": int(np.load(next(iter(blocks.values())), mmap_mode="r").shape[1]) if blocks else 0}
        for first in blocks:  # a usage without vectors is a part whose writer was killed halfway
            for key, number in json.loads((parts / f"usage@{first:012d}.json").read_text()).items():
                total[key] = total.get(key, 0) + number
        write_bytes(folder / USAGE, json.dumps(total, sort_keys=True).encode())
        join_blocks(parts, "vectors", folder / VECTORS, (rows, total["dimension"]), "<f2")
    shutil.rmtree(parts, ignore_errors=True)
    usage: dict[str, int] = json.loads((folder / USAGE).read_text())
    return usage


def open_vectors(folder: Path) -> NDArray[np.float16]:
    """[N, d] float16, memory-mapped."""
    vectors: NDArray[np.float16] = open_array(folder / VECTORS)
    return vectors
