"""Text to terms: what is a word, which words are left out, and what of a word is kept."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import Stemmer

# Not `\w+`: an underscore separates, as a dot does, so that "read_csv" is found by "read csv".
# Not `\w\w+`: "vitamin K", "C" and "R" are words too.
WORD = re.compile(r"[^\W_]+")
BETWEEN_ASCII = {code: " " for code in range(128) if not chr(code).isalnum()}

LUCENE_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such "
    "that the their then there these they this to was will with"
)
STEMMERS = ("english", "none")
STOP_WORDS = {"english": frozenset(LUCENE_ENGLISH.split()), "none": frozenset[str]()}


class Analyzer:
    """Text to terms: NFC, runs of letters and digits, lower case, stop words out, Snowball stems.

    What becomes of a word depends on the word alone. Pickles as its two names. One per thread: a Snowball stemmer must not be
    shared between threads.
    """

    def __init__(self, stemmer: str, stop_words: str) -> None:
        """`stemmer`: a name of STEMMERS; `stop_words`: a name of STOP_WORDS. Raises ValueError for any other."""
        require("stemmer", stemmer, STEMMERS)
        require("stop_words", stop_words, STOP_WORDS)
        self.stemmer, self.stop_words = stemmer, stop_words
        self._dropped = STOP_WORDS[stop_words]
        # Its cache of 0 words: looking words up and clearing it took four times as long as stemming them again
        self._stem = Stemmer.Stemmer(stemmer, 0) if stemmer != "none" else None

    def __reduce__(self) -> tuple[type[Analyzer], tuple[str, str]]:
        return Analyzer, (self.stemmer, self.stop_words)

    def tokens(self, text: str) -> list[tuple[str, str]]:
        """(surface, term) of every word that is kept, in text order; the surface is spelled as in the text."""
        surfaces = [word for word in words(text) if word.lower() not in self._dropped]
        return list(zip(surfaces, self._stems([word.lower() for word in surfaces]), strict=True))

    def terms(self, text: str) -> list[str]:
        """The terms alone, repeated as often as they occur."""
        lowered = map(str.lower, words(text))
        return self._stems([word for word in lowered if word not in self._dropped])

    def term(self, word: str) -> str | None:
        """The term of one of `words`, None for a stop word."""
        lowered = word.lower()
        if lowered in self._dropped:
            return None
        return lowered if self._stem is None else str(self._stem.stemWord(lowered))

    def _stems(self, lowered: list[str]) -> list[str]:
        stems: list[str] = lowered if self._stem is None else self._stem.stemWords(lowered)
        return stems


def words(text: str) -> list[str]:
    """The words as they are spelled in the text, in NFC."""
    if text.isascii():
        return text.translate(BETWEEN_ASCII).split()  # the same words in half the time
    return WORD.findall(unicodedata.normalize("NFC", text))


def require(key: str, value: str, known: Iterable[str]) -> None:
    """Raises ValueError, naming the known ones, for a name that is not among them."""
    if value not in known:
        raise ValueError(f"{key}: {value!r}; expected one of {', '.join(known)}")
