from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from actors.artifacts import groups
from actors.artifacts.store import BadArtifact


def test_by_hand(tmp_path: Path) -> None:
    groups.write(tmp_path, np.array([0, 2, 0, 1, 2, 0], np.int32))
    opened = groups.open_groups(tmp_path)
    assert opened.count == 3
    assert [opened.members(group).tolist() for group in range(3)] == [[0, 2, 5], [3], [1, 4]]
    assert opened.group_of.tolist() == [0, 2, 0, 1, 2, 0]
    assert (opened.group_of.dtype, opened.member_offsets.dtype, opened.member_rows.dtype) == (np.int32, np.int64, np.int32)
    assert opened.members(0).base is not None  # a view of the file
    assert not opened.members(0).flags.writeable


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_members_and_group_of_agree(tmp_path_factory: pytest.TempPathFactory, labels: list[int]) -> None:
    group_of = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    folder, again = tmp_path_factory.mktemp("groups"), tmp_path_factory.mktemp("again")
    groups.write(folder, group_of)
    groups.write(again, group_of)
    opened = groups.open_groups(folder)
    assert opened.count == len(set(labels))
    for group in range(opened.count):
        assert opened.members(group).tolist() == np.flatnonzero(group_of == group).tolist()
    assert sorted(path.name for path in folder.iterdir()) == [
        "group_of.i32.npy", "member_offsets.i64.npy", "member_rows.i32.npy"]  # fmt: skip
    assert all(path.read_bytes() == (again / path.name).read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("group_of", [[0, 2], [1], [-1, 0], []])
def test_ids_with_gaps_are_refused(tmp_path: Path, group_of: list[int]) -> None:
    with pytest.raises(ValueError, match="without gaps"):
        groups.write(tmp_path, np.array(group_of, np.int32))


@pytest.mark.parametrize("name", ["group_of.i32.npy", "member_offsets.i64.npy", "member_rows.i32.npy"])
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, name: str) -> None:
    groups.write(tmp_path, np.array([0, 1, 0], np.int32))
    np.save(tmp_path / name, np.load(tmp_path / name).astype(np.int16))
    with pytest.raises(BadArtifact, match=name):
        groups.open_groups(tmp_path)
    groups.write(tmp_path, np.array([0, 1, 0], np.int32))
    np.save(tmp_path / "group_of.i32.npy", np.zeros(2, np.int32))
    with pytest.raises(BadArtifact, match="group_of"):
        groups.open_groups(tmp_path)
