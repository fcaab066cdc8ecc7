"""Group summaries without a language model: a concept of a few words and a few of the documents' own sentences.

Concept: class-based tf-idf after BERTopic (Grootendorst 2022, eq. 2), counted in documents, so that a group costs what its
own documents cost whatever the size of the corpus. Sentences: maximal marginal relevance (Carbonell and Goldstein 1998)
over the documents, then from each chosen document the sentence in which the group's terms stand most densely.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.concept import Sentence, Term, concept
from actors.algorithms.sentences import cut, split_sentences

Floats = NDArray[np.float32]
Tokens = Callable[[str], list[tuple[str, str]]]

LIFT_POWER = 1.5  # above 1: what tells the group apart counts for more than what it shares with half the corpus
LENGTH_OFFSET = 8.0  # words that a sentence counts as having besides its own; keeps scraps from being the densest
TOLD = 0.5  # what a term is worth once more each time that a sentence has told it
LEAD = 4.0  # a document's first sentence counts 1 + LEAD times, the next 1 + LEAD / 2: texts begin with what they are about


@dataclass(frozen=True)
class ExtractLimits:
    """What a summary may hold and what making it may cost.

    concept_words, sentence_characters: the most. sentences: (least, most), least reached wherever the documents hold as many.
    documents, document_characters: how many documents of a group, and how much of each from its start, are read at all.
    duplicate_similarity: a document whose cosine to a chosen one reaches it is used only where `least` asks for it.
    relevance: the lambda of maximal marginal relevance, 1 = only nearness to the centroid. Raises ValueError for values
    outside their range.
    """

    concept_words: int
    sentences: tuple[int, int]
    sentence_characters: int
    documents: int
    document_characters: int
    duplicate_similarity: float
    relevance: float

    def __post_init__(self) -> None:
        least, most = self.sentences
        if not 1 <= least <= most:
            raise ValueError(f"sentences={self.sentences}: expected (least, most) with 1 <= least <= most")
        for name, lowest in (("concept_words", 1), ("documents", 1), ("document_characters", 1), ("sentence_characters", 20)):
            if getattr(self, name) < lowest:
                raise ValueError(f"{name}={getattr(self, name)}: expected at least {lowest}")
        for name in ("duplicate_similarity", "relevance"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name}={getattr(self, name)}: expected a number from 0 to 1")


@dataclass(frozen=True)
class GroupSummary:
    """`documents`: positions, in the texts given, of the documents that gave a sentence, most central first."""

    concept: str
    sentences: tuple[str, ...]
    documents: tuple[int, ...]


def extract(
    texts: Sequence[str],
    vectors: Floats,
    tokens: Tokens,
    document_frequency: Mapping[str, int],
    corpus_size: int,
    limits: ExtractLimits,
) -> GroupSummary:
    """The summary of one group. It does not depend on the order of the documents.

    texts, vectors [n, d] L2-normalised: the group's documents, n >= 1. tokens: text -> (surface as it stands, term) of each
    word but the stop words. document_frequency: in how many of the corpus's `corpus_size` documents each of their terms stands;
    a term without one counts as standing in this group's alone.
    The concept has 1 to `concept_words` words, its phrases parted by commas; it is NO_TEXT where no document has a term.
    `sentences` is empty where no document has a letter. Raises ValueError if n is 0 or there are not n vectors.
    """
    if not texts or vectors.shape[0] != len(texts):
        raise ValueError(f"{len(texts)} texts, vectors of shape {vectors.shape}: expected at least one text, a vector for each")
    central = _considered(_distinct(texts, vectors), vectors, limits.documents)
    read = {i: _read(texts[i][: limits.document_characters], tokens) for i in central}
    terms = _weigh(list(read.values()), document_frequency, corpus_size)
    speaking = [i for i in central if read[i]]
    chosen = _diverse(speaking, vectors, limits)
    if len({s.text.casefold() for i in chosen for s in read[i]}) < limits.sentences[0]:
        chosen = speaking
    told = _tell([read[i] for i in chosen], terms, limits)
    return GroupSummary(
        concept(list(read.values()), terms, limits.concept_words),
        tuple(cut(sentence, limits.sentence_characters) for sentences in told for sentence in sentences),
        tuple(i for i, sentences in zip(chosen, told, strict=True) if sentences),
    )


def _distinct(texts: Sequence[str], vectors: Floats) -> list[int]:
    """One position per distinct text, sorted by the text, so that nothing further on depends on the order given."""
    first: dict[str, int] = {}
    for i in sorted(range(len(texts)), key=lambda i: (texts[i], vectors[i].tobytes())):
        first.setdefault(texts[i], i)
    return list(first.values())


def _considered(positions: list[int], vectors: Floats, most: int) -> list[int]:
    """Most central first: all, or half of `most` nearest to the centroid and the other half spread evenly over the rest."""
    own = vectors[positions]
    ranks = np.argsort(-(own @ own.mean(axis=0)), kind="stable")
    if len(ranks) > most:
        near = (most + 1) // 2
        ranks = ranks[np.r_[:near, np.linspace(near, len(ranks) - 1, most - near).round().astype(int)]]
    return [positions[r] for r in ranks]


def _read(text: str, tokens: Tokens) -> list[Sentence]:
    return [Sentence(sentence, tokens(sentence)) for sentence in split_sentences(text)]


def _weigh(documents: list[list[Sentence]], document_frequency: Mapping[str, int], corpus_size: int) -> dict[str, Term]:
    """Weight of each term: its presence times a power of log(its share of the group's documents / its share of the corpus's).

    Presence is the sum, over the documents with the term, of 1 / sqrt(1 + the sentences before its first). A term of one document
    alone counts half, one of two documents three quarters: it says less about the group.
    """
    holding: Counter[str] = Counter()
    presences: dict[str, float] = defaultdict(float)
    for first in map(_first_sentences, documents):
        holding.update(first.keys())
        for term, before in first.items():
            presences[term] += (1 + before) ** -0.5
    names = sorted(holding)
    if not names:
        return {}
    inside = np.array([holding[name] for name in names], dtype=np.float64)
    everywhere = np.maximum([document_frequency.get(name, 0) for name in names], inside)
    lift = np.log(inside / len(documents) * (corpus_size / everywhere))
    presence = np.array([presences[name] for name in names])
    # The floor keeps an order by presence where the group is the whole corpus and no term tells it apart.
    weight = presence * (1 - 0.5 / inside) * np.maximum(lift, 0.01) ** LIFT_POWER
    return {name: Term(w, v) for name, w, v in zip(names, weight.tolist(), lift.tolist(), strict=True)}


def _first_sentences(sentences: list[Sentence]) -> dict[str, int]:
    first: dict[str, int] = {}
    for k, sentence in enumerate(sentences):
        for _, term in sentence.words:
            first.setdefault(term, k)
    return first


def _diverse(central: list[int], vectors: Floats, limits: ExtractLimits) -> list[int]:
    """Maximal marginal relevance to the centroid, near-duplicates of a chosen document passed over; most central first."""
    own = vectors[central]
    similarity = own @ own.T
    centroid = own.sum(axis=0)
    relevance = own @ centroid / max(float(np.linalg.norm(centroid)), 1e-9)
    nearest = np.zeros(len(central), dtype=np.float32)
    free = np.ones(len(central), dtype=bool)
    chosen: list[int] = []
    while free.any() and len(chosen) < limits.sentences[1]:
        score = limits.relevance * relevance - (1 - limits.relevance) * nearest
        best = int(np.where(free, score, -np.inf).argmax())
        chosen.append(best)
        free &= similarity[best] < limits.duplicate_similarity
        free[best] = False
        nearest = np.maximum(nearest, similarity[best])
    return [central[r] for r in sorted(chosen)]


def _tell(documents: list[list[Sentence]], terms: dict[str, Term], limits: ExtractLimits) -> list[list[str]]:
    """Each document's sentences for the summary: its best in turn, round after round until there are enough."""
    left = [dict(enumerate(sentences)) for sentences in documents]
    picked: list[list[str]] = [[] for _ in documents]
    told: Counter[str] = Counter()
    texts: set[str] = set()
    while any(left) and len(texts) < limits.sentences[1]:
        for open_, own in zip(left, picked, strict=True):
            if not open_ or len(texts) == limits.sentences[1]:
                continue
            best = max(open_, key=lambda k: (_density(open_[k], k, terms, told), -k))
            sentence = open_.pop(best)
            told.update({term for _, term in sentence.words})
            if sentence.text.casefold() not in texts:
                texts.add(sentence.text.casefold())
                own.append(sentence.text)
    return picked


def _density(sentence: Sentence, before: int, terms: dict[str, Term], told: Counter[str]) -> float:
    """Weight of the sentence's terms per word; less for what is told already, for scraps, for signs and digits."""
    distinct = dict.fromkeys(term for _, term in sentence.words)
    density = sum(terms[term].weight * TOLD ** told[term] for term in distinct) / (LENGTH_OFFSET + len(sentence.words))
    prose = sum(map(str.isalpha, sentence.text)) + sentence.text.count(" ") > 0.8 * len(sentence.text)
    return density * (1 + LEAD / (1 + before)) * (1.0 if prose else 0.5) * (1.0 if len(distinct) >= 3 else 0.3)
