"""Room is refused when short, and measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from actors.artifacts.store import bytes_of, open_manifest, open_room, write_room
from conf import schema
from conf.load import BadConfig, compose
from jobs import building, room

GIB = 2**30


def settings_of(tmp_path: Path, *overrides: str) -> schema.Settings:
    return compose((f"artifacts.root={tmp_path}", *overrides))


def test_a_stage_that_does_not_fit_is_refused_with_its_name_the_figures_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "available_memory_mb", lambda: 3000.4)
    room.check(settings_of(tmp_path), "groups", {"memory": 2999, "disk": 1})
    with pytest.raises(BadConfig) as refused:
        room.check(settings_of(tmp_path), "groups", {"memory": 4100.2, "disk": 1})
    assert str(refused.value) == (
        "groups: free memory='3,000 MiB': expected 4,101 MiB, as foreseen. End what else runs here, use a machine with more, or "
        "fewer documents or neighbours."
    )
    room.check(settings_of(tmp_path, "cluster.address=10.0.0.1:6379"), "groups", {"memory": 4100})  # not this machine's memory
    with pytest.raises(BadConfig, match=rf"graph: free disk=.* MiB': expected [\d,]+ MiB below {tmp_path}, as foreseen. Remove"):
        room.check(settings_of(tmp_path), "graph", {"disk": 1e12})


def test_a_root_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadConfig, match="artifacts.root=.*: expected a folder that can be written to"):
        room.check(settings_of(tmp_path / "file" / "root"), "corpus", {})


def test_the_watch_tells_what_a_draft_and_its_processes_had_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "EVERY", 0.01)
    (tmp_path / "blocks").mkdir()
    hold = "import sys; held = bytearray(b'1' * 100_000_000); print(len(held), flush=True); sys.stdin.read()"
    before = room.own_memory(os.getpid())
    with room.Watch(tmp_path) as watch, subprocess.Popen([sys.executable, "-c", hold], stdin=-1, stdout=-1) as child:
        (tmp_path / "blocks" / "one").write_bytes(b"1" * 1000)
        (tmp_path / "whole").write_bytes(b"1" * 1000)
        assert child.stdout and child.stdout.readline()
        assert watch.taken()["most disk"] == 2000
        (tmp_path / "blocks" / "one").unlink()
        child.communicate(timeout=60)
    taken = watch.taken()
    assert (taken["disk"], taken["most disk"]) == (1000, 2000)
    assert 90_000_000 < taken["most memory"] - before < GIB


def test_bytes_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_bytes(b"123")
    (tmp_path / "a" / "y").write_bytes(b"1234")
    assert bytes_of(tmp_path) == 7 and bytes_of(tmp_path / "nowhere") == 0
    write_room(tmp_path, {"disk": 5}, {"disk": 7})
    assert open_room(tmp_path) == {"foreseen": {"disk": 5}, "taken": {"disk": 7}}


def test_what_was_foreseen_and_taken_is_said_and_kept_outside_of_the_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(settings: schema.Settings, inputs: Mapping[str, Path], folder: Path) -> dict[str, Any]:
        (folder / "half").write_bytes(b"1" * (4 * room.MIB))
        (folder / "half").rename(folder / "whole")
        return {"documents": 3}

    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("one")
    settings = settings_of(tmp_path / "root", "corpus=folder", f"corpus.path={tmp_path / 'notes'}")
    address = building.build(settings, "corpus", make, ray=False, needs={"disk": 9.5})
    said = capsys.readouterr().out
    assert "disk about 10 MiB" in said
    assert "documents 3  disk 4.0 MiB, at most 4.0 on the way (foreseen 9.5); memory at most " in said
    kept = open_room(address.folder)
    assert kept["foreseen"] == {"disk": int(9.5 * room.MIB)} and kept["taken"]["disk"] - 4 * room.MIB < 10_000
    assert set(open_manifest(address.folder, "corpus", checksums=True)["files"]) == {"whole"}
