"""The groups of a corpus, memory-mapped: the group of every document, and the documents of every group.

`group_of.i32.npy` [N]; the rows of group g, ascending, are `member_rows.i32.npy` [N] from `member_offsets.i64.npy` [G+1]
g to g+1. Group ids are 0..G-1 and no group is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actors.artifacts.blocks import open_array
from actors.artifacts.store import BadArtifact

GROUP_OF = "group_of.i32.npy"
OFFSETS = "member_offsets.i64.npy"
ROWS = "member_rows.i32.npy"


@dataclass(frozen=True)
class Groups:
    group_of: NDArray[np.int32]  # [N]
    member_offsets: NDArray[np.int64]  # [G + 1]
    member_rows: NDArray[np.int32]  # [N]

    @property
    def count(self) -> int:
        """G, the number of groups."""
        return len(self.member_offsets) - 1

    def members(self, group: int) -> NDArray[np.int32]:
        """The group's rows, ascending; a view."""
        return self.member_rows[self.member_offsets[group] : self.member_offsets[group + 1]]


def write(folder: Path, group_of: NDArray[np.int32]) -> None:
    """Write the three files of one group id per document. Raises ValueError unless the ids are 0..G-1, each of them used."""
    size = np.bincount(group_of) if len(group_of) and group_of.min() >= 0 else np.zeros(1, np.int64)
    if not size.all():
        raise ValueError(
            f"group_of of {len(group_of)} documents: expected ids from 0 without gaps, found "
            f"{int((size == 0).sum())} unused or some below 0; renumber the groups"
        )
    np.save(folder / OFFSETS, np.concatenate([[0], np.cumsum(size)]).astype("<i8"))
    np.save(folder / ROWS, np.argsort(group_of, kind="stable").astype("<i4"))
    np.save(folder / GROUP_OF, group_of.astype("<i4"))


def open_groups(folder: Path) -> Groups:
    """The three arrays, memory-mapped. Raises BadArtifact, naming the file, when they do not fit each other."""
    group_of, offsets, rows = (open_array(folder / name) for name in (GROUP_OF, OFFSETS, ROWS))
    for name, array, dtype, length in (
        (GROUP_OF, group_of, "<i4", len(rows)),
        (OFFSETS, offsets, "<i8", len(offsets)),
        (ROWS, rows, "<i4", int(offsets[-1])),
    ):
        if array.dtype != dtype or array.shape != (length,):
            raise BadArtifact(
                f"{folder / name}: {array.dtype} {array.shape}, expected {np.dtype(dtype)} ({length},). "
                f"Remove {folder} and run its job again."
            )
    return Groups(group_of, offsets, rows)
