"""Sentences of any text that a corpus holds: prose, titles, hard-wrapped docstrings, Markdown, listings."""

from __future__ import annotations

import re
from itertools import pairwise

WRAP_COLUMNS = range(60, 101)  # a block whose longest line is shorter or longer was not wrapped: its newlines are meant

_ABBREVIATIONS = frozenset(
    ("al", "approx", "ca", "cf", "dept", "dr", "ed", "eds", "eg", "eq", "eqs", "fig", "figs", "gen", "gov", "ie", "inc", "jr")
    + ("lt", "mr", "mrs", "ms", "nos", "pp", "prof", "ref", "refs", "resp", "sr", "st", "viz", "vol", "vs")
)
_MARKER = re.compile(r"^\s*(?:#{1,6}\s+|>\s+|[-*+•]\s+|\(?\d{1,3}[.)]\s+)")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？؟۔।]+[”’」』)]*")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]*$")
_NEXT = re.compile(r"\s*(\S?)")
_INITIALS = re.compile(r"(?:\w\.)*[^\W\d_]")


def split_sentences(text: str) -> list[str]:
    """The sentences of `text` in order, white space collapsed; those without a letter are left out.

    Headings and list items are sentences of their own. A first line that is a single word (a name above its description)
    begins the sentence after it, unless that begins with it.
    """
    sentences = [s for unit in _units(text) for s in _split_unit(unit) if any(c.isalpha() for c in s)]
    if len(sentences) > 1 and " " not in sentences[0] and not _END.search(sentences[0] + " "):
        name, following, *rest = sentences
        return [following if following.startswith(name) else f"{name} {following}", *rest]
    return sentences


def cut(sentence: str, characters: int) -> str:
    """`sentence` in at most `characters` characters: a longer one ends after its last whole word that fits, with an ellipsis."""
    if len(sentence) <= characters:
        return sentence
    kept = sentence[:characters]
    if " " in kept:
        kept = kept[: kept.rindex(" ")]
    return kept[: characters - 1].rstrip(" ,;:(") + "…"


def _units(text: str) -> list[str]:
    """Headings, list items and paragraphs, each on one line."""
    units: list[str] = []
    for block in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n").replace("\r", "\n")):
        lines = [line.rstrip() for line in block.split("\n") if line.strip() and not _FENCE.match(line)]
        width = max(map(len, lines), default=0)
        previous = ""
        for line in lines:
            bare = " ".join(_MARKER.sub("", line).split())
            if previous and not _MARKER.match(line) and _continues(previous, line, width):
                units[-1] = f"{units[-1]} {bare}"
            else:
                units.append(bare)
            previous = line
    return units


def _continues(previous: str, line: str, width: int) -> bool:
    """Whether the newline between two lines is only a wrap: the next word did not fit, or it goes on in lower case."""
    if previous.lstrip().startswith("#") or not any(c.isalnum() for c in line) or not any(c.isalnum() for c in previous):
        return False
    first = line.split(maxsplit=1)[0]
    return first[0].islower() or (width in WRAP_COLUMNS and len(previous) + 1 + len(first) > width)


def _split_unit(unit: str) -> list[str]:
    ends = [m.end() for m in _END.finditer(unit) if _is_end(unit, m)]
    bounds = [0, *(e for e in ends if e < len(unit)), len(unit)]
    return [unit[a:b].strip() for a, b in pairwise(bounds)]


def _is_end(unit: str, mark: re.Match[str]) -> bool:
    """Whether a sentence ends at `mark`: not after an abbreviation or initials, and not before a small letter."""
    following = _NEXT.match(unit, mark.end())
    if following and following.group(1).islower():
        return False
    if mark.group() != ".":
        return True
    found = _LAST_WORD.search(unit, max(0, mark.start() - 24), mark.start())
    word = found.group() if found else ""
    return word.replace(".", "").lower() not in _ABBREVIATIONS and not _INITIALS.fullmatch(word)
