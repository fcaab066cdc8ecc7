"""A group's concept: the weightiest of its terms, each as the phrase that it usually stands in. `extract` weighs the terms."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def joins(self) -> list[str]:
        """Between a word and the next: the blank or hyphen that alone stands there, "" for anything else."""
        gaps, end = [], 0
        for surface, _ in self.words:
            start = self.text.find(surface, end)
            gaps.append(self.text[end:start] if start >= 0 else "")  # a tokenizer that normalises may spell it otherwise
            end = max(end, start + len(surface))
        return [gap if gap in (" ", "-") else "" for gap in gaps[1:]]


@dataclass(frozen=True)
class Term:
    """What a term is worth to the group."""

    weight: float
    lift: float  # log of how many times commoner the term is in the group's documents than in the corpus's


def concept(documents: list[list[Sentence]], terms: dict[str, Term], words: int) -> str:
    """The weightiest words, each grown into the phrase it usually stands in, none like another, until there are `words`.

    documents: the sentences of each; terms: all that stand in them. NO_TEXT where there is none.
    """
    vocabulary = Vocabulary(documents, terms)
    phrases: list[str] = []
    taken: list[str] = []  # the words of the phrases, casefolded
    seeds: set[str] = set()  # their terms: a word in a phrase may be spelled unlike its usual self
    for seed in vocabulary.by_worth():
        if len(taken) >= words:
            break
        if not _is_like(vocabulary.folded(seed), taken):
            seeds.add(seed)
            phrases.append(vocabulary.grown(seed, seeds, taken, words - len(taken)))
            taken += phrases[-1].casefold().replace("-", " ").split()
    return ", ".join(phrases) or NO_TEXT


class Vocabulary:
    """The terms of a group and where they stand. How a term is spelled is counted when it is asked for: few of them are."""

    def __init__(self, documents: list[list[Sentence]], terms: dict[str, Term]) -> None:
        self._terms = terms
        self._places: dict[str, list[tuple[Sentence, int]]] = defaultdict(list)
        for sentence in (s for sentences in documents for s in sentences):
            for i, (_, term) in enumerate(sentence.words):
                self._places[term].append((sentence, i))
        self._common = min(FILLER_LIFT, max((term.lift for term in terms.values()), default=0.0) / 2)
        self._surfaces: dict[str, str] = {}

    def by_worth(self) -> Iterator[str]:
        """All terms, fillers last, then by falling weight times readability, then by name.

        That is at most the weight: what is worth more than the next weight comes first, whatever follows.
        """
        found: list[tuple[float, str]] = []  # a heap
        fillers = []
        for term in sorted(self._terms, key=lambda term: -self._terms[term].weight):
            while found and -found[0][0] > self._terms[term].weight:
                yield heapq.heappop(found)[1]
            worth = self._terms[term].weight * _readability(self._surface(term))
            if self._is_filler(term):
                fillers.append((-worth, term))
            else:
                heapq.heappush(found, (-worth, term))
        while found:
            yield heapq.heappop(found)[1]
        yield from (term for _, term in sorted(fillers))

    def folded(self, term: str) -> str:
        """The usual spelling, casefolded."""
        return self._surface(term).casefold()

    def grown(self, seed: str, seeds: set[str], taken: list[str], room: int) -> str:
        """The longest phrase around the places of a term, of at most `room` words, that is usual there; else the term itself.

        Its other words weigh enough beside the term, are none of the seeds and not like one of the words taken.
        """
        partners: dict[str, bool] = {}

        def fits(term: str) -> bool:
            if term not in partners:
                new = term not in seeds and not _is_like(self.folded(term), taken)
                partners[term] = new and self._is_partner(term, seed)
            return partners[term]

        spelled: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        places = self._places[seed]
        for sentence, at in places:
            for a, b in _spans(sentence, at, min(PHRASE_WORDS, room), fits):
                phrase = tuple(term for _, term in sentence.words[a:b])
                surfaces = [surface.casefold() for surface, _ in sentence.words[a:b]]
                if len(set(phrase)) == b - a and not any(_is_like(surface, surfaces[:i]) for i, surface in enumerate(surfaces)):
                    ends = [*sentence.joins[a : b - 1], ""]
                    spelled[phrase]["".join(w + end for (w, _), end in zip(sentence.words[a:b], ends, strict=True))] += 1
        least = max(2.0, PHRASE_SHARE * len(places))
        usual = [phrase for phrase, spellings in spelled.items() if len(phrase) == 1 or spellings.total() >= least]
        return _usual(spelled[min(usual, key=lambda phrase: (-len(phrase), -spelled[phrase].total(), phrase))])

    def _is_partner(self, term: str, seed: str) -> bool:
        return self._terms[term].weight >= PHRASE_WEIGHT * self._terms[seed].weight and not self._is_filler(term)

    def _is_filler(self, term: str) -> bool:
        return self._terms[term].lift < self._common and _is_short(self._surface(term))

    def _surface(self, term: str) -> str:
        if term not in self._surfaces:
            self._surfaces[term] = _usual(Counter(s.words[i][0] for s, i in self._places[term]))
        return self._surfaces[term]


def _spans(sentence: Sentence, at: int, longest: int, fits: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """All [a, b) of at most `longest` words around word `at` that stand side by side and, but for that one, fit."""
    words, joins = sentence.words, sentence.joins
    first, last = at, at + 1
    while first > max(0, at + 1 - longest) and joins[first - 1] and fits(words[first - 1][1]):
        first -= 1
    while last < min(at + longest, len(words)) and joins[last - 1] and fits(words[last][1]):
        last += 1
    for a in range(first, at + 1):
        for b in range(at + 1, min(a + longest, last) + 1):
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
