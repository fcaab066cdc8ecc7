from __future__ import annotations

import csv
import gzip
import json
import math
import os
import pickle
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import bm25s
import numpy as np
import pytest
import pytrec_eval
from bm25s.stopwords import STOPWORDS_EN
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from actors.algorithms import bm25

K1, B = 0.9, 0.4
PLAIN = bm25.Analyzer("none", "none")
ENGLISH = bm25.Analyzer("english", "english")
FRUIT = ["red apple", "Red red pear tree", "", "green tree"]  # 8 terms in 4 documents: avgdl = 2

WORDS = st.sampled_from(["a", "b", "c", "d", "ee", "é"])
SENTENCES = st.lists(WORDS, max_size=9).map(" ".join)
CORPORA = st.lists(SENTENCES, min_size=1, max_size=12).filter(any)
WEIGHTINGS = st.sampled_from(bm25.WEIGHTINGS)
EXAMPLES = settings(max_examples=60, deadline=None)


def fruit() -> bm25.BuiltLexicon:
    return bm25.build(iter(FRUIT), PLAIN, K1, B)


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


# --- text to terms ----------------------------------------------------------------------------------------------------


def test_tokens_keep_the_surface_beside_the_term():
    assert ENGLISH.tokens("The Runners were running, in 2 races") == [
        ("Runners", "runner"), ("were", "were"), ("running", "run"), ("2", "2"), ("races", "race"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("pandas.read_csv(path)", ["pandas", "read", "csv", "path"]),
        ("vitamin K, C++ and R", ["vitamin", "k", "c", "and", "r"]),
        ("Ärzte in ΑΘΉΝΑ 東京", ["ärzte", "in", "αθήνα", "東京"]),
        ("cafe\u0301", ["caf\u00e9"]),
        (" _ -- \n", []),
    ],
)
def test_words_are_runs_of_letters_and_digits(text: str, terms: list[str]):
    assert PLAIN.terms(text) == terms


@EXAMPLES
@given(st.text("aBs É_'0İß.東\u0301", max_size=40))
def test_terms_are_the_second_half_of_tokens(text: str):
    assert ENGLISH.terms(text) == [term for _, term in ENGLISH.tokens(text)]


def test_the_english_stop_words_are_lucenes():
    assert bm25.STOP_WORDS["english"] == set(STOPWORDS_EN)


def test_an_analyzer_survives_pickling():
    again = pickle.loads(pickle.dumps(ENGLISH))
    assert again.terms("the running dogs") == ["run", "dog"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("klingon", "none"), "stemmer: 'klingon'; expected one of english, none"),
        (("none", "all"), "stop_words: 'all'; expected one of english, none"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(names: tuple[str, str], message: str):
    with pytest.raises(ValueError, match=message):
        bm25.Analyzer(*names)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_weights_by_hand():
    """apple, green, pear, red, tree; red and tree have df 2: idf = ln(5 / 2.5) = ln 2; the others ln(5 / 1.5).

    norm = 0.9 * (0.6 + 0.4 * |d| / 2): 0.9 for the two documents of two terms, 1.26 for the one of four.
    """
    lexicon, common, rare = fruit(), math.log(2), math.log(5 / 1.5)
    assert lexicon.term_bytes.tobytes() == b"applegreenpearredtree"
    assert lexicon.term_offsets.tolist() == [0, 5, 10, 14, 17, 21]
    assert np.diff(lexicon.posting_offsets).tolist() == [1, 1, 1, 2, 2]
    assert lexicon.posting_rows.tolist() == [0, 3, 1, 0, 1, 1, 3]
    red = [common / 1.9, common * 2 / 3.26]
    tree = [common / 2.26, common / 1.9]
    np.testing.assert_allclose(lexicon.posting_weights, [rare / 1.9, rare / 1.9, rare / 2.26, *red, *tree], rtol=1e-6)
    assert lexicon.forward_offsets.tolist() == [0, 2, 5, 5, 7]
    assert lexicon.forward_terms.tolist() == [0, 3, 2, 3, 4, 1, 4]
    assert lexicon.average_length == 2


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
    assert bm25.document_frequency(fruit(), ["tree", "kiwi", "apple", "tree"]).tolist() == [2, 0, 1, 2]
    assert bm25.document_frequency(fruit(), []).tolist() == []


def test_excluded_rows_are_never_in_the_pool():
    assert [row for row, _ in pool(fruit(), "red tree", excluded=[1, 2])] == [0, 3]


def test_the_pool_is_cut_inside_a_tie_by_row():
    lexicon = bm25.build(["a b", "a c", "a a", "a d"], PLAIN, K1, B)
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
    lexicon = bm25.build(texts, PLAIN, K1, B)
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
    lexicon, terms = bm25.build(texts, PLAIN, K1, B), query.split()
    out = sorted(row for row in excluded if row < len(texts))
    scores = bm25.score(lexicon, terms, range(len(texts)), weighting=weighting).tolist()
    expected = sorted((-score, row) for row, score in enumerate(scores) if score > 0 and row not in out)[:depth]
    assert pool(lexicon, query, depth, excluded=out, weighting=weighting) == [(row, -score) for score, row in expected]


def test_scores_equal_the_pool_bit_for_bit_on_a_larger_corpus():
    rng = np.random.default_rng(3)
    texts = [" ".join(f"w{word}" for word in rng.zipf(1.3, rng.integers(0, 80)) if word < 500) for _ in range(3000)]
    lexicon = bm25.build(texts, PLAIN, K1, B)
    for weighting in bm25.WEIGHTINGS:
        terms = [f"w{word}" for word in rng.integers(1, 60, 40)]
        rows, scores = bm25.retrieve(lexicon, terms, 1000, weighting=weighting)
        assert len(rows) == 1000
        assert rows.dtype == np.int32 and scores.dtype == np.float32
        assert bm25.score(lexicon, terms, rows, weighting=weighting).tobytes() == scores.tobytes()


@EXAMPLES
@given(CORPORA)
def test_both_indexes_hold_the_same_weights_in_order(texts: list[str]):
    lexicon = bm25.build(texts, PLAIN, K1, B)
    terms = np.repeat(np.arange(len(lexicon.term_offsets) - 1), np.diff(lexicon.posting_offsets)).tolist()
    rows = np.repeat(np.arange(len(texts)), np.diff(lexicon.forward_offsets)).tolist()
    postings = list(zip(terms, lexicon.posting_rows.tolist(), lexicon.posting_weights.tolist(), strict=True))
    forward = list(zip(rows, lexicon.forward_terms.tolist(), lexicon.forward_weights.tolist(), strict=True))
    assert postings == sorted(postings)
    assert forward == sorted((row, term, weight) for term, row, weight in postings)
    assert Counter(rows) == {row: len(set(text.split())) for row, text in enumerate(texts) if text}


def test_building_twice_gives_the_same_bytes():
    one, two = vars(fruit()), vars(fruit())
    for name, values in one.items():
        assert np.asarray(values).tobytes() == np.asarray(two[name]).tobytes()


class Text(str):
    """A str that can be watched."""


def test_texts_are_not_held_while_building():
    watched: list[weakref.ref[Text]] = []

    def texts() -> Iterator[str]:
        for number in range(50):
            assert sum(ref() is not None for ref in watched) <= 1
            text = Text(f"document number {number}")
            watched.append(weakref.ref(text))
            yield text
            del text

    assert len(bm25.build(texts(), PLAIN, K1, B).forward_offsets) == 51


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [[], ["", "the of"]])
def test_a_corpus_without_a_term_is_refused(texts: list[str]):
    with pytest.raises(ValueError, match=f"none of its {len(texts)} documents holds a term"):
        bm25.build(texts, ENGLISH, K1, B)


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
    lexicon = bm25.build((f"{doc.get('title', '')}\n{doc['text']}" for doc in documents), ENGLISH, K1, B)
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
