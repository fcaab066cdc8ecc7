"""Vectors in parts: killed anywhere and started again, they are the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actors.artifacts import embeddings

VECTORS = np.linspace(-1, 1, 7 * 3).reshape(7, 3).astype(np.float32)


def make(folder: Path, step: int = 2) -> dict[str, int]:
    """What the stage does: embed what is missing, then join."""
    for first, last in embeddings.missing_parts(folder, len(VECTORS), step):
        embeddings.write_part(folder, first, VECTORS[first:last], {"tokens": 10 * (last - first), "truncated": 0})
    return embeddings.join(folder, len(VECTORS))


def test_round_trip(tmp_path: Path) -> None:
    assert make(tmp_path) == {"dimension": 3, "tokens": 70, "truncated": 0}
    vectors = embeddings.open_vectors(tmp_path)
    assert vectors.dtype == np.float16 and not vectors.flags.writeable  # mapped for reading
    assert np.array_equal(vectors, VECTORS.astype(np.float16))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["usage.json", "vectors.f16.npy"]


def test_killed_at_every_rename_and_started_again(killed_everywhere) -> None:
    made = killed_everywhere(make)
    assert len(made) >= 11  # 4 parts of 2 files, usage and vectors at the end, and the attempt that nothing killed
    assert len({str(files) for files in made}) == 1


def test_another_part_size_after_a_kill(killed_everywhere) -> None:
    """The killed part's usage may lie there already, and rows come in parts of another length: nothing counts twice."""
    sizes = iter([2, 3] * 20)
    made = killed_everywhere(lambda folder: make(folder, next(sizes)))
    assert len({str(files) for files in made}) == 1


def test_joined_and_killed_before_the_manifest(tmp_path: Path) -> None:
    counts = make(tmp_path)
    assert embeddings.missing_parts(tmp_path, len(VECTORS), 5) == []
    assert make(tmp_path) == counts


def test_missing_rows_are_named(tmp_path: Path) -> None:
    embeddings.write_part(tmp_path, 0, VECTORS[:2], {})
    embeddings.write_part(tmp_path, 4, VECTORS[4:], {})
    with pytest.raises(ValueError, match="rows 2 to 4 of vectors are missing"):
        embeddings.join(tmp_path, len(VECTORS))


def test_no_documents(tmp_path: Path) -> None:
    assert embeddings.join(tmp_path, 0) == {"dimension": 0}
    assert embeddings.open_vectors(tmp_path).shape == (0, 0)
