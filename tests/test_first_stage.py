"""Every first stage on the toy: pools worked by hand, scores for what is outside them, and never an excluded document."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from actors import finder, first_stage as stages
from actors.algorithms import dense
from actors.algorithms.loops.dialogue import Pool
from actors.artifacts import lists as lists_files
from actors.artifacts.queries import Query
from actors.corpora.records import BadInput
from actors.encoder import Encoder
from actors.engines.build import Place
from actors.finder import Find, Finder, Found, not_found
from actors.first_stage import NO_LINE, UNKNOWN, Bm25, Start, build_first_stage
from actors.index import Index
from actors.roles import FINDER, asked_by, in_process
from actors.searcher import Searcher, pools_in_process
from conf import schema
from tests import toy

DEPTH = len(toy.POOL)
BM25 = schema.Bm25FirstStage("bm25", DEPTH, "plain")
DENSE = schema.DenseFirstStage("dense", DEPTH, "exact", 1)
HYBRID = schema.HybridFirstStage("hybrid", DEPTH, 0.5, "plain", "exact", 1)
# The query lies on the x axis: documents 0 4 8 have similarity 1, then 1 5 9 with .8, 2 6 10 with .6 and 3 7 11 with 0.
EAST = np.array([1, 0], np.float32)
NEAREST = [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]


async def east(index: str, text: str) -> np.ndarray:
    return EAST


async def find(asked: Find) -> Found:
    (found,) = await Finder(east, gpu=False).find([asked])
    return found


async def fails(asked: Find) -> Found:
    return not_found(asked, "failed: Timeout")


def begin(
    index: Index,
    node: schema.FirstStage,
    excluded: Sequence[int] = (),
    finder: Any = find,
    lists: str = "",
    text: str = toy.QUERY,
) -> Start:
    return asyncio.run(build_first_stage(node, index, finder, lists)(Query("q1", text, tuple(excluded))))


def scores(pool: Pool, *docs: int) -> list[float]:
    assert pool.score is not None
    return list(pool.score(list(docs)))


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two lists: even rows around (.8 .4), odd ones around (.4 .8)."""
    folder = tmp_path_factory.mktemp("lists")
    centroids = np.array([[0.8, 0.4], [0.4, 0.8]], np.float32)
    lists_files.write(folder, centroids, np.arange(12, dtype=np.int32) % 2, toy.VECTORS.astype(np.float16))
    return str(folder)


# --- bm25 -------------------------------------------------------------------------------------------------------------


def test_bm25_and_what_is_outside_its_pool(toy_index: Index) -> None:
    pool, usage = begin(toy_index, BM25, text="Copper!")
    assert pool.docs == toy.POOL and usage == {}
    two, four, five = scores(pool, 2, 4, 5)
    assert two == 0.0 < four < five
    assert toy_index.lexical_scores("copper", [2, 4, 5]).tolist() == [two, four, five]


def test_excluded_documents_make_room(toy_index: Index) -> None:
    assert begin(toy_index, BM25, (0, 6)).pool.docs == [3, 1, 8, 9, 5, 4]
    assert begin(toy_index, BM25, text="no such word").pool.docs == []


def test_between_retrievals_others_have_their_turn(toy_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """With retrievals that take long, the first query goes on before the second has its pool; with short ones they go together."""

    async def order(seconds: float) -> list[str]:
        monkeypatch.setattr(stages, "SLICE", seconds)
        seen, stage = [], Bm25(toy_index, DEPTH, "plain")

        async def answer(name: str) -> None:
            await stage(Query(name, toy.QUERY, ()))
            seen.append(f"{name} has a pool")
            await asyncio.sleep(0)
            seen.append(f"{name} goes on")

        await asyncio.gather(answer("a"), answer("b"), answer("c"))
        return seen

    pools, goings = [f"{name} has a pool" for name in "abc"], [f"{name} goes on" for name in "abc"]
    assert asyncio.run(order(3600.0)) == pools + goings
    slow = iter(range(1000))
    monkeypatch.setattr(stages.time, "perf_counter", lambda: float(next(slow)))  # every look at the clock is a second later
    told = asyncio.run(order(1.5))
    assert sorted(told) == sorted(pools + goings) and told.index("a goes on") < told.index("c has a pool")


def test_a_retrieval_that_fails_fails_its_query_alone(toy_index: Index) -> None:
    stage = Bm25(toy_index, DEPTH, "plain")

    async def three() -> list[Any]:
        queries = [Query("q", toy.QUERY, excluded) for excluded in ((), (99,), (0,))]
        return await asyncio.gather(*map(stage, queries), return_exceptions=True)

    good, bad, also = asyncio.run(three())
    assert good.pool.docs == toy.POOL and 0 not in also.pool.docs and isinstance(bad, ValueError)


# --- dense ------------------------------------------------------------------------------------------------------------


def test_dense_by_hand(toy_index: Index) -> None:
    pool, usage = begin(toy_index, DENSE)
    assert pool.docs == NEAREST[:DEPTH]
    assert usage == {"encoder": {"calls": 1, "judged": 0, "outcome ok": 1, "texts": 1}}
    assert scores(pool, 2, 3, 5) == [float(np.float16(0.6)), 0.0, float(np.float16(0.8))]
    assert begin(toy_index, DENSE, (4, 8)).pool.docs == [0, 1, 5, 9, 2, 6]


def test_lists_hold_what_is_near_their_centroid(toy_index: Index, lists: str) -> None:
    """The first list holds the even rows: 0 4 8 with 1, then 2 6 10 with .6."""
    in_lists = replace(DENSE, search="lists")
    assert begin(toy_index, in_lists, lists=lists).pool.docs == [0, 4, 8, 2, 6, 10]
    assert begin(toy_index, in_lists, (2, 4), lists=lists).pool.docs == [0, 8, 6, 10]
    assert begin(toy_index, replace(in_lists, probes=2), lists=lists).pool.docs == NEAREST[:DEPTH]
    assert scores(begin(toy_index, in_lists, lists=lists).pool, 1, 3) == [float(np.float16(0.8)), 0.0], "any document has a score"


def test_an_encoder_that_fails_leaves_no_pool_and_is_counted(toy_index: Index) -> None:
    pool, usage = begin(toy_index, DENSE, finder=fails)
    assert pool.docs == [] and usage == {"encoder": {"calls": 1, "judged": 0, "outcome failed: Timeout": 1}}


def test_queries_that_come_together_share_a_search_and_answer_as_each_alone(
    toy_index: Index, lists: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(toy_index.folder)
    asked = [
        Find(folder, "", "a", (), 3, 1), Find(folder, lists, "b", (0,), 3, 1), Find(folder, "", "c", (4, 8), 3, 1),
        Find(folder, lists, "d", (), 2, 2), Find(folder, "", "e", (), 12, 1),
    ]  # fmt: skip
    passes = []
    real = dense.exact
    monkeypatch.setattr(dense, "exact", lambda *given: passes.append(len(given[1])) or real(*given))
    together = asyncio.run(Finder(east, gpu=False).find(asked))
    assert passes == [2, 1], "those that want the same depth share a pass"
    for one, alone in zip(together, (asyncio.run(find(each)) for each in asked), strict=True):
        assert (one.rows.tolist(), one.scores.tolist(), one.outcome) == (alone.rows.tolist(), alone.scores.tolist(), "ok")


# --- hybrid -----------------------------------------------------------------------------------------------------------


def test_hybrid_is_the_plain_formula(toy_index: Index) -> None:
    """BM25 gives 0 3 1 6 8 9, similarity 0 4 8 (1) and 1 5 9 (.8, the worst: 0)."""
    lexical = toy_index.retrieve(toy.QUERY, (), DEPTH, "plain")
    assert lexical.rows.tolist() == toy.POOL
    bm25 = dict(zip(toy.POOL, lexical.scores.tolist(), strict=True))
    best, worst = bm25[0], bm25[9]
    similarity = {0: 1.0, 4: 1.0, 8: 1.0, 1: 0.0, 5: 0.0, 9: 0.0}
    for weight in (0.0, 0.25, 0.5, 1.0):
        total = {row: weight * (bm25[row] - worst) / (best - worst) if row in bm25 else 0.0 for row in {*bm25, *similarity}}
        total = {row: score + (1 - weight) * similarity.get(row, 0.0) for row, score in total.items()}
        expected = sorted(total, key=lambda row: (-round(total[row], 9), row))[:DEPTH]
        pool, usage = begin(toy_index, replace(HYBRID, lexical_weight=weight))
        assert pool.docs == expected, weight
        assert usage == {"encoder": {"calls": 1, "judged": 0, "outcome ok": 1, "texts": 1}}


def test_hybrid_scores_what_is_outside_by_the_same_lines(toy_index: Index) -> None:
    """Document 2 holds no query word and has similarity .6, where the pool spans .8 to 1: both its parts are below 0."""
    pool, _ = begin(toy_index, HYBRID)
    lexical = toy_index.retrieve(toy.QUERY, (), DEPTH, "plain").scores.astype(float)
    by_words = (0.0 - lexical[-1]) / (lexical[0] - lexical[-1])
    low, at = float(np.float16(0.8)), float(np.float16(0.6))
    by_vectors = (at - low) / (1.0 - low)
    assert scores(pool, 2, 0) == pytest.approx([0.5 * by_words + 0.5 * by_vectors, 1.0])
    assert by_words < 0 and by_vectors < 0


@pytest.mark.parametrize(("text", "finder", "expected"), [("unheard", find, NEAREST[:DEPTH]), (toy.QUERY, fails, toy.POOL)])
def test_one_of_the_two_stands_alone_where_the_other_has_nothing(
    toy_index: Index, text: str, finder: Any, expected: list[int]
) -> None:
    pool, usage = begin(toy_index, HYBRID, finder=finder, text=text)
    assert pool.docs == expected
    assert scores(pool, *expected) == sorted(scores(pool, *expected), reverse=True)
    assert ("outcome ok" in usage["encoder"]) == (finder is find)


# --- a run that was brought in ----------------------------------------------------------------------------------------


def brought(folder: Path, *lines: str) -> schema.RunFirstStage:
    path = folder / "their.tsv"
    path.write_text("".join(line.replace(" Q0 ", "\tQ0\t").replace(" | ", "\t") + "\n" for line in lines))
    return schema.RunFirstStage("run", str(path), DEPTH)


LINES = ("q1 Q0 doc 7 | 1 | 9 | x", "q1 Q0 doc 99 | 2 | 8 | x", "q1 Q0 doc 2 | 3 | 7 | x", "q1 Q0 doc 0 | 4 | 6 | x",
         "q2 Q0 doc 1 | 1 | 1 | x")  # fmt: skip


def test_a_run_s_order_and_what_is_unknown(toy_index: Index, tmp_path: Path) -> None:
    node = brought(tmp_path, *LINES)
    pool, usage = begin(toy_index, node, finder=None)
    assert pool.docs == [7, 2, 0] and usage == {"first_stage": {UNKNOWN: 1}}
    assert begin(toy_index, replace(node, depth=2), (2,)).pool.docs == [7, 0]
    other = asyncio.run(build_first_stage(node, toy_index, None, "")(Query("q2", toy.QUERY, ())))
    assert other.pool.docs == [1] and other.usage == {}
    absent = asyncio.run(build_first_stage(node, toy_index, None, "")(Query("q3", toy.QUERY, ())))
    assert absent == Start(Pool([]), {"first_stage": {NO_LINE: 1}})


def test_what_a_run_lacks_is_ordered_by_bm25(toy_index: Index, tmp_path: Path) -> None:
    pool, _ = begin(toy_index, brought(tmp_path, *LINES))
    assert scores(pool, 2, 4, 5) == toy_index.lexical_scores(toy.QUERY, [2, 4, 5]).tolist()


def test_ids_are_looked_up_once_for_all_queries(toy_index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, looked = brought(tmp_path, *LINES), []
    corpus = type(toy_index.corpus)
    real = corpus.rows_of
    monkeypatch.setattr(corpus, "rows_of", lambda self, ids: looked.append(list(ids)) or real(self, looked[-1]))
    for _ in range(3):
        begin(toy_index, node)
    assert looked == [["doc 7", "doc 99", "doc 2", "doc 0", "doc 1"]]


def test_a_broken_run_stops_the_query(toy_index: Index, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="line 1 is 'nothing'"):
        begin(toy_index, brought(tmp_path, "nothing"))


# --- all of them ------------------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 11)), st.integers(1, 12), st.data())
def test_excluded_documents_are_in_no_pool(
    toy_index: Index,
    lists: str,
    tmp_path_factory: pytest.TempPathFactory,
    excluded: set[int],
    depth: int,
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.getbasetemp() / "all.run"
    path.write_text("".join(f"q1\tQ0\tdoc {row}\t{row}\t{-row}\tx\n" for row in range(12)))
    search = data.draw(st.sampled_from(["exact", "lists"]))
    nodes: list[schema.FirstStage] = [
        schema.Bm25FirstStage("bm25", depth, "bm25"), schema.DenseFirstStage("dense", depth, search, 2),
        schema.HybridFirstStage("hybrid", depth, 0.3, "plain", search, 2), schema.RunFirstStage("run", str(path), depth),
    ]  # fmt: skip
    there = [row for row in range(12) if row not in excluded]
    for node in nodes:
        docs = begin(toy_index, node, sorted(excluded), lists=lists).pool.docs
        assert not set(docs) & excluded and len(docs) == len(set(docs)) <= depth
        if node.method in ("dense", "run"):
            assert len(docs) == min(depth, len(there)), "their place is taken by others"


def test_every_method_runs_on_every_first_stage(toy_index: Index, lists: str, tmp_path: Path) -> None:
    found = {}
    for node in (BM25, DENSE, replace(DENSE, search="lists"), HYBRID, brought(tmp_path, *LINES)):
        for loop in (toy_index.answering.loop, schema.Bm25Loop("bm25", 3), schema.SlidingLoop("slidegar", 4, 2, 8)):
            answering = replace(toy_index.answering, first_stage=node, loop=loop)
            roles = {**in_process(answering), FINDER: find}
            result = asyncio.run(Searcher(toy_index, answering, roles, lists=lists).answer(Query("q1", toy.QUERY, (3,))))
            assert "doc 3" not in result.doc_ids and len(result.doc_ids) == len(set(result.doc_ids)) >= 3
            found[node.method, loop.method] = result
    assert found["dense", "bm25"].usage["encoder"]["calls"] == 1 and "encoder" not in found["bm25", "bm25"].usage
    assert found["run", "garen"].usage["first_stage"] == {UNKNOWN: 1}
    assert found["run", "bm25"].doc_ids == ["doc 7", "doc 2", "doc 0"]
    assert found["hybrid", "garen"].usage["loop"]["from_groups"] > 0


def test_who_needs_the_encoder() -> None:
    def roles(node: schema.FirstStage, loop: schema.Loop) -> tuple[str, ...]:
        return asked_by(schema.Answering(node, loop, None, None))  # type: ignore[arg-type]

    run = schema.RunFirstStage("run", "", 1)
    assert [roles(node, schema.Bm25Loop("bm25", 1)) for node in (BM25, run)] == [(), ()]
    assert [roles(node, schema.Bm25Loop("bm25", 1)) for node in (DENSE, HYBRID)] == [("encoder",)] * 2
    repair = schema.RepairLoop("repair", 4, 2, 8, 2, 9, 1.0, 1.0)
    assert roles(DENSE, repair) == roles(BM25, repair) == ("reranker", "encoder")


@pytest.mark.parametrize(
    ("node", "finder", "said"),
    [
        (DENSE, None, "first_stage=dense asks the encoder, and there is none here"),
        (replace(HYBRID, search="lists"), find, r"first_stage\.search=lists: .* has no inverted lists"),
    ],
)
def test_what_is_missing_is_said(toy_index: Index, node: schema.FirstStage, finder: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        build_first_stage(node, toy_index, finder, "")


def test_pools_in_process(toy_index: Index) -> None:
    queries = [Query("q1", toy.QUERY, ()), Query("q2", toy.QUERY, (0, 6))]
    assert pools_in_process(toy_index, toy_index.answering, queries, "") == [toy.POOL, [3, 1, 8, 9, 5, 4]]


def test_an_index_remembers_every_first_stage(toy_index: Index) -> None:
    for node in (BM25, DENSE, HYBRID, schema.RunFirstStage("run", "/x", 3)):
        manifest = {**toy_index.manifest, "aside": {**toy_index.manifest["aside"]}}
        manifest["aside"]["answering"] = {**manifest["aside"]["answering"], "first_stage": vars(node)}
        assert Index(toy_index.folder, manifest).answering.first_stage == node


# --- where it is searched ---------------------------------------------------------------------------------------------


class Embedder:
    """The model of the toy: every text lies east."""

    def embed_query(self, text: str) -> Future[np.ndarray]:
        vector: Future[np.ndarray] = Future()
        vector.set_result(EAST)
        return vector


def test_the_encoder_in_the_searcher_finds(toy_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.judges.embedding.build_embedder", lambda node, cache, place: Embedder())
    answering = replace(toy_index.answering, first_stage=DENSE, loop=schema.Bm25Loop("bm25", 4))
    assert [hit.doc_id for hit in toy_index.search("anything", answering=answering)] == ["doc 0", "doc 4", "doc 8", "doc 1"]
    queries = [Query(f"q{n}", f"text {n}", (n,)) for n in range(20)]
    for pool, query in zip(pools_in_process(toy_index, answering, queries, ""), queries, strict=True):
        assert pool == [row for row in NEAREST if row not in query.excluded][:DEPTH]


@pytest.mark.parametrize(("gpus", "on_gpu"), [(0.0, False), (1.0, True)])
def test_vectors_lie_on_the_gpu_of_a_replica_that_has_one(
    toy_index: Index, lists: str, gpus: float, on_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []

    class OnGpu:
        def __init__(self, vectors: np.ndarray) -> None:
            copied.append(len(vectors))
            self._vectors = vectors

        def search(self, *given: Any) -> list[dense.Ranked]:
            return dense.exact(self._vectors, *given)

    monkeypatch.setattr("actors.judges.embedding.build_embedder", lambda node, cache, place: Embedder())
    monkeypatch.setattr(dense, "OnGpu", OnGpu)
    replica = Encoder(toy_index.answering.reranker, Place(1, 0.9, schema.Endpoint(1, 1.0, 1, 0), gpus))
    asked = [Find(str(toy_index.folder), there, "text", (), 3, 2) for there in ("", lists, "")]

    async def twice() -> list[Found]:
        await replica.start()
        return [*await replica.find(asked), *await replica.find(asked)]

    try:
        assert {tuple(found.rows.tolist()) for found in asyncio.run(twice())} == {(0, 4, 8)}
    finally:
        finder._on_gpu.cache_clear()
    assert copied == ([12] if on_gpu else [])


def test_lists_that_lie_beside_an_index_are_found_when_they_are_the_only_ones(toy_index: Index, tmp_path: Path) -> None:
    """For a notebook, where no settings say which."""
    shutil.copytree(toy_index.folder.parent, tmp_path / "toy")
    index = Index.open(tmp_path / "toy" / toy_index.folder.name)
    node = replace(DENSE, search="lists")
    assert index.lists == ""

    def write(folder: Path) -> None:
        lists_files.write(folder, np.eye(2, dtype=np.float32), np.zeros(12, np.int32), toy.VECTORS.astype(np.float16))

    toy.build(tmp_path, "lists", write, {"embeddings": "embeddings-of-another"})
    assert index.lists == ""
    name = toy.build(tmp_path, "lists", write, {"embeddings": index.manifest["inputs"]["embeddings"]})
    assert index.lists == str(tmp_path / "toy" / name) and begin(index, node).pool.docs == NEAREST[:DEPTH]
    toy.build(tmp_path, "lists", write, {"embeddings": index.manifest["inputs"]["embeddings"]}, config={"number": 2})
    with pytest.raises(ValueError, match="has no inverted lists, or several that fit it"):
        begin(index, node)
    named = Index(index.folder, {**index.manifest, "aside": {**index.manifest["aside"], "lists": name}})
    assert named.lists == str(tmp_path / "toy" / name)
