"""Texts: the spelling by hand, spans that agree, Zipf's law, and that a stemmer keeps all words apart."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from actors.algorithms import topic_texts
from actors.algorithms.terms import Analyzer
from actors.algorithms.topic_texts import FIRST_OF, NO_NODE, Language, Tokens
from actors.algorithms.topics import Topics

TOPICS = Topics(documents=60_000, leaf_documents=12.0, branching=8, near_duplicates=0.03, isolated=0.02, seed=0)
LANGUAGE = Language(
    vocabulary=100.0, node_words=8, topic_share=0.5, reworded=0.4, words=45.0, words_spread=0.5, changed=0.08
)  # 24,495 words at large


def texts_of(tokens: Tokens) -> list[str]:
    letters, offsets = topic_texts.spelled(tokens)
    whole = letters.tobytes().decode("ascii")
    return [whole[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]


def test_spelling_by_hand() -> None:
    """80 syllables inside, 48 at the end; 80 * 48 = 3,840 words of two."""
    assert topic_texts.spell([0, 1, 47, 48]) == "baba babo bazu beba"
    assert topic_texts.spell([3839, 3840, 3840 + 48, 3840 + 80 * 48]) == "zuzu bababa babeba bebaba"
    assert FIRST_OF.tolist() == [0, 3840, 311_040, 24_887_040, 1_990_967_040]


def test_sentences() -> None:
    """Eleven words and one: a sentence has nine, each text begins one, and ends with a full stop and no blank."""
    texts = texts_of(Tokens(np.zeros(12, np.int64), np.array([0, 11, 12])))
    assert texts == ["Baba" + " baba" * 8 + ". Baba baba.", "Baba."]


@given(st.integers(0, int(FIRST_OF[-1]) - 1))
def test_a_word_tells_its_number(number: int) -> None:
    assert topic_texts.number_of(topic_texts.spell([number])) == number


@pytest.mark.parametrize("word", ["", "ba", "babe", "bab", "english", "xaba", "babababababa", "baxa"])
def test_other_words_tell_none(word: str) -> None:
    assert topic_texts.number_of(word) == -1


def test_a_node_s_words_tell_the_node_and_others_none() -> None:
    nodes = np.arange(TOPICS.first_nodes[-1])
    for wording in (0, 1):
        words = topic_texts.node_word(TOPICS, LANGUAGE, nodes, np.full(len(nodes), wording), nodes % 8)
        assert [topic_texts.node_of(TOPICS, LANGUAGE, word) for word in words.tolist()] == nodes.tolist()
    common = LANGUAGE.common(TOPICS)
    outside = (0, common - 1, common + 2 * 8 * int(TOPICS.first_nodes[-1]), -1)
    assert [topic_texts.node_of(TOPICS, LANGUAGE, word) for word in outside] == [NO_NODE] * 4


def test_any_span_has_the_same_texts() -> None:
    rows = np.arange(700)
    whole = texts_of(topic_texts.tokens(TOPICS, LANGUAGE, rows))
    for first, last in ((0, 1), (1, 350), (350, 700), (699, 700)):
        assert texts_of(topic_texts.tokens(TOPICS, LANGUAGE, rows[first:last])) == whole[first:last]
    assert texts_of(topic_texts.tokens(TOPICS, LANGUAGE, rows[::-7])) == whole[::-7]


def test_lengths() -> None:
    lengths = np.diff(topic_texts.tokens(TOPICS, LANGUAGE, np.arange(20_000)).offsets)
    assert abs(lengths.mean() - 45) < 1.5
    assert abs(np.log(lengths).std() - 0.5) < 0.05
    assert lengths.min() >= 9 and lengths.max() <= 360


def test_frequencies_follow_zipf_s_law() -> None:
    """The slope of log frequency over log rank is near -1, measured over two orders of magnitude of the rank."""
    words = topic_texts.tokens(TOPICS, LANGUAGE, np.arange(20_000)).words
    frequency = np.sort(np.bincount(words))[::-1]
    ranks = np.unique(np.geomspace(10, 3000, 40).astype(int))
    slope, _ = np.polyfit(np.log(ranks), np.log(frequency[ranks - 1]), 1)
    assert -1.25 < slope < -0.75


def test_a_near_duplicate_shares_most_words_in_place_and_others_do_not() -> None:
    rows = np.arange(20_000)
    sources = TOPICS.sources(rows)
    copies = rows[sources != rows]
    own, theirs = (topic_texts.tokens(TOPICS, LANGUAGE, each) for each in (copies, sources[copies]))
    assert (own.offsets == theirs.offsets).all()
    same = np.add.reduceat(own.words == theirs.words, own.offsets[:-1]) / np.diff(own.offsets)
    assert 0.9 < same.mean() < 0.95 and same.min() > 0.5


def test_documents_tell_their_topics_in_one_wording_and_isolated_ones_tell_none() -> None:
    rows = np.arange(3000)[TOPICS.sources(np.arange(3000)) == np.arange(3000)]
    words, offsets = topic_texts.tokens(TOPICS, LANGUAGE, rows)
    leaves, common = TOPICS.leaf_of(rows), LANGUAGE.common(TOPICS)
    wordings = []
    for leaf, first, last in zip(leaves.tolist(), offsets, offsets[1:], strict=False):
        named = words[first:last][words[first:last] >= common]
        if leaf < 0:
            assert not len(named)
            continue
        nodes, wording = np.divmod((named - common) // 8, 2)
        assert np.isin(nodes, TOPICS.path(np.array([leaf]))).all()
        assert len(np.unique(wording)) <= 1
        wordings += np.unique(wording).tolist()
    assert abs(np.mean(wordings) - 0.4) < 0.03


def test_the_analyzer_keeps_the_words_apart() -> None:
    """No word of any length is a stop word, and none loses its end."""
    numbers = [*range(0, 3840, 3), *range(3840, 311_040, 97), *range(311_040, 3_000_000, 1009)]
    words = topic_texts.spell(numbers).split()
    assert Analyzer("english", "english").terms(" ".join(words)) == words
    assert all(re.fullmatch("[a-z]{4,8}", word) for word in words) and len(set(words)) == len(numbers)
