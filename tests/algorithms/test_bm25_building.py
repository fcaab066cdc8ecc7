from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Iterator

import bm25s
import numpy as np
import pytest
from hypothesis import given, strategies as st

from actors.algorithms import bm25_building as building, vocabularies
from actors.algorithms.terms import Analyzer
from tests.algorithms.test_bm25 import CORPORA, ENGLISH, EXAMPLES, K1, PLAIN, B, fruit

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


def test_a_shard_by_hand():
    """Ends with the text that reaches four words; a stop word is one, but not in the length or among the pairs."""
    one, two = building.read(["red the red", "tree", "", "apple"], Analyzer("none", "english"), 4)
    assert one.vocabulary.bytes.tobytes() == b"redtree" and one.vocabulary.offsets.tolist() == [0, 3, 7]
    assert (one.frequency.tolist(), one.lengths.tolist(), one.row_pairs.tolist()) == ([1, 1], [2, 1], [1, 1])
    assert (one.pair_terms.tolist(), one.pair_counts.tolist()) == ([0, 1], [2, 1])
    assert (two.vocabulary.bytes.tobytes(), two.lengths.tolist()) == (b"apple", [0, 1])
    assert {array.dtype for shard in (one, two) for array in shard[1:]} == {np.dtype(np.int32)}


def test_vocabularies_are_merged_in_the_order_of_their_bytes(monkeypatch: pytest.MonkeyPatch):
    """U+FFFD sorts before U+10000 as bytes, and behind it in UTF-16."""
    texts = ["b \u6771 \U00020000", "a \u00e9", "zz b \uff21"]
    for together in (1, 3, 100):
        monkeypatch.setattr(vocabularies, "TERMS_AT_ONCE", together)
        own = [shard.vocabulary for shard in building.read(texts, PLAIN, 1)]
        whole = vocabularies.merge(own)
        assert whole.bytes.tobytes() == "abzz\u00e9\u6771\uff41\U00020000".encode()
        assert [ids.tolist() for ids in vocabularies.places(own, whole)] == [[1, 4, 6], [0, 3], [1, 2, 5]]


def test_ranges_are_cut_between_terms():
    """Terms of 3, 1, 6 and 2 postings: 4 to a range, and the third term is a range of its own though it has more."""
    offsets = np.array([0, 3, 4, 10, 12])
    assert building.ranges(offsets, 0, 12, 4) == [(0, 4), (4, 10), (10, 12)]
    assert building.ranges(offsets, 4, 12, 1) == [(4, 10), (10, 12)]
    assert building.ranges(offsets, 3, 10, 100) == [(3, 10)]


# --- properties and oracles -------------------------------------------------------------------------------------------


@EXAMPLES
@given(CORPORA)
def test_both_indexes_hold_the_same_weights_in_order(texts: list[str]):
    lexicon = building.build(texts, PLAIN, K1, B)
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

    assert len(building.build(texts(), PLAIN, K1, B).forward_offsets) == 51


@EXAMPLES
@given(CORPORA, st.floats(0, 3), st.floats(0, 1))
def test_the_weights_are_those_of_bm25s_bit_for_bit(texts: list[str], k1: float, b: float):
    lexicon = building.build(texts, PLAIN, k1, b)
    words = [text.split() for text in texts]
    terms = sorted({word for document in words for word in document})
    ids = [[terms.index(word) for word in document] for document in words]
    oracle = bm25s.BM25(k1=k1, b=b, method="lucene", csc_backend="scipy")
    made = oracle.build_index_from_ids(range(len(terms)), ids, show_progress=False)
    assert lexicon.posting_offsets.tolist() == made["indptr"].tolist()
    assert lexicon.posting_rows.tolist() == made["indices"].tolist()
    assert lexicon.posting_weights.tobytes() == made["data"].tobytes()


@EXAMPLES
@given(CORPORA, st.integers(1, 40), st.integers(1, 9))
def test_shards_make_no_difference(texts: list[str], tokens: int, together: int):
    whole = building.build(texts, PLAIN, K1, B)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(building, "TOKENS", tokens)
        patched.setattr(vocabularies, "TERMS_AT_ONCE", together)
        cut = building.build(texts, PLAIN, K1, B)
    for name, values in vars(whole).items():
        assert np.asarray(values).tobytes() == np.asarray(getattr(cut, name)).tobytes(), name
        assert np.asarray(values).dtype == np.asarray(getattr(cut, name)).dtype


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [[], ["", "the of"]])
def test_a_corpus_without_a_term_is_refused(texts: list[str]):
    with pytest.raises(ValueError, match=f"none of its {len(texts)} documents holds a term"):
        building.build(texts, ENGLISH, K1, B)
