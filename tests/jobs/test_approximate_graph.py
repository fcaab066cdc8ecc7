"""The approximate graph as a job makes it: what the algorithm makes in one process, whatever the blocks, whenever it was killed."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from actors.algorithms import approximate_knn, inverted_lists, knn
from actors.artifacts import embeddings as vector_files
from actors.artifacts.candidates import Step
from actors.artifacts.graph import open_graph
from actors.artifacts.lists import open_lists
from actors.artifacts.store import BadArtifact, draft, finish, open_manifest
from conf import schema
from conf.load import BadConfig, compose
from jobs import approximate_graph, build_graph, build_lists
from jobs.approximate_graph import next_step, split
from jobs.stages import Addresses
from tests.jobs.conftest import artifact, payload, write_collection

DOCUMENTS, D, K = 1500, 16, 6
GIVEN = ("graph=approximate", f"graph.k={K}", "lists.number=60", "graph.probes=2", "graph.hubs=10", "graph.spare=4",
         "graph.sample=300", "graph.minimum_recall=0.5", "graph.attempts=3")  # fmt: skip


class HereRay:
    """What the jobs use of Ray, in this process: a task is done when it is waited for."""

    @staticmethod
    def remote(**options: Any) -> Callable[[Callable[..., Any]], Any]:
        return lambda function: SimpleNamespace(remote=lambda *arguments: partial(function, *arguments))

    @staticmethod
    def get(task: Callable[[], Any]) -> Any:
        return task()


def run_here(tasks: Sequence[Callable[[], int]], told: tuple[str, int, str], done: int = 0) -> None:
    """The last first, as Ray keeps no order; what is done adds up to all there is."""
    assert done + sum(task() for task in reversed(tasks)) == told[1]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (build_lists, build_graph, approximate_graph):
        monkeypatch.setattr(module, "ray", HereRay)
        monkeypatch.setattr(module, "run_tasks", run_here)
    monkeypatch.setattr("jobs.building.start_ray", lambda cluster: None)
    monkeypatch.setattr("jobs.stages.model_digest", lambda node: "of no model")
    monkeypatch.setattr(inverted_lists, "GROUP", 200)
    monkeypatch.setattr(inverted_lists, "CHUNK", 128)


def clustered(documents: int = DOCUMENTS) -> NDArray[np.float32]:
    draw = np.random.default_rng(0)
    topics = draw.standard_normal((documents // 30, D))
    vectors = topics[draw.integers(0, len(topics), documents)] + 0.6 * draw.standard_normal((documents, D))
    vectors[::50] = vectors[0]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def settings_of(root: Path, *overrides: str) -> schema.Settings:
    """Settings whose embeddings are there."""
    collection = root / "collection"
    if not collection.exists():
        write_collection(collection, 20, 2)
    settings = compose((f"artifacts.root={root}", "corpus=beir", f"corpus.path={collection}", *overrides))
    address = Addresses(settings)["embeddings"]
    if not address.built:
        with draft(Addresses(settings)["corpus"]) as folder:
            (folder / "nothing").write_text("")
            finish(Addresses(settings)["corpus"], {"documents": DOCUMENTS})
        with draft(address) as folder:
            vector_files.write_part(folder, 0, clustered(), {})
            finish(address, {"documents": DOCUMENTS, **vector_files.join(folder, DOCUMENTS)})
    return settings


def blocks_of(settings: schema.Settings, rows: int) -> schema.Settings:
    cluster = settings.cluster
    return replace(settings, cluster=replace(cluster, knn=replace(cluster.knn, block_rows=rows)))


def built(settings: schema.Settings) -> tuple[Path, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        folder = build_graph.run(settings).folder
    return folder, out.getvalue()


# --- what is made -----------------------------------------------------------------------------------------------------


def test_the_job_makes_what_the_algorithm_makes_and_says_its_recall(tmp_path: Path) -> None:
    folder, said = built(settings_of(tmp_path, *GIVEN))
    vectors, graph = vector_files.open_vectors(artifact(tmp_path, "embeddings")), open_graph(folder)
    how = approximate_knn.How(inverted_lists.How(60, 10, 262144, 0), probes=2, passes=2, spare=4, hubs=10)
    neighbours, similarities = approximate_knn.nearest(vectors, K, how)
    np.testing.assert_array_equal(graph.neighbours, neighbours)
    np.testing.assert_array_equal(graph.similarities, similarities)

    rows = np.sort(np.random.default_rng(0).choice(DOCUMENTS, 300, replace=False, shuffle=False))
    recall = knn.recall(neighbours[rows], knn.nearest(vectors, 0, DOCUMENTS, K)[0][rows])
    counts = open_manifest(folder, "graph", checksums=True)["counts"]
    lists = artifact(tmp_path, "lists")
    assert counts == {"documents": DOCUMENTS, "k": K, "edges": DOCUMENTS * K, "method": "approximate", "recall": recall,
                      "probes": 2, "passes": 2, "lists": lists.name}  # fmt: skip
    steps = json.loads((folder / "recall.json").read_text())
    assert [step["passes"] for step in steps] == [0, 1, 2] and steps[0]["recall"] < steps[2]["recall"] == recall
    assert f"pass 2: recall@{K} {recall:.4f} of 300 documents" in said
    assert set(arrays(folder)) == {"neighbours.i32.npy", "similarities.f16.npy", "recall.json"}
    assert not (folder / "work").exists()


def test_lists_hold_every_row_once_with_its_vector(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "lists.number=60")
    build_lists.run(settings)
    lists, vectors = open_lists(artifact(tmp_path, "lists")), vector_files.open_vectors(artifact(tmp_path, "embeddings"))
    assert sorted(lists.rows.tolist()) == list(range(DOCUMENTS)) and len(lists.offsets) == 61
    np.testing.assert_array_equal(lists.vectors, vectors[lists.rows])
    np.testing.assert_array_equal(
        np.repeat(np.arange(60), np.diff(lists.offsets)), inverted_lists.assign(vectors, lists.centroids, 0, DOCUMENTS)[lists.rows]
    )
    counts = open_manifest(artifact(tmp_path, "lists"), "lists")["counts"]
    assert (counts["lists"], counts["documents"]) == (60, DOCUMENTS) and counts["largest"] == np.diff(lists.offsets).max()


def arrays(folder: Path) -> dict[str, str]:
    """sha256 of what was made, without what tells of the making."""
    return {name: digest for name, digest in payload(folder).items() if name.endswith(".npy") or name == "recall.json"}


def test_same_bytes_whatever_the_blocks(tmp_path: Path) -> None:
    found = []
    for rows in (7, 300, 10**6):
        graph, _ = built(blocks_of(settings_of(tmp_path / str(rows), *GIVEN), rows))
        found.append((arrays(graph), arrays(artifact(tmp_path / str(rows), "lists"))))
    assert found[0] == found[1] == found[2] and len(found[0][1]) == 4


@pytest.mark.slow
def test_killed_anywhere_and_resumed_with_other_blocks(
    tmp_path: Path, killed_everywhere: Callable[[Callable[[Path], object]], list[dict[str, bytes]]]
) -> None:
    """Lists and graph; below the recall that is wanted, so that the steps after the first attempt are among them."""
    given = (*GIVEN, "graph.minimum_recall=0.9", "graph.passes=1", "lists.number=20", "graph.probes=1")
    settings_of(tmp_path / "source", *given)
    starts: list[Path] = []

    def make(folder: Path) -> None:
        root = tmp_path / "roots" / folder.name
        if not root.exists():
            shutil.copytree(tmp_path / "source", root)
        starts.append(root)
        graph, _ = built(blocks_of(settings_of(root, *given), 900 // starts.count(root)))
        (folder / "made").write_text(json.dumps([arrays(graph), arrays(artifact(root, "lists"))]))

    found = killed_everywhere(make)
    assert len(found) > 40 and all(files == found[-1] for files in found)
    steps = json.loads((artifact(starts[-1], "graph") / "recall.json").read_text())
    assert len(steps) > 2 and not list(tmp_path.glob("roots/*/*/*.partial"))


# --- which method, and when it is content -----------------------------------------------------------------------------


def test_auto_is_exact_for_a_small_corpus_and_builds_no_lists(tmp_path: Path) -> None:
    given = [override for override in GIVEN if override != "graph=approximate"]
    small, _ = built(settings_of(tmp_path, *given))
    exact, _ = built(settings_of(tmp_path, "graph=exact", f"graph.k={K}"))
    assert not list(tmp_path.glob("*/lists-*"))
    assert small != exact
    for name in ("neighbours.i32.npy", "similarities.f16.npy"):
        assert (small / name).read_bytes() == (exact / name).read_bytes()
    large, _ = built(settings_of(tmp_path, *given, f"graph.exact_up_to={DOCUMENTS - 1}"))
    assert open_manifest(large, "graph")["counts"]["method"] == "approximate" and artifact(tmp_path, "lists").exists()


def test_a_graph_that_is_built_needs_its_lists_no_more(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, *GIVEN)
    built(settings)
    artifact(tmp_path, "lists").rename(tmp_path / "away")
    assert "is already built" in built(settings)[1]
    with pytest.raises(BadArtifact, match="lists-.* does not exist"):
        open_manifest(Addresses(settings)["lists"].folder, "lists")


def test_too_little_recall_stops_the_job_with_the_figure_and_starting_it_again_too(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, *GIVEN, "graph.minimum_recall=1.0", "graph.passes=0", "graph.attempts=2", "graph.probes=1")
    said = r"graph.minimum_recall=1.0: expected a recall@6 that graph.attempts=2 reach; 0\.\d{4} was reached"
    for _ in range(2):
        with pytest.raises(BadConfig, match=said):
            built(settings)
    steps = json.loads(next(tmp_path.glob("*/graph-*.partial/recall.json")).read_text())
    assert [(step["probes"], step["passes"]) for step in steps] == [(1, 0), (2, 0)]


def test_more_lists_than_documents_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=f"lists.number=1501: expected at most as many as there are documents: {DOCUMENTS}"):
        built(settings_of(tmp_path, *GIVEN, "lists.number=1501"))
    assert not list(tmp_path.glob("*/lists-*"))


def test_a_gpu_without_its_faiss_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_graph, "version", {"faiss-cpu": "1.15.1"}.__getitem__)
    monkeypatch.setattr(build_graph, "PackageNotFoundError", KeyError)
    with pytest.raises(BadConfig, match=r"cluster.knn.num_gpus=1.0: expected 0 with faiss-cpu 1.15.1. Set it, or pip install"):
        built(settings_of(tmp_path, "graph=exact", "cluster.knn.num_gpus=1"))


def steps_of(node: schema.ApproximateGraph, recalls: Sequence[float]) -> list[tuple[int, int]]:
    """The steps that are made when their recalls are these; the last one is what comes after them."""
    steps: list[Step] = []
    for recall in recalls:
        step = next_step(node, steps)
        assert step
        steps.append(replace(step, recall=recall))
    return [(step.probes, step.passes) for step in [*steps, next_step(node, steps) or Step(0, 0, 0)]]


def test_steps_by_hand() -> None:
    node = compose(["artifacts.root=/x", "graph=approximate", "graph.passes=1", "graph.attempts=3"]).graph
    assert isinstance(node, schema.ApproximateGraph) and (node.probes, node.minimum_recall) == (16, 0.97)
    content = (0, 0)
    assert steps_of(node, [0.8, 0.98]) == [(16, 0), (16, 1), content]
    assert steps_of(node, [0.99, 0.99]) == [(16, 0), (16, 1), content], "passes are made in any case"
    assert steps_of(node, [0.9, 0.95, 0.97]) == [(16, 0), (16, 1), (16, 2), content], "0.05 was gained, 0.02 is missing"
    assert steps_of(node, [0.9, 0.92, 0.95, 0.98]) == [(16, 0), (16, 1), (32, 0), (32, 1), content], "0.02 of 0.05"
    assert steps_of(node, [0.9, 0.93]) == [(16, 0), (16, 1), (32, 0)], "0.03 was gained, 0.04 is missing"
    with pytest.raises(BadConfig, match="attempts=3 reach; 0.9400 was reached, with 32 probes and 1 passes. Raise graph.probes"):
        steps_of(node, [0.8, 0.9, 0.905, 0.92, 0.94])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.lists(st.integers(0, 29), max_size=8), st.integers(1, 40))
def test_gaps_are_cut_at_bounds(sizes: list[int], cuts: list[int], step: int) -> None:
    bounds = np.cumsum([0, *sizes]).tolist()
    ends = sorted({bounds[cut % len(bounds)] for cut in cuts})
    gaps = list(zip(ends[::2], ends[1::2], strict=False))
    spans = split(gaps, bounds, step)
    assert [row for span in spans for row in range(*span)] == [row for gap in gaps for row in range(*gap)]
    ends_of_gaps = {end for _, end in gaps}
    assert all({first, last} <= set(bounds) and (last - first >= step or last in ends_of_gaps) for first, last in spans)
    assert all(last - first < step + max(sizes) for first, last in spans)
