"""Arrays that are made together in blocks, and the steps of a graph on its way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from actors.artifacts.candidates import Arrays, Candidates, Step

ROWS = 10
A, B = np.arange(ROWS * 2, dtype=np.int32).reshape(ROWS, 2), np.linspace(0, 1, ROWS, dtype=np.float32)


def build(folder: Path, step: int = 4) -> None:
    arrays = Arrays(folder, ("a", "b"))
    for first, last in arrays.missing(ROWS):
        for start in reversed(range(first, last, step)):
            stop = min(start + step, last)
            arrays.save(start, A[start:stop], B[start:stop])
    arrays.join(ROWS)


def test_joined_and_opened(tmp_path: Path) -> None:
    arrays = Arrays(tmp_path / "x", ("a", "b"))
    assert arrays.missing(ROWS) == [(0, ROWS)]
    arrays.save(4, A[4:7], B[4:7])
    assert arrays.missing(ROWS) == [(0, 4), (7, ROWS)]
    build(tmp_path / "x")
    b, a = arrays.open("b", "a")
    np.testing.assert_array_equal(a, A)
    np.testing.assert_array_equal(b, B)
    assert (a.dtype, b.dtype) == (A.dtype, B.dtype) and isinstance(a.base, np.memmap)
    assert arrays.missing(ROWS) == [] and {path.name for path in (tmp_path / "x").iterdir()} == {"a.npy", "b.npy"}


def test_killed_anywhere_and_resumed(killed_everywhere: Callable[[Callable[[Path], object]], list[dict[str, bytes]]]) -> None:
    found = killed_everywhere(build)
    assert len(found) > 7 and all(files == found[-1] for files in found)


def test_half_a_block_of_another_length_is_left_out(tmp_path: Path) -> None:
    arrays = Arrays(tmp_path, ("a", "b"))
    arrays.save(3, A[3:9], B[3:9])
    (tmp_path / "blocks" / "b@000000000003.npy").unlink()
    arrays.save(0, A[:5], B[:5])
    arrays.save(5, A[5:], B[5:])
    arrays.join(ROWS)
    np.testing.assert_array_equal(arrays.open("a")[0], A)


def test_a_gap_is_an_error(tmp_path: Path) -> None:
    arrays = Arrays(tmp_path, ("a", "b"))
    arrays.save(5, A[5:], B[5:])
    with pytest.raises(ValueError, match="rows 0 to 5 of a are missing"):
        arrays.join(ROWS)


def test_a_finished_step_keeps_what_the_next_one_reads(tmp_path: Path) -> None:
    files = Candidates(tmp_path)
    steps = [Step(4, 0, 0.5), Step(4, 1, 0.75), Step(4, 2, 0.8), Step(8, 0, 0.7)]
    for number, step in enumerate(steps):
        near, back = files.near(step.probes, step.passes), files.backward(step.probes, step.passes)
        near.save(0, *(A for _ in near.names))
        near.join(ROWS)
        if step.passes:
            back.save(0, A)
            back.join(ROWS)
        files.add(step)
        assert Candidates(tmp_path).steps() == steps[: number + 1]
        kept = {str(path.relative_to(tmp_path / "work")) for path in (tmp_path / "work").rglob("*.npy")}
        of = f"probes-{step.probes}"
        last = f"{of}-pass-{step.passes}" if step.passes else of
        assert kept == {f"{of}/near/probed.npy", f"{last}/near/positions.npy", f"{last}/near/scores.npy"}
    files.remove()
    assert {path.name for path in tmp_path.iterdir()} == {"recall.json"}
