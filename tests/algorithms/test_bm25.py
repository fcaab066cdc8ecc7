from __future__ import annotations

import csv
import gzip
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import bm25s
import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given, settings, strategies as st

from actors.algorithms import bm25, bm25_building as building
from actors.algorithms.terms import Analyzer

K1, B = 0.9, 0.4
PLAIN = Analyzer("none", "none")
ENGLISH = Analyzer("english", "english")
FRUIT = ["red apple", "Red red pear tree", "", "green tree"]  # 8 terms in 4 documents: avgdl = 2

WORDS = st.sampled_from(["a", "b", "c", "d", "ee", "é"])
SENTENCES = st.lists(WORDS, max_size=9).map(" ".join)
CORPORA = st.lists(SENTENCES, min_size=1, max_size=12).filter(any)
WEIGHTINGS = st.sampled_from(bm25.WEIGHTINGS)
EXAMPLES = settings(max_examples=60, deadline=None)


def fruit() -> building.BuiltLexicon:
    return building.build(iter(FRUIT), PLAIN, K1, B)


def pool(lexicon: bm25.Lexicon, text: str, depth: int = 10, **kwargs: object) -> list[tuple[int, float]]:
    rows, scores = bm25.retrieve(lexicon, text.split(), depth, **kwargs)  # type: ignore[arg-type]
    return list(zip(rows.tolist(), scores.tolist(), strict=True))


def written_out(texts: list[str], query: str, row: int) -> float:
    """The formula of the module's docstring in float64, summed over the query's words as they stand."""
    documents = [text.lower().split() for text in texts]
    average = sum(map(len, documents)) / len(documents)
    total = 0.0
    for term in query.split():
        frequency = sum(term in document for document in documents)
        occurrences = documents[row].count(term)
        norm = K1 * (1 - B + B * len(documents[row]) / average)
        total += math.log((len(texts) + 1) / (frequency + 0.5)) * occurrences / (occurrences + norm)
    return total


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_pool_by_hand():
    """Rows 0 and 3 tie at ln 2 / 1.9 and come by row; the empty row 2 scores 0 and is not in the pool."""
    ranked = pool(fruit(), "red tree")
    assert [row for row, _ in ranked] == [1, 0, 3]
    expected = [math.log(2) * (2 / 3.26 + 1 / 2.26), math.log(2) / 1.9, math.log(2) / 1.9]
    assert [score for _, score in ranked] == pytest.approx(expected, rel=1e-6)


def test_query_weights_by_hand():
    """ "red red pear": |q| = 3 of avgdl 2, norm = 0.9 * (0.6 + 0.4 * 1.5) = 1.08; "kiwi" is not known and not counted."""
    lexicon, terms = fruit(), ["red", "kiwi", "pear", "red"]
    ids, plain = bm25.query_weights(lexicon, terms, "plain")
    assert (ids.tolist(), plain.tolist()) == ([2, 3], [1.0, 2.0])
    _, weighed = bm25.query_weights(lexicon, terms, "bm25")
    np.testing.assert_allclose(weighed, [math.log(5 / 1.5) / 2.08, math.log(2) * 2 / 3.08], rtol=1e-6)
    scores = bm25.score(lexicon, terms, [0], weighting="bm25")
    np.testing.assert_allclose(scores, [math.log(2) * 2 / 3.08 * math.log(2) / 1.9], rtol=1e-6)


def test_a_repeated_query_term_counts_as_often_as_it_occurs():
    once, twice = pool(fruit(), "red"), pool(fruit(), "red red")
    assert twice == [(row, 2 * score) for row, score in once]


def test_document_frequency_by_hand():
    assert bm25.document_frequency(fruit(), [3, 2, 0]) == {"green": 1, "tree": 2, "red": 2, "apple": 1}
    assert bm25.document_frequency(fruit(), [2]) == bm25.document_frequency(fruit(), []) == {}


def test_excluded_rows_are_never_in_the_pool():
    assert [row for row, _ in pool(fruit(), "red tree", excluded=[1, 2])] == [0, 3]


def test_the_pool_is_cut_inside_a_tie_by_row():
    lexicon = building.build(["a b", "a c", "a a", "a d"], PLAIN, K1, B)
    assert [row for row, _ in pool(lexicon, "a", depth=3)] == [2, 0, 1]


@pytest.mark.parametrize("query", ["", "kiwi", "zzz 0"])
def test_a_query_without_a_known_term_finds_nothing(query: str):
    assert pool(fruit(), query) == []
    assert bm25.score(fruit(), query.split(), [3, 0, 0]).tolist() == [0, 0, 0]


def test_scores_come_in_the_order_of_the_rows_asked_for():
    by_row = dict(pool(fruit(), "red tree"))
    assert bm25.score(fruit(), ["red", "tree"], [3, 1, 2, 1]).tolist() == [by_row[3], by_row[1], 0, by_row[1]]
    assert bm25.score(fruit(), ["red"], []).tolist() == []


# --- properties and oracles -------------------------------------------------------------------------------------------


@EXAMPLES
@given(CORPORA, SENTENCES)
def test_plain_scores_are_the_formula_and_those_of_bm25s(texts: list[str], query: str):
    lexicon = building.build(texts, PLAIN, K1, B)
    scores = bm25.score(lexicon, query.split(), range(len(texts)))
    np.testing.assert_allclose(scores, [written_out(texts, query, row) for row in range(len(texts))], rtol=1e-5)
    known = [term for term in query.split() if any(term in text.split() for text in texts)]
    assume(known and all(texts))  # bm25s warns on empty documents
    oracle = bm25s.BM25(k1=K1, b=B, method="lucene")
    oracle.index([text.split() for text in texts], show_progress=False)
    np.testing.assert_allclose(scores, oracle.get_scores(known), rtol=1e-5)


@EXAMPLES
@given(CORPORA, SENTENCES, st.integers(1, 14), st.sets(st.integers(0, 11)), WEIGHTINGS)
def test_a_pool_is_all_scores_sorted(texts: list[str], query: str, depth: int, excluded: set[int], weighting: str):
    lexicon, terms = building.build(texts, PLAIN, K1, B), query.split()
    out = sorted(row for row in excluded if row < len(texts))
    scores = bm25.score(lexicon, terms, range(len(texts)), weighting=weighting).tolist()
    expected = sorted((-score, row) for row, score in enumerate(scores) if score > 0 and row not in out)[:depth]
    assert pool(lexicon, query, depth, excluded=out, weighting=weighting) == [(row, -score) for score, row in expected]


@EXAMPLES
@given(CORPORA, SENTENCES, st.integers(1, 14), st.integers(1, 5), st.sets(st.integers(0, 11)), WEIGHTINGS)
def test_how_many_rows_are_scored_at_a_time_makes_no_difference(
    texts: list[str], query: str, depth: int, rows: int, excluded: set[int], weighting: str
):
    lexicon, out = building.build(texts, PLAIN, K1, B), [row for row in excluded if row < len(texts)]
    whole = bm25.retrieve(lexicon, query.split(), depth, out, weighting=weighting)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bm25, "RANGE", rows)
        cut = bm25.retrieve(lexicon, query.split(), depth, out, weighting=weighting)
    assert [a.tobytes() for a in cut] == [a.tobytes() for a in whole]


@pytest.mark.parametrize("rows", [bm25.RANGE, 700])
def test_scores_equal_the_pool_bit_for_bit_on_a_larger_corpus(rows: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bm25, "RANGE", rows)
    rng = np.random.default_rng(3)
    texts = [" ".join(f"w{word}" for word in rng.zipf(1.3, rng.integers(0, 80)) if word < 500) for _ in range(3000)]
    lexicon = building.build(texts, PLAIN, K1, B)
    for weighting in bm25.WEIGHTINGS:
        terms = [f"w{word}" for word in rng.integers(1, 60, 40)]
        found, scores = bm25.retrieve(lexicon, terms, 1000, weighting=weighting)
        assert len(found) == 1000
        assert found.dtype == np.int32 and scores.dtype == np.float32
        assert bm25.score(lexicon, terms, found, weighting=weighting).tobytes() == scores.tobytes()


@pytest.mark.parametrize("depth", [1, 10, 100, 1000, 2999])
@pytest.mark.parametrize("words", [3, 300])
def test_a_pool_of_many_rows_is_all_scores_sorted(words: int, depth: int):
    """With three words most rows tie: the last of the pool is chosen by row."""
    rng = np.random.default_rng(4)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, words, rng.integers(0, 4))) for _ in range(3000)]
    lexicon, terms = building.build(texts, PLAIN, K1, B), [f"w{word}" for word in range(0, words, 2)]
    scores = bm25.score(lexicon, terms, range(len(texts)))
    expected = sorted((-score, row) for row, score in enumerate(scores.tolist()) if score > 0)[:depth]
    assert len(expected) == min(depth, np.count_nonzero(scores))
    assert pool(lexicon, " ".join(terms), depth) == [(row, -score) for score, row in expected]


def test_the_floor_is_exceeded_by_as_many_rows_as_the_pool_takes():
    rng = np.random.default_rng(6)
    for highest in (2, 30, 10_000):
        scores = rng.integers(0, highest, 4000).astype(np.float32)
        floors = {depth: bm25._floor(scores, depth) for depth in (16, 100, 900, 3900)}
        assert all(floor == 0 or np.count_nonzero(scores > floor) >= depth for depth, floor in floors.items())
        assert highest < 1000 or floors[100] > 0, "it never helps"


def test_a_process_that_only_searches_is_spared_what_builds():
    """scipy, numba and bm25s are 85 MB of private memory in every searcher."""
    script = "import sys; import actors.algorithms.bm25; print(*{'scipy', 'numba', 'bm25s', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [-1, 4])
def test_rows_of_another_corpus_are_refused(row: int):
    with pytest.raises(ValueError, match=f"row: {row}; expected 0 to 3"):
        bm25.score(fruit(), ["red"], [0, row])
    with pytest.raises(ValueError, match=f"row: {row}; expected 0 to 3"):
        bm25.retrieve(fruit(), ["red"], 3, [row])


def test_depth_and_weighting_are_checked():
    with pytest.raises(ValueError, match="depth: 0"):
        bm25.retrieve(fruit(), ["red"], 0)
    with pytest.raises(ValueError, match="weighting: 'idf'; expected one of plain, bm25"):
        bm25.retrieve(fruit(), ["red"], 3, weighting="idf")


# --- real collections -------------------------------------------------------------------------------------------------


def collection(name: str) -> Path:
    if "GAREN_COLLECTIONS" not in os.environ:
        pytest.skip("set GAREN_COLLECTIONS to a folder of BEIR collections")
    return Path(os.environ["GAREN_COLLECTIONS"]) / name


def ndcg(folder: Path, weighting: str) -> float:
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    qrels: dict[str, dict[str, int]] = {}
    for query_id, doc_id, relevance in list(csv.reader((folder / "qrels/test.tsv").open(), delimiter="\t"))[1:]:
        qrels.setdefault(query_id, {})[doc_id] = int(relevance)
    judged = {query_id for query_id, judgements in qrels.items() if max(judgements.values()) > 0}
    lexicon = building.build((f"{doc.get('title', '')}\n{doc['text']}" for doc in documents), ENGLISH, K1, B)
    run = {}
    for query in queries:
        if query["_id"] in judged:
            rows, _ = bm25.retrieve(lexicon, ENGLISH.terms(query["text"]), 1000, weighting=weighting)
            run[query["_id"]] = {documents[row]["_id"]: float(-place) for place, row in enumerate(rows)}
    assert set(run) == judged
    measured = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(run)
    return sum(values["ndcg_cut_10"] for values in measured.values()) / len(measured)


@pytest.mark.collection
@pytest.mark.parametrize(
    ("name", "weighting", "expected"),
    [
        ("scifact", "plain", 0.676),
        ("cranfield", "plain", 0.343),
        ("vaswani", "plain", 0.445),
        ("bright_pony_long_rebuilt", "plain", 0.226),
        ("bright_pony_long_rebuilt", "bm25", 0.230),
    ],
)
def test_ndcg_at_10_on_a_collection(name: str, weighting: str, expected: float):
    assert ndcg(collection(name), weighting) == pytest.approx(expected, abs=0.005)
