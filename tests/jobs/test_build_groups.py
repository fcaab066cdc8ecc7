"""The groups that jobs make: the same whatever the workers, refused when memory is short, gone on with after level 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actors.algorithms import edges, partition
from actors.algorithms.planted import plant
from actors.artifacts import graph as graph_files
from actors.artifacts.graph import open_graph
from actors.artifacts.groups import open_groups
from actors.artifacts.store import open_manifest
from conf import schema
from conf.load import BadConfig, compose
from jobs import build_groups, leiden_parts, room
from tests.jobs.conftest import StartJob, artifact, payload
from tests.jobs.test_resume import bring

DOCUMENTS, K = 60_000, 10


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("c")
    (folder / "corpus.jsonl").write_text('{"_id": "1", "text": "one"}\n')
    return ("corpus=beir", f"corpus.path={folder}", "graph=exact", f"graph.k={K}")


def with_graph(root: Path, given: tuple[str, ...], documents: int) -> schema.Settings:
    neighbours = plant(documents, K, 0).neighbours
    bring(root, given, "graph", lambda folder: graph_files.write(folder, neighbours, np.ones_like(neighbours, np.float16)),
          documents=documents, edges=neighbours.size)  # fmt: skip
    return compose((f"artifacts.root={root}", *given))


def in_this_process(graph: Path, node: schema.Leiden) -> np.ndarray:
    """The algorithm, batch by batch, from the last."""
    neighbours, how = open_graph(graph).neighbours, leiden_parts.how_of(node)
    labels = partition.level0(neighbours, how).labels
    batches = partition.batches(neighbours, labels, node.max_size)
    assert len(batches) >= 3
    return partition.combine(labels, [(rows, partition.refine(neighbours, rows, labels[rows], how)) for rows in batches[::-1]])


@pytest.mark.slow
def test_the_same_groups_by_one_worker_and_by_two(given: tuple[str, ...], job: StartJob, tmp_path: Path) -> None:
    made = []
    for cpus in (1, 2):
        root = tmp_path / str(cpus)
        settings = with_graph(root, given, DOCUMENTS)
        job("build_groups", root, *given, f"cluster.num_cpus={cpus}").end()
        made.append(artifact(root, "groups"))
    assert payload(made[0]) == payload(made[1])
    assert isinstance(settings.groups, schema.Leiden)
    found, graph = open_groups(made[0]).group_of, artifact(root, "graph")
    np.testing.assert_array_equal(found, in_this_process(graph, settings.groups))
    counts = open_manifest(made[0], "groups")["counts"]
    assert counts["modularity"] == edges.modularity(open_graph(graph).neighbours, found)
    assert (counts["minimum"], counts["over_max_size"], counts["not_positive"]) == (2, 0, 0)
    assert not (made[0] / "parts").exists()


def test_memory_is_foreseen_from_the_graph_and_refused_before_anything_starts(
    given: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = with_graph(tmp_path, given, 2000)
    monkeypatch.setattr(room, "available_memory_mb", lambda: 300.0)
    with pytest.raises(BadConfig, match=r"groups: free memory='300 MiB': expected \d{3} MiB, as foreseen. End what else runs here"):
        build_groups.run(settings)
    assert not list(tmp_path.glob("*/groups-*"))


def test_what_is_foreseen_grows_with_the_edges(given: tuple[str, ...], tmp_path: Path) -> None:
    settings = with_graph(tmp_path, given, 2000)
    needs = build_groups._needs(settings)
    undirected = len(edges.union(plant(2000, K, 0).neighbours).pairs)
    per_edge = (needs["memory"] * room.MIB - build_groups.BASE) / undirected
    assert per_edge == pytest.approx(build_groups.BYTES_PER_EDGE["none"], rel=0.01)


def test_level_0_is_done_once(given: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between level 0 and its batches, which are made anew; both are as they were."""
    node = with_graph(tmp_path, given, 2000).groups
    assert isinstance(node, schema.Leiden)
    graph, parts = artifact(tmp_path, "graph"), tmp_path / "parts"
    leiden_parts.level0(graph, node, parts)
    before = {path.name: path.read_bytes() for path in parts.iterdir()}
    for name in ("rows", "starts"):
        (parts / f"{name}@{0:012d}.npy").unlink()

    def again(*arguments: object) -> None:
        raise AssertionError("level 0 was done again")

    monkeypatch.setattr(partition, "level0", again)
    leiden_parts.level0(graph, node, parts)
    assert {path.name: path.read_bytes() for path in parts.iterdir()} == before
    assert sorted(leiden_parts.rows_of(parts, 0).tolist()) == leiden_parts.rows_of(parts, 0).tolist()
