"""A lexicon while it is built, below its draft's `shards/`: what was read of spans of rows, and what becomes of it.

Every array is a block (`blocks`). Read of a shard and named by its first row: `term_offsets`, `term_bytes`, `frequency`,
`pair_terms`, `pair_counts`, `row_pairs`, `lengths`; learnt from all shards: `ids`; by term: `turned_rows`, `turned_weights`.
Of the finished arrays, named by the first pair: `forward_terms`, `forward_weights`, `posting_rows`, `posting_weights`.
The last of each of these lists marks its block as done. Fields of a row or a term are int32, all offsets int64.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from actors.artifacts.blocks import blocks_of, forget_torn, join_blocks, missing_spans, open_array, save_block
from actors.artifacts.lexicon import FILES

FOLDER = "shards"
READ = ("term_offsets", "term_bytes", "frequency", "pair_terms", "pair_counts", "row_pairs", "lengths")
IDS = "ids"
TURNED = ("turned_rows", "turned_weights")
FORWARD = ("forward_terms", "forward_weights")
POSTINGS = ("posting_rows", "posting_weights")


def save(draft: Path, names: Iterable[str], first: int, arrays: Iterable[NDArray[Any]]) -> None:
    """Keep one block of each of these arrays, the marker last."""
    for name, values in zip(names, arrays, strict=True):
        save_block(draft / FOLDER, name, first, values)


def array(draft: Path, name: str, first: int) -> NDArray[Any]:
    """One block, memory-mapped."""
    return open_array(path_of(draft, name, first))


def path_of(draft: Path, name: str, first: int) -> Path:
    """The file of a block."""
    return draft / FOLDER / f"{name}@{first:012d}.npy"


def firsts(draft: Path, names: tuple[str, ...]) -> list[int]:
    """The first rows, or pairs, of the blocks that are done, ascending."""
    return list(blocks_of(draft / FOLDER, names[-1]))


def missing(draft: Path, names: tuple[str, ...], size: int, step: int) -> list[tuple[int, int]]:
    """The spans (first, last) of at most `step` rows, or pairs, that are not done yet."""
    return missing_spans(draft / FOLDER, names[-1], size, step)


def joined(draft: Path, names: tuple[str, ...]) -> bool:
    """Whether these arrays are in their final place."""
    return (draft / FILES[names[-1]]).exists()


def join(draft: Path, names: tuple[str, ...], pairs: int, obsolete: tuple[str, ...]) -> None:
    """Make the final file of each of these arrays, then remove their blocks and those of `obsolete`.

    May be killed and called again at any moment. Raises ValueError when pairs are missing.
    """
    folder = draft / FOLDER
    if not joined(draft, names):
        forget_torn(folder, names)
        for name in names:
            join_blocks(folder, name, draft / FILES[name], (pairs,), "<f4" if name.endswith("weights") else "<i4")
    for name in (*names, *obsolete):
        for path in blocks_of(folder, name).values():
            path.unlink()


def remove(draft: Path) -> None:
    """End with the shards."""
    shutil.rmtree(draft / FOLDER, ignore_errors=True)
