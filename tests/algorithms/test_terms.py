from __future__ import annotations

import pickle
import unicodedata

import pytest
from bm25s.stopwords import STOPWORDS_EN
from hypothesis import given, settings, strategies as st

from actors.algorithms.terms import STOP_WORDS, WORD, Analyzer, words

PLAIN = Analyzer("none", "none")
ENGLISH = Analyzer("english", "english")
EXAMPLES = settings(max_examples=60, deadline=None)


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
    assert STOP_WORDS["english"] == set(STOPWORDS_EN)


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
        Analyzer(*names)


@EXAMPLES
@given(st.text("aBs É_'0İß.東\u0301", max_size=40))
def test_terms_are_those_of_the_words_one_by_one(text: str):
    found = [ENGLISH.term(word) for word in words(text)]
    assert [term for term in found if term is not None] == ENGLISH.terms(text)


@EXAMPLES
@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_words_of_plain_ascii_are_those_of_the_pattern(text: str):
    assert words(text) == WORD.findall(unicodedata.normalize("NFC", text))
