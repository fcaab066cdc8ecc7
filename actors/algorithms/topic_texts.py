"""Texts of a synthetic corpus: words of the language at large and words of the document's topics, as a function of its row.

The words of the language are drawn by Zipf's law (rank r with a probability near 1/r). Every node of the topic tree has words of
its own in two wordings, and a document says all its topics in one of them: evidence need not look like the question. The levels of
the tree share a text evenly, and a level of f times as many nodes has f times as many words: these follow Zipf's law as well.

A word is made of open syllables that its number spells, so that a word tells its number and with it its node.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.topics import NO_LEAF, Rows, Topics, hashed, mixed, uniform

LENGTH, WORDING, WORD, CHANGED = 16, 17, 18, 19  # what is drawn
CONSONANTS, VOWELS, LAST_VOWELS = "bdfghjklmnprstvz", "aeiou", "aou"  # a stemmer leaves words that end in these as they are
INNER = [c + v for c in CONSONANTS for v in VOWELS]
LAST = [c + v for c in CONSONANTS for v in LAST_VOWELS]
INNER_NUMBER = {syllable: number for number, syllable in enumerate(INNER)}
LAST_NUMBER = {syllable: number for number, syllable in enumerate(LAST)}
SYLLABLES = range(2, 6)  # of a word; shorter ones would be English stop words
INNER_BYTES = np.frombuffer("".join(INNER).encode(), np.uint8).reshape(-1, 2)
LAST_BYTES = np.frombuffer("".join(LAST).encode(), np.uint8).reshape(-1, 2)
FIRST_OF = np.cumsum([0, *(len(INNER) ** (s - 1) * len(LAST) for s in SYLLABLES)])  # first words by syllables
WIDTH = 2 * SYLLABLES[-1] + 2  # bytes of a word with the blank before and the full stop after it
SENTENCE = 9  # words
WORDINGS = 2
LONGEST, SHORTEST = 8.0, 0.2  # times the mean length
NO_NODE = -1


class Tokens(NamedTuple):
    """The words of several texts, one after the other: numbers [T], and where each text begins [n + 1]."""

    words: Rows
    offsets: Rows


@dataclass(frozen=True)
class Language:
    """vocabulary: words of the language for each square root of the number of documents, as Heaps' law has it.

    node_words: words of a node in one wording. topic_share: share of a document's words that tell its topics. reworded: share of
    documents that tell them in the second wording. words, words_spread: mean length of a document, standard deviation of its
    logarithm. changed: share of a near-duplicate's words that are not its source's.
    """

    vocabulary: float
    node_words: int
    topic_share: float
    reworded: float
    words: float
    words_spread: float
    changed: float

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Language:
        """From values of which some have the names of the fields."""
        return cls(**{f.name: values[f.name] for f in dataclasses.fields(cls)})

    def common(self, topics: Topics) -> int:
        """The number of words of the language at large; those of the nodes follow."""
        return max(2, round(self.vocabulary * math.sqrt(topics.documents)))


def tokens(topics: Topics, language: Language, rows: Rows) -> Tokens:
    """The words of these documents."""
    sources = topics.sources(rows)
    leaves = topics.leaf_of(sources)
    lengths = _lengths(topics, language, sources)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    at = np.repeat(np.arange(len(rows)), lengths)
    place = np.arange(offsets[-1]) - offsets[at]
    owners = sources[at]
    copies = np.flatnonzero((sources != rows)[at])
    own = copies[uniform(hashed(topics.seed, CHANGED, rows[at[copies]], place[copies])) < language.changed]
    owners[own] = rows[at[own]]
    drawn = hashed(topics.seed, WORD, owners, place)
    words = zipf(uniform(mixed(drawn)), language.common(topics))
    which = uniform(drawn) / language.topic_share  # below 1: a word of the topic; its level by where below
    topical = np.flatnonzero((which < 1) & (leaves[at] != NO_LEAF))
    level = (which[topical] * topics.depth).astype(np.int64)
    leaf = leaves[at[topical]]
    nodes = topics.first_nodes[level] + leaf // topics.spans[level]
    wording = (uniform(hashed(topics.seed, WORDING, sources)) < language.reworded).astype(np.int64)[at[topical]]
    rank = zipf(uniform(mixed(drawn[topical])), language.node_words)
    words[topical] = node_word(topics, language, nodes, wording, rank)
    odd = np.flatnonzero((which < 1) & (leaves[at] == NO_LEAF))  # what is isolated uses rare words instead
    words[odd] = (uniform(mixed(drawn[odd])) * language.common(topics)).astype(np.int64)
    return Tokens(words, offsets)


def _lengths(topics: Topics, language: Language, rows: Rows) -> Rows:
    """Words of each document, log-normal."""
    twelve = uniform(hashed(topics.seed, LENGTH, rows[:, None], np.arange(12)[None, :])).sum(axis=1) - 6  # near normal
    mean = language.words * np.exp(-0.5 * language.words_spread**2)
    wanted = np.clip(mean * np.exp(language.words_spread * twelve), SHORTEST * language.words, LONGEST * language.words)
    lengths: Rows = np.maximum(1, np.rint(wanted)).astype(np.int64)
    return lengths


def zipf(drawn: NDArray[np.float64], words: int) -> Rows:
    """Ranks from 0 of numbers in [0, 1): rank r with probability log((r + 2) / (r + 1)) / log(words + 1), nearly 1 / (r + 1)."""
    ranks: Rows = np.minimum(np.exp(drawn * np.log(words + 1)).astype(np.int64) - 1, words - 1)
    return ranks


def node_word(topics: Topics, language: Language, nodes: Rows, wording: Rows, rank: Rows) -> Rows:
    """The numbers of words of nodes."""
    return language.common(topics) + (nodes * WORDINGS + wording) * language.node_words + rank


def node_of(topics: Topics, language: Language, word: int) -> int:
    """The node that a word belongs to; NO_NODE for one of the language at large, or of none."""
    node = (word - language.common(topics)) // (WORDINGS * language.node_words)
    return node if 0 <= node < topics.first_nodes[-1] else NO_NODE


def spelled(texts: Tokens) -> tuple[NDArray[np.uint8], Rows]:
    """The texts as ASCII: bytes of all of them, and where each begins [n + 1]. Sentences have a capital and a full stop."""
    words, offsets = texts
    count = len(words)
    begins = np.zeros(count + 1, bool)  # where a text, and so a sentence, begins
    begins[offsets] = True
    place = np.arange(count) - np.repeat(offsets[:-1], np.diff(offsets))
    opens = np.append(begins[:-1] | (place % SENTENCE == 0), True)
    letters = np.zeros((count, WIDTH), np.uint8)
    number = np.searchsorted(FIRST_OF, words, side="right") - 1
    rest, last = np.divmod(words - FIRST_OF[number], len(LAST))
    letters[:, -3:-1] = LAST_BYTES[last]
    used = np.zeros((count, WIDTH), bool)
    used[:, -3:-1] = True
    for back in range(1, SYLLABLES[-1]):
        has = np.flatnonzero(number + SYLLABLES[0] > back)
        rest[has], syllable = np.divmod(rest[has], len(INNER))
        letters[has, -3 - 2 * back], letters[has, -2 - 2 * back] = INNER_BYTES[syllable].T
        used[has, -3 - 2 * back : -1 - 2 * back] = True
    opening = np.flatnonzero(opens[:-1])
    letters[opening, WIDTH - 1 - 2 * (number[opening] + SYLLABLES[0])] -= 32
    letters[:, 0], used[:, 0] = ord(" "), ~begins[:-1]
    letters[:, -1], used[:, -1] = ord("."), opens[1:]
    lengths = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    return letters[used], lengths[offsets]


def spell(words: Iterable[int]) -> str:
    """Words with blanks between them, as a question has them."""
    numbers = np.fromiter(words, np.int64)
    text, _ = spelled(Tokens(numbers, np.array([0, len(numbers)])))
    return text.tobytes().decode().replace(".", "").lower()


def number_of(word: str) -> int:
    """The number that a word in small letters spells, -1 where it spells none."""
    syllables = len(word) // 2
    if len(word) % 2 or syllables not in SYLLABLES or word[-2:] not in LAST_NUMBER:
        return -1
    number = 0
    for at in range(0, len(word) - 2, 2):
        if (syllable := INNER_NUMBER.get(word[at : at + 2])) is None:
            return -1
        number = number * len(INNER) + syllable
    return int(FIRST_OF[syllables - SYLLABLES[0]]) + number * len(LAST) + LAST_NUMBER[word[-2:]]
