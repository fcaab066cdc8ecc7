"""Arrays that are made block by block: each block is on disk whole or not at all, and the blocks become one file at the end.

This is how a stage resumes: what is on disk is done, whoever made it and whenever the job was killed.
"""

from __future__ import annotations

import io
import os
import socket
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    beside = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")  # two nodes may retry one block
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def save_block(folder: Path, name: str, first: int, block: NDArray[Any]) -> None:
    """Keep the rows of `name` that begin at `first`."""
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(block))
    write_bytes(folder / f"{name}@{first:012d}.npy", buffer.getvalue())


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an .npy file so that it is there whole or not at all, without holding it twice."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        np.save(file, array)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def blocks_of(folder: Path, name: str) -> dict[int, Path]:
    """First row -> file of the blocks of `name` that are on disk, in row order."""
    return {int(p.stem.split("@")[1]): p for p in sorted(folder.glob(f"{name}@*.npy"))}


def load_block(folder: Path, name: str, first: int) -> NDArray[Any]:
    """One block that is on disk, memory-mapped."""
    return open_array(blocks_of(folder, name)[first])


def missing_spans(folder: Path, name: str, rows: int, step: int) -> list[tuple[int, int]]:
    """The spans (first, last) of at most `step` rows that are not on disk yet, whatever step the blocks there were made with."""
    spans: list[tuple[int, int]] = []
    row = 0
    for first, path in [*blocks_of(folder, name).items(), (rows, None)]:
        spans += [(start, min(start + step, first)) for start in range(row, first, step)]
        row = first if path is None else first + len(np.load(path, mmap_mode="r"))
    return spans


def forget_torn(folder: Path, names: tuple[str, ...]) -> None:
    """Of arrays whose blocks are saved together, the last of `names` as the mark: remove those that have no mark.

    Their writer was killed halfway, and their rows came again in blocks of another length.
    """
    done = blocks_of(folder, names[-1]).keys()
    for name in names[:-1]:
        for first, path in blocks_of(folder, name).items():
            if first not in done:
                path.unlink()


def join_blocks(folder: Path, name: str, target: Path, shape: tuple[int, ...], dtype: str) -> None:
    """Write all blocks of `name` into one .npy file. Raises ValueError, naming the row, when rows are missing.

    The blocks stay: remove their folder once every array of the artifact is joined.
    """
    beside = target.with_name(target.name + ".new")
    whole = np.lib.format.open_memmap(beside, mode="w+", dtype=dtype, shape=shape)
    row = 0
    for first, path in blocks_of(folder, name).items():
        block = np.load(path, mmap_mode="r")
        if first != row:
            raise ValueError(f"{path}: rows {row} to {first} of {name} are missing. Remove {folder} and run the job again.")
        whole[first : first + len(block)] = block
        row += len(block)
    if row != shape[0]:
        raise ValueError(f"{folder}: {name} ends at row {row}, expected {shape[0]} rows. Remove it and run the job again.")
    whole.flush()
    del whole
    beside.replace(target)


def open_array(path: Path) -> NDArray[Any]:
    """A memory-mapped .npy file as a plain array: slicing np.memmap itself costs microseconds each time."""
    return np.asarray(np.load(path, mmap_mode="r"))
