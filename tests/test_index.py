"""The toy's index: opened, searched in process, and refused when it is damaged."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from actors.artifacts.store import BadArtifact
from actors.index import Hit, Index, open_index
from conf import schema
from tests import toy


@pytest.fixture
def own(tmp_path: Path, toy_index: Index) -> Path:
    """A copy of the toy's index that a test may damage."""
    shutil.copytree(toy_index.folder.parent, tmp_path / "toy")
    return tmp_path / "toy" / toy_index.folder.name


def test_everything_in_it_is_the_toy(toy_index: Index) -> None:
    assert [toy_index.corpus.text(row) for row in range(12)] == toy.TEXTS
    assert np.array_equal(toy_index.neighbours, toy.NEIGHBOURS) and np.array_equal(toy_index.group_of, toy.GROUP_OF)
    assert toy_index.members(1).tolist() == [3, 4, 5]
    assert np.allclose(toy_index.vectors, toy.VECTORS, atol=1e-3)
    assert [toy_index.summaries[group].concept for group in range(4)] == toy.CONCEPTS
    assert toy_index.models == str(toy_index.folder.parent.parent / "models")


def test_bm25_s_ranking_and_any_document_s_score(toy_index: Index) -> None:
    found = toy_index.retrieve("Copper!", (), 6, "plain")
    assert found.rows.tolist() == toy.POOL and (found.score(found.rows.tolist()) == found.scores).all()
    two, four, five = found.score([2, 4, 5])
    assert two == 0.0 < four < five < found.scores[-1]
    assert toy_index.scorer("copper", "plain")([2, 4, 5]).tolist() == [two, four, five]


def test_how_it_was_meant_to_be_searched_comes_back(toy_index: Index) -> None:
    loop = toy_index.answering.loop
    assert isinstance(loop, schema.GarenLoop) and loop.sources == schema.Sources(2, 0, 0)
    assert toy_index.answering == toy.answering(toy_index.folder.parent.parent / "tables")


# --- another graph ----------------------------------------------------------------------------------------------------


def test_another_graph_has_the_same_groups(toy_index: Index, tmp_path: Path) -> None:
    np.save(tmp_path / "graph.npy", toy.NEIGHBOURS[:, ::-1].copy())
    graph = toy_index.with_neighbours(str(tmp_path / "graph.npy"))
    assert np.array_equal(graph.neighbours, toy.NEIGHBOURS[:, ::-1])
    assert graph.group_of is toy_index.group_of and graph.members(1).tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((11, 2), np.int32),
        np.zeros(12, np.int32),
        np.zeros((12, 2), np.float32),
        np.full((12, 1), 12),
        np.full((12, 1), -2),
    ],
)
def test_a_graph_of_something_else_is_refused(toy_index: Index, tmp_path: Path, wrong: np.ndarray) -> None:
    np.save(tmp_path / "graph.npy", wrong)
    said = (
        r"graph\.npy: \w+ \(.*\); expected rows of the corpus or -1, one line for each of its 12 documents\. Give loop\.neighbours"
    )
    with pytest.raises(ValueError, match=said):
        toy_index.with_neighbours(str(tmp_path / "graph.npy"))


# --- search -----------------------------------------------------------------------------------------------------------


def test_search_gives_the_answer_worked_by_hand(toy_index: Index) -> None:
    hits = toy_index.search(toy.QUERY, top=3)
    assert hits == [
        Hit(1, "doc 4", toy.TEXTS[4], 1, "wires", "group 1"),
        Hit(2, "doc 8", toy.TEXTS[8], 2, "roofs", "group 2"),
        Hit(3, "doc 2", toy.TEXTS[2], 0, "mining", "group 0"),
    ]
    assert [hit.doc_id for hit in toy_index.search(toy.QUERY)] == [f"doc {row}" for row in (4, 8, 2, 5, 0, 3, 6, 1)]
    assert {hit.source for hit in toy_index.search(toy.QUERY)[4:]} == {"the pool"}


def test_search_with_another_loop(toy_index: Index) -> None:
    plain = replace(toy_index.answering, loop=schema.Bm25Loop("bm25", 4))
    assert [(hit.doc_id, hit.source) for hit in toy_index.search(toy.QUERY, answering=plain)] == [
        (f"doc {row}", "the pool") for row in toy.POOL[:4]
    ]


def test_search_without_an_answer(toy_index: Index) -> None:
    assert toy_index.search("zinc") == []


def test_search_inside_a_notebook(toy_index: Index) -> None:
    """A notebook runs an event loop in the thread that calls."""

    async def cell() -> list[Hit]:
        return toy_index.search(toy.QUERY, top=1)

    assert asyncio.run(cell())[0].doc_id == "doc 4"


# --- opening ----------------------------------------------------------------------------------------------------------


def test_opened_by_text_by_path_and_once_per_process(toy_index: Index) -> None:
    assert Index.open(str(toy_index.folder)).folder == Index.open(toy_index.folder).folder == toy_index.folder
    assert open_index(str(toy_index.folder)) is open_index(str(toy_index.folder))


def test_a_moved_index_opens(own: Path) -> None:
    index = Index.open(own)
    assert index.corpus.doc_id(3) == "doc 3" and index.lexicon.documents == 12


def test_no_index_there(tmp_path: Path) -> None:
    with pytest.raises(BadArtifact, match="nowhere does not exist. Run its job: python -m jobs.build_index"):
        Index.open(tmp_path / "nowhere")


def test_another_artifact_is_no_index(own: Path) -> None:
    graph = own.parent / Index.open(own).manifest["inputs"]["graph"]
    with pytest.raises(BadArtifact, match="graph format 1, expected index format 1. Build it again"):
        Index.open(graph)


@pytest.mark.parametrize("kind", ["corpus", "embeddings", "graph", "groups", "lexicon", "summaries"])
def test_a_part_that_is_gone_or_damaged_is_named_with_the_remedy(own: Path, kind: str) -> None:
    part = own.parent / Index.open(own).manifest["inputs"][kind]
    file = max((p for p in part.iterdir() if p.name != "manifest.json"), key=lambda p: p.stat().st_size)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(BadArtifact, match=rf"{file}: expected \d+ bytes, found \d+. Remove {part} and run its job again"):
        Index.open(own)
    shutil.rmtree(part)
    with pytest.raises(BadArtifact, match=f"{part} does not exist. Run its job: python -m jobs.build_{kind}"):
        Index.open(own)


def test_settings_of_another_version_matter_only_when_they_are_asked_for(toy_index: Index) -> None:
    manifest = json.loads(json.dumps(toy_index.manifest))
    del manifest["aside"]["answering"]["loop"]["K_g"]
    index = Index(toy_index.folder, manifest)
    assert index.search(toy.QUERY, answering=toy_index.answering)
    with pytest.raises(BadArtifact, match=r"built for other settings .*K_g.* run jobs\.build_index again"):
        index.search(toy.QUERY)
