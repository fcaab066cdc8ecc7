"""Group summaries without a language model: a concept of a few words and a few of the documents' own sentences.

Concept: class-based tf-idf (BERTopic, Grootendorst 2022, eq. 2: `tf * log(1 + A / f)`) in documents instead of occurrences, so that a group costs
what its own documents cost, whatever the size of the corpus. Sentences: maximal marginal relevance (Carbonell & Goldstein 1998) over the
documents, then from each chosen document the sentence in which the group's terms stand most densely.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from actors.algorithms.sentences import cut, split_sentences

Floats = NDArray[np.float32]
Tokens = Callable[[str], list[tuple[str, str]]]
DocumentFrequency = Callable[[Sequence[str]], NDArray[np.integer]]

NO_TEXT = "(no text)"  # the concept of a group whose documents hold not one letter
PHRASE_WORDS = 3
PHRASE_SHARE = 0.4  # a word grows into the phrase in which at least this share of its documents has it
LENGTH_OFFSET = 8.0  # terms that a sentence's length counts as having before its first; keeps scraps from being the densest


@dataclass(frozen=True)
class ExtractLimits:
    """What a summary may hold and what it may cost. `sentences` are (least, most); lengths are in characters."""

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
        for name in ("concept_words", "documents", "document_characters"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: expected at least 1")
        if self.sentence_characters < 20:
            raise ValueError(f"sentence_characters={self.sentence_characters}: expected at least 20, less holds no sentence")
        for name in ("duplicate_similarity", "relevance"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name}={getattr(self, name)}: expected a number from 0 to 1")


@dataclass(frozen=True)
class _Term:
    weight: float
    lift: float


@dataclass(frozen=True)
class GroupSummary:
    """`documents`: positions, in the texts given, of the documents that gave a sentence, in the order of the sentences."""

    concept: str
    sentences: tuple[str, ...]
    documents: tuple[int, ...]


@dataclass(frozen=True)
class _Sentence:
    text: str
    words: tuple[tuple[str, str], ...]  # (surface, term) as they stand
    joins: tuple[str, ...]  # between word i and i+1: " " or "-" where nothing else stands between them, "" otherwise

    @property
    def terms(self) -> set[str]:
        return {term for _, term in self.words}


def extract(texts: Sequence[str], vectors: Floats, tokens: Tokens, document_frequency: DocumentFrequency, corpus_size, limits: ExtractLimits) -> GroupSummary:
    order = _canonical(texts, vectors)
    considered = _consider(order, vectors, limits)
    documents = {i: _read(texts[i][: limits.document_characters], tokens) for i in considered}
    weights = _weigh(list(documents.values()), document_frequency, corpus_size)
    chosen = _choose_documents([i for i in considered if documents[i]], vectors, limits)
    picked = _choose_sentences([(i, documents[i]) for i in chosen], weights, limits)
    concept = _concept([documents[i] for i in considered], weights, limits.concept_words)
    rank = {i: r for r, i in enumerate(considered)}
    picked.sort(key=lambda p: rank[p[0]])
    return GroupSummary(concept, tuple(cut(s.text, limits.sentence_characters) for _, s in picked), tuple(dict.fromkeys(i for i, _ in picked)))


def _canonical(texts: Sequence[str], vectors: Floats) -> list[int]:
    """One position per distinct text, in an order that does not depend on the order of the texts."""
    first: dict[str, int] = {}
    for i in sorted(range(len(texts)), key=lambda i: (texts[i], vectors[i].tobytes())):
        first.setdefault(" ".join(texts[i].split()).casefold(), i)
    return list(first.values())


def _consider(order: list[int], vectors: Floats, limits: ExtractLimits) -> list[int]:
    """The documents a summary is made from, most central first: all, or half the limit nearest the centroid and the rest spread evenly."""
    centroid = vectors[order].mean(axis=0)
    nearness = vectors[order] @ centroid
    central = [order[i] for i in np.argsort(-nearness, kind="stable")]
    if len(central) <= limits.documents:
        return central
    near = limits.documents // 2
    spread = np.linspace(near, len(central) - 1, limits.documents - near).round().astype(int)
    return central[:near] + [central[i] for i in spread]


def _read(text: str, tokens: Tokens) -> list[_Sentence]:
    return [_Sentence(s, (words := tuple(tokens(s))), _joins(s, words)) for s in split_sentences(text)]


def _joins(sentence: str, words: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """What stands between each word and the next where it is only a blank or a hyphen, "" elsewhere."""
    gaps, end = [], 0
    for surface, _ in words:
        start = sentence.find(surface, end)
        gaps.append(sentence[end:start] if start >= 0 else "")
        end = start + len(surface) if start >= 0 else end
    return tuple(gap if gap in (" ", "-") else "" for gap in gaps[1:])


def _weigh(documents: list[list[_Sentence]], document_frequency: DocumentFrequency, corpus_size: int) -> dict[str, _Term]:
    holding: Counter[str] = Counter()
    presence: dict[str, float] = defaultdict(float)
    for sentences in documents:
        first: dict[str, int] = {}
        for k, sentence in enumerate(sentences):
            for _, term in sentence.words:
                first.setdefault(term, k)
        for term, k in first.items():
            holding[term] += 1
            presence[term] += DECAY(k)
    terms = sorted(holding)
    inside = np.array([holding[t] for t in terms], dtype=np.float64)
    everywhere = np.maximum(np.asarray(document_frequency(terms), dtype=np.float64), inside)
    lift = np.log(inside / len(documents) * corpus_size / everywhere)
    worth = np.array([presence[t] for t in terms]) * (1 - 0.5 / inside) * np.maximum(lift, 0.01) ** POW
    return {t: _Term(float(w), float(l)) for t, w, l in zip(terms, worth, lift, strict=True)}

POW = 1.5
DECAY = lambda k: 1/math.sqrt(1+k)

def _choose_documents(central: list[int], vectors: Floats, limits: ExtractLimits) -> list[int]:
    if not central: return []
    own = vectors[central]
    centroid = own.mean(axis=0); centroid /= max(np.linalg.norm(centroid), 1e-9)
    relevance = own @ centroid
    similar = own @ own.T
    chosen: list[int] = []
    open_ = np.ones(len(central), dtype=bool)
    nearest = np.zeros(len(central))
    while open_.any() and len(chosen) < limits.sentences[1]:
        score = np.where(open_, limits.relevance * relevance - (1 - limits.relevance) * nearest, -np.inf)
        best = int(score.argmax())
        chosen.append(best)
        open_[best] = False
        open_ &= similar[best] < limits.duplicate_similarity
        nearest = np.maximum(nearest, similar[best])
    return [central[i] for i in sorted(chosen)]


def _choose_sentences(documents: list[tuple[int, list[_Sentence]]], weights: dict[str, float], limits: ExtractLimits) -> list[tuple[int, _Sentence]]:
    left = {i: list(s) for i, s in documents}
    told: Counter[str] = Counter()
    seen=set(); out = []
    target = limits.sentences[1]
    while any(left.values()) and len(out) < target:
        for i, sentences in left.items():
            if not sentences or len(out) >= target: continue
            best = max(range(len(sentences)), key=lambda k: (density(sentences[k], weights, told, k, limits), -k))
            s = sentences.pop(best)
            if (key := s.text.casefold()) in seen: continue
            seen.add(key)
            told.update(s.terms)
            out.append((i, s))
    return out

WEIGH = lambda i,f,p,g: i*np.log1p(p/f)
LEAD=0.5
TOLD=0.5
def density(s, weights, told, k, limits) -> float:
    worth = sum(weights[t].weight * TOLD ** min(told[t],4) for t in sorted(s.terms))
    letters = sum(c.isalpha() or c.isspace() for c in s.text) / len(s.text)
    d = worth / (LENGTH_OFFSET + len(s.words))
    if letters < 0.8: d *= 0.5
    if len(s.words) < 3: d *= 0.3
    return d * (1 + LEAD / (1 + k))


def _concept(documents: list[list[_Sentence]], terms: dict[str, _Term], words: int) -> str:
    places: dict[str, list[tuple[_Sentence, int]]] = defaultdict(list)
    for sentence in (s for d in documents for s in d):
        for i, (_, term) in enumerate(sentence.words):
            places[term].append((sentence, i))
    surface = {t: _most_common(Counter(s.words[i][0] for s, i in found)) for t, found in places.items()}
    ranked = sorted(terms, key=lambda t: (_is_filler(surface[t], terms[t]), -terms[t].weight * _readability(surface[t]), t))
    phrases: list[str] = []
    used: list[str] = []
    for seed in ranked:
        if len(used) >= words:
            break
        free = lambda t: not any(_alike(surface[t], u) for u in used)
        if free(seed):
            phrase = _grow(seed, places[seed], words - len(used), lambda t: free(t) and (t==seed or (terms[t].weight >= EDGE * terms[seed].weight and not _is_filler(surface[t], terms[t]))))
            phrases.append(phrase)
            used += phrase.replace("-", " ").split()
    return ", ".join(phrases) or NO_TEXT

EDGE = 0.25

def _is_filler(surface, term):
    return len(surface) <= 4 and term.lift < 1.5 and not (len(surface) > 1 and surface.isupper())

def _grow(seed, places, room, fits) -> str:
    counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    fit: dict[str, bool] = {}
    for sentence, at in places:
        for a in range(max(0, at - PHRASE_WORDS + 1), at + 1):
            for b in range(at, min(a + min(PHRASE_WORDS, room), len(sentence.words))):
                if not all(sentence.joins[a:b]): break
                ts = tuple(t for _, t in sentence.words[a:b+1])
                if len(set(ts)) < len(ts): continue
                if all(fit.setdefault(t, fits(t)) if t not in fit else fit[t] for t in ts):
                    text = "".join(w + j for (w, _), j in zip(sentence.words[a:b+1], (*sentence.joins[a:b], "")))
                    counts[ts][text] += 1
    usual = {ts: c for ts, c in counts.items() if len(ts) == 1 or c.total() >= max(2, PHRASE_SHARE * len(places))}
    best = min(usual, key=lambda ts: (-len(ts), -usual[ts].total(), ts))
    return _most_common(usual[best])

def _readability(s):
    f = 1.0
    if not any(c.isalpha() for c in s): f *= 0.2
    elif any(c.isdigit() for c in s): f *= 0.6
    if len(s) > 20 or len(s) < 3: f *= 0.6
    return f

def _alike(s, b):
    a, b = s.casefold(), b.casefold()
    return a in b or b in a

def _most_common(c: Counter[str]) -> str:
    folded: Counter[str] = Counter()
    for s, n in c.items(): folded[s.casefold()] += n
    f = min(folded, key=lambda x: (-folded[x], x))
    return min((s for s in c if s.casefold() == f), key=lambda s: (-c[s], s.swapcase()))
