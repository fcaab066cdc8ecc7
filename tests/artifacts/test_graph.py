from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.artifacts import graph
from actors.artifacts.store import BadArtifact

ROWS, K = 10, 3
NEIGHBOURS = np.random.default_rng(0).integers(-1, ROWS, (ROWS, K)).astype(np.int32)
SIMILARITIES = np.random.default_rng(1).random((ROWS, K)).astype(np.float16)


class Killed(BaseException):
    """Not an Exception, as a kill is none: no handler in between may swallow it."""


def build(folder: Path, step: int) -> None:
    """What a job does, first time and again."""
    for first, last in reversed(graph.missing_blocks(folder, ROWS, step)):
        graph.write_block(folder, first, NEIGHBOURS[first:last], SIMILARITIES[first:last])
    graph.join(folder, ROWS, K)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_written_by_blocks_reads_back_memory_mapped(tmp_path: Path) -> None:
    build(tmp_path, 4)
    opened = graph.open_graph(tmp_path)
    assert isinstance(opened.neighbours.base, np.memmap)
    assert not opened.neighbours.flags.writeable
    np.testing.assert_array_equal(opened.neighbours, NEIGHBOURS)
    np.testing.assert_array_equal(opened.similarities, SIMILARITIES)
    assert (opened.neighbours.dtype, opened.similarities.dtype) == (np.int32, np.float16)
    assert set(files(tmp_path)) == {"neighbours.i32.npy", "similarities.f16.npy"}


def test_same_bytes_whatever_the_blocks(tmp_path: Path) -> None:
    graph.write(tmp_path / "whole", NEIGHBOURS, SIMILARITIES)
    build(tmp_path / "blocks", 3)
    assert files(tmp_path / "whole") == files(tmp_path / "blocks")


def test_missing_blocks_after_some_are_done(tmp_path: Path) -> None:
    assert graph.missing_blocks(tmp_path, ROWS, 4) == [(0, 4), (4, 8), (8, 10)]
    graph.write_block(tmp_path, 4, NEIGHBOURS[4:8], SIMILARITIES[4:8])
    assert graph.missing_blocks(tmp_path, ROWS, 3) == [(0, 3), (3, 4), (8, 10)]


def kill_before(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Let `steps` renames and removals through, then die at the next."""
    left = [steps]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return real(*args, **kwargs)

        return call

    for name in ("replace", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))


def test_killed_anywhere_and_resumed_with_other_blocks_ends_in_the_same_bytes(tmp_path: Path) -> None:
    build(tmp_path / "whole", 4)
    steps = 0
    while True:
        folder = tmp_path / str(steps)
        with pytest.MonkeyPatch.context() as monkeypatch:
            kill_before(monkeypatch, steps)
            try:
                build(folder, 4)
                break
            except Killed:
                pass
        build(folder, 3)
        assert files(folder) == files(tmp_path / "whole"), f"killed at step {steps}"
        steps += 1
    assert steps == 6 + 2 + 6 + 1  # 3 blocks of 2 files, 2 joins, 6 removals and their folder
    graph.write_block(folder, 0, NEIGHBOURS[:4], SIMILARITIES[:4])  # killed while the blocks were being removed
    assert graph.missing_blocks(folder, ROWS, 4) == []
    build(folder, 4)
    assert files(folder) == files(tmp_path / "whole")


def test_half_written_block_of_another_length_is_left_out(tmp_path: Path) -> None:
    build(tmp_path / "whole", 4)
    graph.write_block(tmp_path, 7, NEIGHBOURS[7:8], SIMILARITIES[7:8])
    (tmp_path / "blocks" / "neighbours@000000000007.npy").unlink()
    for first, last in ((0, 5), (5, 10)):
        graph.write_block(tmp_path, first, NEIGHBOURS[first:last], SIMILARITIES[first:last])
    graph.join(tmp_path, ROWS, K)
    np.testing.assert_array_equal(graph.open_graph(tmp_path).similarities, SIMILARITIES)


def test_a_gap_is_an_error_and_keeps_the_blocks(tmp_path: Path) -> None:
    for first, last in ((0, 4), (8, 10)):
        graph.write_block(tmp_path, first, NEIGHBOURS[first:last], SIMILARITIES[first:last])
    with pytest.raises(ValueError, match="4 to 8"):
        graph.join(tmp_path, ROWS, K)
    assert graph.missing_blocks(tmp_path, ROWS, 4) == [(4, 8)]


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected the same"):
        graph.write_block(tmp_path, 0, NEIGHBOURS, SIMILARITIES[:, :2])
    graph.write(tmp_path, NEIGHBOURS, SIMILARITIES)
    for wrong in (SIMILARITIES[:9], SIMILARITIES.astype(np.float32)):
        np.save(tmp_path / "similarities.f16.npy", wrong)
        with pytest.raises(BadArtifact, match="similarities.f16.npy"):
            graph.open_graph(tmp_path)
