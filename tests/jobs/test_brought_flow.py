"""Every artifact that can be brought, brought: what one flow built is saved as files, and a second flow takes the files."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.artifacts.corpus import open_corpus
from actors.artifacts.embeddings import open_vectors
from actors.artifacts.graph import open_graph
from actors.artifacts.groups import open_groups
from actors.artifacts.queries import open_queries
from actors.artifacts.store import open_manifest
from actors.artifacts.summaries import open_summaries
from actors.corpora.records import BadInput
from conf import schema
from conf.load import BadConfig, compose
from jobs import brought, session
from jobs.stages import Addresses
from tests.jobs.conftest import Job, a_scratch, artifact, write_collection
from tests.jobs.test_resume import elsewhere, start_here

STAGES = ("corpus", "embeddings", "graph", "groups", "lexicon", "summaries", "index", "queries")
RUN = ("run", "metrics")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection, and of its artifacts the files that somebody else might have made."""
    folder = tmp_path_factory.mktemp("brought")
    settings = compose([*given(folder, write_collection(folder / "c", 60, 5)), "groups.max_size=9"])
    assert start_here(settings, [*STAGES, *RUN])
    root = folder / "root"
    ids = [open_corpus(artifact(root, "corpus")).doc_id(row) for row in range(60)]
    vectors, graph = open_vectors(artifact(root, "embeddings")), open_graph(artifact(root, "graph"))
    np.save(folder / "vectors.npy", vectors.astype(np.float32) * 3)
    np.save(folder / "neighbours.npy", np.column_stack([np.arange(60), graph.neighbours]))  # as many tools give it, itself first
    group_of, summaries = open_groups(artifact(root, "groups")).group_of, open_summaries(artifact(root, "summaries"))
    lines = [f"{doc_id}\t{group}" for doc_id, group in zip(ids, group_of.tolist(), strict=True)]
    (folder / "groups.tsv").write_text("\n".join(["doc_id\tgroup", *lines[::-1]]) + "\n")
    told = [summaries[group] for group in range(len(summaries))]
    rows = [f"{s.group}\t{s.concept}\tmine: {s.summary}" for s in told[1:]]
    (folder / "summaries.tsv").write_text("\n".join(["group\tconcept\tsummary", *rows]) + "\n")
    asked = open_queries(artifact(root, "queries"))
    vectors_of_queries = np.random.default_rng(0).standard_normal((len(asked), vectors.shape[1])).tolist()
    pq.write_table(pa.table({"text": [q.text for q in asked], "vector": vectors_of_queries}), folder / "questions.parquet")
    return folder


def given(folder: Path, collection: Path) -> list[str]:
    return [f"artifacts.root={folder / 'root'}", "corpus=beir", f"corpus.path={collection}", "loop.budget=30"]


def all_brought(files: Path, root: Path, *more: str) -> list[str]:
    return [
        *given(root.parent, files / "c"),
        *("embeddings=brought", f"embeddings.path={files / 'vectors.npy'}", f"embeddings.queries={files / 'questions.parquet'}"),
        *("graph=brought", f"graph.path={files / 'neighbours.npy'}", "groups=brought", f"groups.path={files / 'groups.tsv'}"),
        *("summaries=brought", f"summaries.path={files / 'summaries.tsv'}", "summaries.stand_ins=0.5", *more),
    ]


def check(files: Path, root: Path) -> None:
    built, taken = ({kind: artifact(where, kind) for kind in STAGES} for where in (files / "root", root))
    counts = {kind: open_manifest(folder, kind, checksums=True)["counts"] for kind, folder in taken.items()}
    vectors = open_vectors(taken["embeddings"])
    assert np.allclose(vectors, open_vectors(built["embeddings"]), atol=2e-3) and counts["embeddings"]["normalised"] == 60
    graph, expected = open_graph(taken["graph"]), open_graph(built["graph"])
    assert (graph.neighbours == expected.neighbours).all() and counts["graph"]["left out themselves"] == 60
    assert np.allclose(graph.similarities, expected.similarities, atol=5e-3)
    groups = open_groups(taken["groups"])
    assert (groups.group_of == open_groups(built["groups"]).group_of).all()
    assert (counts["groups"]["without a group"], counts["groups"]["unknown documents"]) == (0, 0)
    summaries = open_summaries(taken["summaries"])
    assert counts["summaries"]["outcomes"] == {"brought": len(summaries) - 1, "extractive": 1}
    assert summaries[0].outcome == "extractive" and summaries[1].summary.startswith("mine: ")
    means = np.array([vectors[groups.members(g)].astype(np.float32).mean(axis=0) for g in range(groups.count)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    assert np.allclose(summaries.vectors, means, atol=2e-3), "no model is there for a summary: it has its documents' mean"


def test_the_same_by_files(files: Path, tmp_path: Path) -> None:
    settings = compose(all_brought(files, tmp_path / "root"))
    assert start_here(elsewhere(settings, tmp_path / "root", 7, 3), [*STAGES, *RUN])
    check(files, tmp_path / "root")


@pytest.mark.slow
def test_the_same_by_files_with_ray(files: Path, tmp_path: Path) -> None:
    overrides = (*all_brought(files, tmp_path / "root")[1:], "cluster.num_cpus=4", "cluster.in_process=true")
    with a_scratch() as scratch:
        for name in ("build_index", "run_queries", "score_run"):
            Job(name, overrides, tmp_path / "root", scratch).end()
    check(files, tmp_path / "root")


def test_content_decides_and_not_the_place(files: Path, tmp_path: Path) -> None:
    settings = compose(all_brought(files, tmp_path / "root"))
    names = {kind: Addresses(settings)[kind].name for kind in STAGES}
    for what in ("vectors.npy", "neighbours.npy", "groups.tsv", "summaries.tsv", "questions.parquet"):
        (tmp_path / what).write_bytes((files / what).read_bytes())
    moved = [o.replace(str(files), str(tmp_path)) if str(files / "c") not in o else o for o in settings.overrides]
    assert {kind: Addresses(compose(moved))[kind].name for kind in STAGES} == names
    anew = {
        "vectors.npy": {"embeddings", "graph", "groups", "summaries", "index"},
        "neighbours.npy": {"graph", "groups", "summaries", "index"},
        "groups.tsv": {"groups", "summaries", "index"},
        "summaries.tsv": {"summaries", "index"},
        "questions.parquet": {"index"},
    }
    for what, kinds in anew.items():
        content = (tmp_path / what).read_bytes()
        (tmp_path / what).write_bytes(content + b"\n")
        changed = Addresses(compose(moved))
        assert {kind for kind in STAGES if changed[kind].name != names[kind]} == kinds, what
        (tmp_path / what).write_bytes(content)


@pytest.mark.parametrize(
    ("choice", "needed"),
    [
        ((), True),
        (("reranker=simulated", "navigator=simulated"), False),
        (("reranker=simulated", "navigator=simulated", "reranker.bias=0.3"), True),
        (("reranker=simulated", "navigator=simulated", "first_stage=dense"), True),
        (("loop=repair", "reranker=simulated"), True),
        (("loop=bm25",), False),
        (("loop=slidegar", "reranker=simulated"), False),
    ],
)
def test_vectors_of_questions_are_asked_for_where_they_are_compared(
    choice: Sequence[str], needed: bool, files: Path, tmp_path: Path
) -> None:
    index, asked = artifact(files / "root", "index"), open_queries(artifact(files / "root", "queries"))
    settings = compose(all_brought(files, tmp_path / "root", *choice))
    brought.check_questions(settings, index, asked if settings.embeddings.path else [])
    settings.embeddings.queries = ""
    refused = pytest.raises(BadInput, match=r"5 of 5 questions have no vector") if needed else contextlib.nullcontext()
    with refused:
        brought.check_questions(settings, index, asked)


def test_vectors_of_questions_of_another_model(files: Path, tmp_path: Path) -> None:
    asked = open_queries(artifact(files / "root", "queries"))
    pq.write_table(pa.table({"text": [q.text for q in asked], "vector": [[1.0, 2.0]] * len(asked)}), tmp_path / "q.parquet")
    settings = compose(all_brought(files, tmp_path / "root"))
    settings.embeddings.queries = str(tmp_path / "q.parquet")
    with pytest.raises(BadConfig, match=r"embeddings\.queries=.*expected vectors of 16 values"):
        brought.check_questions(settings, artifact(files / "root", "index"), asked)


def test_too_few_summaries(files: Path, tmp_path: Path) -> None:
    node = compose(all_brought(files, tmp_path / "root", "summaries.stand_ins=0.0")).summaries
    assert isinstance(node, schema.BroughtSummaries)
    groups = open_groups(artifact(files / "root", "groups")).count
    with pytest.raises(ValueError, match=rf"1 of {groups} groups have no line, expected at most 0 \(summaries\.stand_ins\)"):
        brought.summaries(node, tmp_path, groups)


def test_paths_are_made_absolute(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    overrides = [
        o.replace(f"{files}/", "") if "=/" in o and "corpus" not in o else o for o in all_brought(files, tmp_path / "root")
    ]
    settings = session.on_this_machine(compose([*overrides[1:], f"artifacts.root={tmp_path}", "graph.similarities=s.npy"]), False)
    places = [settings.embeddings.path, settings.embeddings.queries, settings.graph.path, settings.graph.similarities]
    assert [*places, settings.groups.path, settings.summaries.path] == [
        str(files / name) for name in ("vectors.npy", "questions.parquet", "neighbours.npy", "s.npy", "groups.tsv", "summaries.tsv")
    ]
    with pytest.raises(BadConfig, match=r"an absolute path in a submitted job"):
        session.on_this_machine(compose([*overrides[1:], f"artifacts.root={tmp_path}"]), True)


def test_an_index_says_where_its_questions_lie(files: Path, tmp_path: Path) -> None:
    """So that it is opened without a configuration."""
    settings = compose(all_brought(files, tmp_path / "root"))
    assert start_here(elsewhere(settings, tmp_path / "root", 60, 60), STAGES)
    manifest = json.loads((artifact(tmp_path / "root", "index") / "manifest.json").read_text())
    assert manifest["aside"]["embeddings"]["queries"] == str(files / "questions.parquet")
