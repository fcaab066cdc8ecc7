"""Both sides of the bench of groups answer the same question."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from actors.algorithms import edges, partition
from actors.algorithms.planted import plant
from conf import schema
from conf.load import compose
from jobs import bench_groups
from jobs.benches import groups_sides
from jobs.benches.groups_sides import SIDES, graspologic, measure, ours

HOW = partition.Leiden(max_size=20, resolution=1.0, randomness=0.001, iterations=2, seed=3)


def test_ours_is_what_the_stage_makes() -> None:
    neighbours = plant(1500, 8, 0).neighbours
    top, found = ours(neighbours, HOW)
    assert top.tolist() == partition.level0(neighbours, HOW).labels.tolist()
    assert partition.sizes(found, 20).over_max_size == 0
    assert all(len(set(top[found == group].tolist())) == 1 for group in range(found.max() + 1))


def test_the_rival_groups_the_same_documents_about_as_well() -> None:
    pytest.importorskip("graspologic_native")
    neighbours = plant(1500, 8, 0).neighbours
    apart = np.concatenate([neighbours, np.full((3, 8), -1, np.int32)])  # three that nobody names and that name nobody
    top, found = graspologic(apart, HOW)
    assert sorted(np.bincount(found)[found[-3:]].tolist()) == [1, 1, 1]
    assert partition.sizes(found, 20).over_max_size == 0
    assert all(len(set(top[found == group].tolist())) == 1 for group in range(found.max() + 1))
    modularity = edges.modularity(apart, top)
    assert modularity == pytest.approx(edges.modularity(apart, ours(apart, HOW)[0]), abs=0.03)


def test_a_side_is_measured_in_a_process_of_its_own_or_given_up(tmp_path: Path) -> None:
    neighbours = plant(1500, 8, 0).neighbours
    np.save(tmp_path / "n.npy", neighbours)
    took = measure("ours", tmp_path / "n.npy", HOW, None)
    assert took is not None
    found = ours(neighbours, HOW)[1]
    assert (took.groups, took.modularity) == (found.max() + 1, edges.modularity(neighbours, found))
    assert took.cpu > 0 and took.peak > 20
    assert measure("ours", tmp_path / "n.npy", HOW, 0.001) is None
    with pytest.raises(RuntimeError, match="ours: its process ended without an answer"):
        measure("ours", tmp_path / "nowhere.npy", HOW, None)


def test_a_rival_that_is_too_slow_once_is_left_out_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def pretended(side: str, file: Path, how: partition.Leiden, seconds: float | None) -> groups_sides.Took | None:
        documents = len(np.load(file))
        asked.append((documents, side, seconds))
        if side != "ours" and documents > 100:
            return None
        return groups_sides.Took(2.0 if side == "ours" else 8.0, 50.0, 9, 2, 11.0, 20, 0.9, 0.5)

    monkeypatch.setattr(bench_groups, "measure", pretended)
    monkeypatch.setattr(bench_groups, "find_spec", lambda side: True)
    monkeypatch.setattr(bench_groups, "SIZES", (100, 200, 300))
    monkeypatch.setattr(bench_groups, "ROUNDS_UP_TO", 200)
    bench_groups.run(compose((f"artifacts.root={tmp_path}",)))
    lines = capsys.readouterr().out.splitlines()
    assert "graspologic_native took more than 1,800 seconds and is left out from here on" in lines
    told = json.loads(lines[-1])
    assert told["planted 100"]["ratio"] == 0.25 and told["planted 100"]["ours"]["sizes"] == [2, 11.0, 20]
    assert "ratio" not in told["planted 200"]
    of_rival = [(documents, seconds) for documents, side, seconds in asked if side == "graspologic_native"]
    assert of_rival == [(100, 1800.0)] * 3 + [(200, 1800.0)]
    assert asked[-1] == (300, "ours", None)
    assert list(SIDES) == ["ours", "graspologic_native"]


def test_other_groups_are_not_compared() -> None:
    with pytest.raises(Exception, match="groups='kmeans': expected leiden"):
        bench_groups.run(compose(("groups=kmeans",)))
    assert isinstance(compose(()).groups, schema.Leiden)
