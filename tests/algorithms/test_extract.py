from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from actors.algorithms.concept import FILLER_LETTERS, NO_TEXT, Sentence, Term, Vocabulary, concept
from actors.algorithms.extract import ExtractLimits, GroupSummary, extract
from actors.algorithms.sentences import cut, split_sentences

LIMITS = ExtractLimits(
    concept_words=5,
    sentences=(4, 8),
    sentence_characters=240,
    documents=64,
    document_characters=8000,
    duplicate_similarity=0.95,
    relevance=0.7,
)
STOP_WORDS = {"a", "the", "of", "and", "is", "are", "in", "to", "from", "we"}
MARROW = [
    "Stem cells in bone marrow. The weather was fine.",
    "Stem cells renew bone marrow after injury. A second remark follows.",
    "Cultured stem cells grow slowly. The bone marrow was sampled.",
]
OTHERS = ["The weather was bad.", "Injury law.", "A remark.", "Cells of a prison.", "Cultured people.", "Fine second weather."]

TERMS = ["abc", "def", "ghij", "klmno", "pqrst", "x", "12", "yz3", "uvwx", "antidisestablishmentarianism"]


def tokens(text: str) -> list[tuple[str, str]]:
    words = [w for w in re.findall(r"\w+", text) if w.lower() not in STOP_WORDS]
    return [(w, w.lower().rstrip("s")) for w in words]


def unit(n: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def summary(
    texts: Sequence[str], others: Sequence[str] = (), limits: ExtractLimits = LIMITS, vectors: NDArray[np.float32] | None = None
) -> GroupSummary:
    frequency = Counter(term for text in (*texts, *others) for term in {term for _, term in tokens(text)})
    given_vectors = unit(len(texts)) if vectors is None else vectors
    return extract(texts, given_vectors, tokens, frequency, len(texts) + len(others), limits)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One here. Two here! Three?", ["One here.", "Two here!", "Three?"]),
        ("As Dr. Smith et al. Showed, i.e. in Fig. 2, J. R. Brown was right. Then he left.",
         ["As Dr. Smith et al. Showed, i.e. in Fig. 2, J. R. Brown was right.", "Then he left."]),
        ("See the manual (sect. four) now. Or later.", ["See the manual (sect. four) now.", "Or later."]),
        ("It rose by 3.5 points. See asyncio.Queue.get for more.", ["It rose by 3.5 points.", "See asyncio.Queue.get for more."]),
        ('He said "no." Then "yes."', ['He said "no."', 'Then "yes."']),
        ("A title without a stop\nThe body begins here.", ["A title without a stop", "The body begins here."]),
        ("# A heading\ntext below\n- first item\n* second item\n3. third item\n-----\n42",
         ["A heading", "text below", "first item", "second item", "third item"]),
        ("A hard-wrapped paragraph whose first line ends at the edge, where\nPython would not have fit, and it goes\non here.",
         ["A hard-wrapped paragraph whose first line ends at the edge, where Python would not have fit, and it goes on here."]),
        ("asyncio.Queue.get\nRemove and return an item.\n\nIf empty, wait.",
         ["asyncio.Queue.get Remove and return an item.", "If empty, wait."]),
        ("Inception\nInception is a film.", ["Inception is a film."]),
        ("```python\nx = f(1)\n```\nDone.", ["x = f(1)", "Done."]),
        ("這是第一句。這是第二句！好嗎？", ["這是第一句。", "這是第二句！", "好嗎？"]),
        ("यह पहला है। यह दूसरा है।", ["यह पहला है।", "यह दूसरा है।"]),
        ("no ends at all", ["no ends at all"]),
        ("Windows.\r\n\r\nLine ends.", ["Windows.", "Line ends."]),
        ("", []),
        (" \n--- 12 ... !!\n", []),
    ],
)  # fmt: skip
def test_sentences_of_all_kinds_of_text(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_a_long_unit_with_many_full_stops_is_split_in_linear_time() -> None:
    assert len(split_sentences("Aa bb cc. " * 20_000)) == 20_000


@pytest.mark.parametrize(
    ("sentence", "characters", "expected"),
    [
        ("short enough", 12, "short enough"),
        ("cut between two words", 11, "cut…"),
        ("cut between two words", 12, "cut between…"),
        ("comma, goes too", 7, "comma…"),
        ("字" * 30, 20, "字" * 19 + "…"),
        ("word " + "x" * 40, 20, "word…"),
    ],
)
def test_a_long_sentence_is_cut_at_a_word(sentence: str, characters: int, expected: str) -> None:
    assert cut(sentence, characters) == expected


def test_the_concept_is_made_of_the_phrases_that_tell_the_group_apart() -> None:
    # "bone marrow" and "stem cells" stand in all three texts, "cells" also elsewhere; "weather" is commoner outside.
    concept = summary(MARROW, OTHERS, replace(LIMITS, concept_words=4)).concept
    assert concept == "Stem cells, bone marrow"


def test_the_concept_does_not_repeat_a_stem_or_a_part_of_a_word() -> None:
    texts = ["tar tarfile archive", "tar tarfile archives", "tar tarfile archive"]
    words = summary(texts, ["other"] * 20).concept.replace(",", "").split()
    assert sorted(words) in (["archive", "tar"], ["archive", "tarfile"])


def test_the_surface_is_the_most_frequent_one() -> None:
    assert summary(["Queues wait", "queues block", "queue"], ["other"] * 9, replace(LIMITS, concept_words=1)).concept == "queues"


def test_a_word_that_stands_everywhere_comes_after_one_of_the_group() -> None:
    concept = summary(["common zebra", "common zebra"], ["common thing"] * 30, replace(LIMITS, concept_words=1)).concept
    assert concept == "zebra"


def test_a_word_of_several_documents_comes_before_a_rarer_one_of_one_document() -> None:
    texts = ["zebra stripes", "zebra", "zebra quokka"]
    assert summary(texts, ["zebra"] + ["other"] * 30, replace(LIMITS, concept_words=1)).concept == "zebra"


@given(st.dictionaries(st.sampled_from(TERMS), st.tuples(st.integers(0, 8), st.integers(-2, 6)), min_size=1))
def test_terms_come_in_the_order_of_their_worth_though_few_spellings_are_counted(terms: dict[str, tuple[int, int]]) -> None:
    told = {term: Term(float(weight), float(lift)) for term, (weight, lift) in terms.items()}
    common = min(1.5, max(lift for _, lift in terms.values()) / 2)

    def order(term: str) -> tuple[bool, float, str]:
        digits = any(c.isdigit() for c in term)
        readability = 0.2 if term.isdigit() else 0.6 if digits or not 3 <= len(term) <= 20 else 1.0
        return len(term) <= FILLER_LETTERS and terms[term][1] < common, -terms[term][0] * readability, term

    vocabulary = Vocabulary([[Sentence(" ".join(terms), [(term, term) for term in terms])]], told)
    assert list(vocabulary.by_worth()) == sorted(terms, key=order)


def test_a_term_that_a_phrase_grew_from_is_in_no_other_however_it_is_spelled() -> None:
    """"went home" comes of go, which is mostly spelled "going"; "zone" must not grow into "zone going"."""
    stems = {"went": "go", "going": "go", "home": "home", "zone": "zone"}
    texts = ["went home", "went home", "zone going", "zone going", "going"]
    sentences = [Sentence(text, [(word, stems[word]) for word in text.split()]) for text in texts]
    terms = {"go": Term(9.0, 3.0), "home": Term(8.0, 3.0), "zone": Term(7.0, 3.0)}
    assert concept([sentences], terms, 5) == "went home, zone"


def test_hyphenated_words_count_one_by_one() -> None:
    texts = ["The Baden-Durlach line.", "A line of Baden-Durlach."]
    assert summary(texts, ["The line."] * 9, replace(LIMITS, concept_words=2)).concept == "Baden-Durlach"


def test_near_duplicates_give_one_document_and_the_rest_stay_diverse() -> None:
    a, b = np.eye(2, dtype=np.float32)
    texts = ["Red apples fall down. Green ones.", "Red apples fall down! Green ones.", "Blue whales sing songs. They dive."]
    found = summary(texts, limits=replace(LIMITS, sentences=(2, 2)), vectors=np.stack([a, a, b]))
    assert len(found.documents) == 2
    assert 2 in found.documents


def test_maximal_marginal_relevance_by_hand() -> None:
    # By nearness to the centroid: 1, 0, 2 (.99, .82, .71). After 1, halves of nearness and likeness to 1 (.89, .60):
    # document 0 scores .82/2 - .89/2 = -.04 and document 2 scores .71/2 - .60/2 = .05.
    angles = np.deg2rad([-12, 15, 68])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    texts = ["Alpha document speaks here.", "Beta document speaks here.", "Gamma document speaks here."]
    limits = replace(LIMITS, sentences=(1, 2), duplicate_similarity=1.0)
    assert summary(texts, limits=replace(limits, relevance=0.5), vectors=vectors).documents == (1, 2)
    assert summary(texts, limits=replace(limits, relevance=1.0), vectors=vectors).documents == (1, 0)


def test_near_duplicates_speak_where_there_are_too_few_sentences() -> None:
    texts = [f"Only sentence number {n} is here." for n in ("one", "two", "three", "four", "five")]
    same = np.tile(np.array([[1, 0]], dtype=np.float32), (5, 1))
    assert len(summary(texts, vectors=same).sentences) >= 4


def test_what_two_documents_say_in_the_same_words_is_told_once() -> None:
    texts = ["Shared words here. Own red remark.", "Shared words here. Own blue remark.", "Shared words HERE. End."]
    told = summary(texts).sentences
    assert len(told) == len({sentence.casefold() for sentence in told}) == 4


def test_a_lone_document_speaks_more_than_once() -> None:
    found = summary(["First thing here. Second matter there. Third point now. Fourth idea too. Fifth one."], limits=LIMITS)
    assert len(found.sentences) == 5
    assert found.documents == (0,)


def test_the_sentence_with_the_groups_terms_is_taken() -> None:
    texts = ["Weather was bad that day. Stem cells renew bone marrow.", *MARROW]
    found = summary(texts, OTHERS + ["Weather day that was bad."] * 9, replace(LIMITS, sentences=(4, 4)))
    assert "Stem cells renew bone marrow." in found.sentences
    assert "Weather was bad that day." not in found.sentences


@pytest.mark.parametrize(
    "texts",
    [
        ["one"],
        ["Same text here."] * 7,
        ["", " ", "\n"],
        ["42", "...", "the of and"],
        ["x" * 50_000],
        ["word " * 20_000],
        ["量子计算机使用量子比特。它很快。", "量子比特的状态。"],
        ["सूर्य एक तारा है। पृथ्वी ग्रह है।", ""],
        ["def f(x):\n    return x + 1", "def g(y):\n    return y - 1"],
    ],
)
def test_degenerate_groups_have_a_summary_within_the_limits(texts: list[str]) -> None:
    check(texts, summary(texts), LIMITS)


def test_groups_without_a_term_or_a_letter_say_so() -> None:
    assert summary(["", "12 --"]).sentences == ()
    assert summary(["", "--"]).concept == NO_TEXT
    assert summary(["the of and"]) == GroupSummary(NO_TEXT, ("the of and",), (0,))


def test_a_large_group_reads_no_more_documents_than_allowed() -> None:
    seen: list[str] = []
    texts = [f"Document number {i} is about thing{i}." for i in range(300)]

    def counted(text: str) -> list[tuple[str, str]]:
        seen.append(text)
        return tokens(text)

    limits = replace(LIMITS, documents=20)
    found = extract(texts, unit(300), counted, {}, 300, limits)
    assert len(seen) == 20
    check(texts, found, limits)


@pytest.mark.parametrize(
    "change",
    [{"concept_words": 0}, {"sentences": (5, 4)}, {"sentences": (0, 4)}, {"sentence_characters": 5}, {"documents": 0},
     {"document_characters": 0}, {"relevance": 1.5}, {"duplicate_similarity": -0.1}],
)  # fmt: skip
def test_limits_outside_their_range_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(change))}=.*expected"):
        replace(LIMITS, **change)  # type: ignore[arg-type]


def test_an_empty_group_and_missing_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match="0 texts"):
        summary([], vectors=np.zeros((0, 8), dtype=np.float32))
    with pytest.raises(ValueError, match="2 texts"):
        summary(["a", "b"], vectors=unit(3))


WORDS = st.sampled_from(
    ["cell", "cells", "stem", "Stem", "tar", "tarfile", "asyncio.Queue", "x-ray", "3.5", "e.g.", "The", "of", "42"]
    + ["字字", "año", "-", "#", "Dr.", "_"]
)
TEXTS = st.lists(WORDS | st.sampled_from([".\n", ". ", "! ", "\n\n", "\n- "]), max_size=30).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 6), st.integers(0, 3), st.randoms())
def test_summaries_hold_their_limits_in_any_order_of_the_documents(texts, words, least, more, random) -> None:  # type: ignore[no-untyped-def]
    limits = replace(LIMITS, concept_words=words, sentences=(least, least + more), sentence_characters=40, documents=6)
    ties = np.eye(2, dtype=np.float32)
    vectors = {text: ties[i % 2] for i, text in enumerate(texts)}
    found = summary(texts, limits=limits, vectors=np.stack([vectors[t] for t in texts]))
    check(texts, found, limits)
    shuffled = random.sample(texts, len(texts))
    other = summary(shuffled, limits=limits, vectors=np.stack([vectors[t] for t in shuffled]))
    assert (other.concept, other.sentences) == (found.concept, found.sentences)
    assert [shuffled[i] for i in other.documents] == [texts[i] for i in found.documents]


def check(texts: Sequence[str], found: GroupSummary, limits: ExtractLimits) -> None:
    """What holds for every summary."""
    assert 1 <= len(found.concept.split()) <= limits.concept_words
    folded = [" ".join(re.sub(r"(?m)^\s*(#|[-*])\s+", "", text).split()) for text in (texts[i] for i in found.documents)]
    for sentence in found.sentences:
        assert len(sentence) <= limits.sentence_characters
        assert any(all(part in text for part in sentence.removesuffix("…").split()) for text in folded)
    held = {sentence.casefold() for text in texts for sentence in split_sentences(text[: limits.document_characters])}
    if len(texts) <= limits.documents:
        assert min(limits.sentences[0], len(held)) <= len(found.sentences) <= limits.sentences[1]
    assert len(set(found.documents)) == len(found.documents)
    whole = [sentence.casefold() for sentence in found.sentences if not sentence.endswith("…")]
    assert len(set(whole)) == len(whole)
