"""A group's concept: the weightiest of its terms, each as the phrase that it usually stands in. `extract` weighs the terms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

NO_TEXT = "untitled"  # the concept of a group whose documents hold no term
PHRASE_WORDS = 3
PHRASE_SHARE = 0.4  # a word grows into a phrase that stands in this share of the sentences that hold the word
PHRASE_WEIGHT = 0.25  # and whose other words weigh at least this share of it: "stem cells", not "stem we"
FILLER_LETTERS = 4  # stop word lists are never complete: a word as short as this ...
FILLER_LIFT = 1.5  # ... and hardly commoner here (under e^1.5 times; less in a small corpus) comes last in the concept


@dataclass(frozen=True)
class Sentence:
    """A sentence of a document, taken apart."""

    text: str
    words: list[tuple[str, str]]  # (surface, term) as they stand
    joins: list[str]  # between a word and the next: the blank or hyphen that alone stands there, "" for anything else


@dataclass(frozen=True)
class Term:
    """What a term is worth to the group."""

    weight: float
    lift: float  # log of how many times commoner the term is in the group's documents than in the corpus's


def concept(documents: list[list[Sentence]], terms: dict[str, Term], words: int) -> str:
    """The weightiest words, each grown into the phrase it usually stands in, none like another, until there are `words`.

    documents: the sentences of each; terms: all that stand in them. NO_TEXT where there is none.
    """
    places: dict[str, list[tuple[Sentence, int]]] = defaultdict(list)
    for sentence in (s for sentences in documents for s in sentences):
        for i, (_, term) in enumerate(sentence.words):
            places[term].append((sentence, i))
    surfaces = {term: _usual(Counter(s.words[i][0] for s, i in at)) for term, at in places.items()}
    common = min(FILLER_LIFT, max((term.lift for term in terms.values()), default=0.0) / 2)
    fillers = {term for term, surface in surfaces.items() if terms[term].lift < common and _is_short(surface)}
    worth = {term: terms[term].weight * _readability(surface) for term, surface in surfaces.items()}
    folded = {term: surface.casefold() for term, surface in surfaces.items()}
    free = set(worth)
    phrases: list[str] = []
    room = words
    for seed in sorted(worth, key=lambda term: (term in fillers, -worth[term], term)):
        if room and seed in free:
            partners = {t for t in free - fillers if terms[t].weight >= PHRASE_WEIGHT * terms[seed].weight} | {seed}
            phrases.append(_grow(places[seed], partners, room))
            taken = phrases[-1].casefold().replace("-", " ").split()
            free = {t for t in free if not _is_like(folded[t], taken)} - {seed}
            room -= len(taken)
    return ", ".join(phrases) or NO_TEXT


def _grow(places: list[tuple[Sentence, int]], partners: set[str], room: int) -> str:
    """The longest phrase of `partners` around the places of a word that is usual there; the word itself where there is none."""
    spelled: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for sentence, at in places:
        for a, b in _spans(sentence, at, min(PHRASE_WORDS, room)):
            phrase = tuple(term for _, term in sentence.words[a:b])
            if not partners.issuperset(phrase) or len(set(phrase)) < b - a:
                continue
            surfaces = [surface.casefold() for surface, _ in sentence.words[a:b]]
            if not any(_is_like(surface, surfaces[:i]) for i, surface in enumerate(surfaces)):
                ends = [*sentence.joins[a : b - 1], ""]
                spelled[phrase]["".join(w + end for (w, _), end in zip(sentence.words[a:b], ends, strict=True))] += 1
    least = max(2.0, PHRASE_SHARE * len(places))
    usual = [phrase for phrase, spellings in spelled.items() if len(phrase) == 1 or spellings.total() >= least]
    return _usual(spelled[min(usual, key=lambda phrase: (-len(phrase), -spelled[phrase].total(), phrase))])


def _spans(sentence: Sentence, at: int, longest: int) -> Iterator[tuple[int, int]]:
    """All [a, b) of at most `longest` words around word `at` that stand side by side."""
    for a in range(max(0, at - longest + 1), at + 1):
        for b in range(at + 1, min(a + longest, len(sentence.words)) + 1):
            if all(sentence.joins[a : b - 1]):
                yield a, b


def _usual(spellings: Counter[str]) -> str:
    """The most frequent spelling, first without regard to capitals, then among those; small letters where that is a tie."""
    if len(spellings) == 1:
        return next(iter(spellings))
    folded: Counter[str] = Counter()
    for spelling, count in spellings.items():
        folded[spelling.casefold()] += count
    usual = min(folded, key=lambda word: (-folded[word], word))
    return min((s for s in spellings if s.casefold() == usual), key=lambda s: (-spellings[s], s.swapcase()))


def _is_short(surface: str) -> bool:
    acronym = len(surface) > 1 and surface.isupper()
    return len(surface) <= FILLER_LETTERS and not acronym


def _readability(surface: str) -> float:
    if not any(c.isalpha() for c in surface):
        return 0.2
    return 0.6 if len(surface) < 3 or len(surface) > 20 or any(c.isdigit() for c in surface) else 1.0


def _is_like(surface: str, words: list[str]) -> bool:
    """Whether one holds the other; all casefolded."""
    return any(surface in word or word in surface for word in words)
