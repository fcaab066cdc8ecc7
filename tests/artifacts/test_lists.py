"""Inverted lists on disk: every row in its list, whatever the blocks and whenever their maker was killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from actors.artifacts import lists
from actors.artifacts.store import BadArtifact

ROWS, D = 11, 4
CENTROIDS = np.eye(5, D, dtype=np.float32)
LIST_OF = np.array([2, 0, 2, 4, 0, 2, 1, 4, 0, 2, 2], np.int32)  # list 3 is empty
VECTORS = np.random.default_rng(0).random((ROWS, D)).astype(np.float16)


def build(folder: Path, step: int = 4) -> None:
    """What a job does, first time and again."""
    if lists.missing_centroids(folder):
        lists.write_centroids(folder, CENTROIDS)
    for first, last in reversed(lists.missing_assignments(folder, ROWS, step)):
        lists.write_assignment(folder, first, LIST_OF[first:last])
    lists.order(folder, ROWS)
    for first, last in reversed(lists.missing_vectors(folder, ROWS, step)):
        lists.write_vectors(folder, first, VECTORS[lists.unfinished_rows(folder)[first:last]])
    lists.join(folder, ROWS)


def test_by_hand(tmp_path: Path) -> None:
    build(tmp_path)
    opened = lists.open_lists(tmp_path)
    assert opened.offsets.tolist() == [0, 3, 4, 9, 9, 11]
    assert opened.rows.tolist() == [1, 4, 8, 6, 0, 2, 5, 9, 10, 3, 7]
    assert opened.rows[opened.span(2)].tolist() == [0, 2, 5, 9, 10] and opened.rows[opened.span(3)].tolist() == []
    np.testing.assert_array_equal(opened.vectors, VECTORS[opened.rows])
    np.testing.assert_array_equal(opened.centroids, CENTROIDS)
    assert [array.dtype.str for array in opened] == ["<f4", "<i8", "<i4", "<f2"]
    assert all(isinstance(array.base, np.memmap) and not array.flags.writeable for array in opened)
    assert {path.name for path in tmp_path.iterdir()} == {lists.CENTROIDS, lists.OFFSETS, lists.ROWS, lists.VECTORS}


def test_written_at_once_is_the_same(tmp_path: Path) -> None:
    for name in ("whole", "blocks"):
        (tmp_path / name).mkdir()
    lists.write(tmp_path / "whole", CENTROIDS, LIST_OF, VECTORS)
    build(tmp_path / "blocks", 3)
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "blocks" / path.name).read_bytes()


def test_killed_anywhere_ends_in_the_same_bytes(
    killed_everywhere: Callable[[Callable[[Path], object]], list[dict[str, bytes]]],
) -> None:
    found = killed_everywhere(build)
    assert len(found) > 12 and all(files == found[-1] for files in found)


def test_missing_rows_are_named(tmp_path: Path) -> None:
    lists.write_centroids(tmp_path, CENTROIDS)
    lists.write_assignment(tmp_path, 0, LIST_OF[:4])
    assert lists.missing_assignments(tmp_path, ROWS, 5) == [(4, 9), (9, 11)]
    with pytest.raises(ValueError, match="ends at row 4, expected 11"):
        lists.order(tmp_path, ROWS)


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    build(tmp_path)
    for name, wrong in (
        (lists.VECTORS, VECTORS[:9]),
        (lists.VECTORS, VECTORS.astype(np.float32)),
        (lists.ROWS, np.zeros(9, np.int32)),
        (lists.CENTROIDS, CENTROIDS[:4]),
    ):
        kept = (tmp_path / name).read_bytes()
        np.save(tmp_path / name, wrong)
        with pytest.raises(BadArtifact, match=r"list_|centroids"):
            lists.open_lists(tmp_path)
        (tmp_path / name).write_bytes(kept)
