"""What a model wrote becomes a ranking, the steps of its reasoning, or a concept and a summary. Nothing here raises.

An answer is what follows the last `</think>`; in a think block that is not closed only marked answers count. What an engine
says about its own failure is no answer and must never come here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import json_repair

from actors.algorithms.sentences import split_sentences

OK = "ok"
REPAIRED = "repaired"
MISSING = "missing ids"
REPEATED = "repeated ids"
UNUSABLE = "unusable"

CONCEPT_WORDS = 10  # asked for are 1 to 5; a label that is a little longer is still one
CONCEPT_CHARACTERS = 120
SUMMARY_SENTENCES = 12  # asked for are 4 to 8; what goes on and on is cut here
SUMMARY_CHARACTERS = range(20, 6001)
MENDED_BRACKETS = 1000  # beyond that a model is looping, and mending takes time quadratic in it; 300 fingerprints have fewer

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_MARKER = re.compile(
    r"<answer>|</answer>|\[[ \t]*document ranking[ \t]*\]|^[#*_ \t]{0,8}document ranking[*_: \t]{0,8}$",
    re.IGNORECASE | re.MULTILINE,
)
_ASKED_FORM = re.compile(r"\[\d+\](?:\s*>\s*\[\d+\])*", re.ASCII)
_BRACKETS = str.maketrans("【】〔〕→≻»", "[][]>>>")
_IDS = re.compile(r"\[([\d\s,;>]+)\]")
_BETWEEN_CHARACTERS = 40
_BETWEEN = re.compile(r"[\s>,;=*_`\"'|&-]*(?:\.\.+[\s>,]*)?(?:and|then)?[\s*_`\"']*(?:\d{1,3}[.):][\s*_`\"']*)?")
_LEAD_IN = re.compile(r"[^\d\[]*:")
_BEFORE_WHOLE = re.compile(r"[^\d\[]*:\s*1?|json|1|")  # 1: the first item of a numbered list
_WRAPPING = " \t\r\n`*_\"'{}[]()<>.,;"
_BARE_IDS = re.compile(r"\d+(?:[\s>,;=|]+\d+)*")
_LINE_ID = re.compile(r"^[ \t>*_#-]{0,8}(?:\d{1,3}[.)][ \t*_]{0,4})?\[[ \t]*(\d+)[ \t]*\]", re.MULTILINE)
_STEP = re.compile(r"^[ \t>*_#-]{0,8}step[ \t]{1,4}\d{1,4}[ \t*_]{0,4}[:.)-][ \t*_]{0,4}", re.IGNORECASE | re.MULTILINE)
_OBJECT = re.compile(r"\{\s{0,100}[\"'“”]")


class Ranking(NamedTuple):
    """order: every position 0..n-1 of the window once, best first. named: how many of them, from the first, the answer named."""

    order: list[int]
    named: int
    outcome: str


class Description(NamedTuple):
    """concept and summary are empty where the outcome is "unusable"."""

    concept: str
    summary: str
    outcome: str


class _Chain(NamedTuple):
    """Ids in square brackets with nothing but separators between them. start, end: where in the text."""

    ids: list[int]
    arrow: bool
    start: int
    end: int


def parse_ranking(answer: str, n: int, least: int) -> Ranking:
    """The order that `answer` gives to documents [1]..[n]. least: how many it was asked to name; more than n counts as n.

    Ids count once, at their first place, if they lie in 1..n; the others follow in window order. The outcome is the first that
    holds of unusable (no id: the window's order), missing ids (fewer than asked), repeated ids, repaired (anything but
    `[2] > [1]`, also an id beyond the window), ok.
    """
    region, ids = _ranking_ids(answer, n, min(least, n))
    named = list(dict.fromkeys(i for i in ids if 1 <= i <= n))
    rest = sorted(set(range(1, n + 1)).difference(named))
    order = [i - 1 for i in named + rest]
    if not named:
        return Ranking(order, 0, UNUSABLE)
    if len(named) < min(least, n):
        return Ranking(order, len(named), MISSING)
    if sum(1 <= i <= n for i in ids) > len(named):
        return Ranking(order, len(named), REPEATED)
    asked_form = len(ids) == len(named) and _ASKED_FORM.fullmatch(region.strip())
    return Ranking(order, len(named), OK if asked_form else REPAIRED)


def steps(answer: str) -> list[str]:
    """The texts of the lines `Step 1: ...` before the ranking, each with the lines that continue it."""
    body, _ = _after_thinking(answer)
    first = next((m.start() for m in _MARKER.finditer(body) if m.group().lower() != "</answer>"), len(body))
    found = [" ".join(piece.split()) for piece in _STEP.split(body[:first])[1:]]
    return [step for step in found if step]


def parse_description(answer: str) -> Description:
    """Concept and summary of the JSON object in `answer`. Its other keys only help the model to think and are not looked at.

    repaired: the JSON was broken or had text around it, the concept exceeds 5 words, or sentences of the summary were repeated,
    broken off or too many and were left out. unusable: no object, a key missing, or lengths beyond all bounds.
    """
    body, thinking = _after_thinking(answer)
    found, whole = (None, False) if thinking else _json_object(body)
    if found is None:
        return Description("", "", UNUSABLE)
    concept, written = _text(found.get("concept")), _text(found.get("summary"))
    summary = _whole_sentences(written, whole)
    label = any(map(str.isalpha, concept)) and len(concept) <= CONCEPT_CHARACTERS and len(concept.split()) <= CONCEPT_WORDS
    if not label or len(summary) not in SUMMARY_CHARACTERS:
        return Description("", "", UNUSABLE)
    untouched = whole and summary == found["summary"] and concept == found["concept"] and len(concept.split()) <= 5
    return Description(concept, summary, OK if untouched else REPAIRED)


def _after_thinking(answer: str) -> tuple[str, bool]:
    """The text after the last think block, and whether that is a block that was never closed."""
    tags = list(_THINK.finditer(answer))
    if not tags:
        return answer, False
    return answer[tags[-1].end() :], not tags[-1].group(1)


def _ranking_ids(answer: str, n: int, least: int) -> tuple[str, list[int]]:
    """The text that counts as the ranking, and the ids in it.

    Between markers ids may stand in any form. Without markers, numbers in prose are no ranking: the ids must be joined by `>`,
    or be a list that is the whole answer but for a lead-in, or name all that was asked for. Numbers without brackets must be
    the whole text, lead-in aside, and without markers each must be one of 1..n.
    """
    body, thinking = _after_thinking(answer)
    marked = list(_marked(body))
    for region in reversed(marked):
        if ids := _ids_in_marked(_plain(region)):
            return region, ids
    if marked or thinking:
        return "", []
    return body, _ids_in_prose(_plain(body), n, least)


def _marked(body: str) -> Iterator[str]:
    """The texts that follow `<answer>` or `[Document Ranking]`, each up to the next marker."""
    markers = [*_MARKER.finditer(body), None]
    for marker, following in pairwise(markers):
        if marker and marker.group().lower() != "</answer>":
            yield body[marker.end() : following.start() if following else len(body)]


def _ids_in_marked(text: str) -> list[int]:
    chains = _chains(text)
    arrows = [chain for chain in chains if chain.arrow]
    return [i for chain in arrows or chains for i in chain.ids] or _bare_ids(text)


def _ids_in_prose(text: str, n: int, least: int) -> list[int]:
    def names_enough(ids: list[int]) -> bool:
        return len({i for i in ids if 1 <= i <= n}) >= max(least, 2)

    chains = [chain for chain in _chains(text) if chain.arrow or _is_whole(chain, text) or names_enough(chain.ids)]
    if chains:
        return max(reversed(chains), key=lambda chain: len({i for i in chain.ids if 1 <= i <= n})).ids
    if names_enough(lines := [_number(m[1]) for m in _LINE_ID.finditer(text)]):
        return lines
    bare = _bare_ids(text)
    return bare if len(bare) > 1 and all(1 <= i <= n for i in bare) else []


def _chains(text: str) -> list[_Chain]:
    chains: list[_Chain] = []
    for found in _IDS.finditer(text):
        ids = [_number(digits) for digits in re.findall(r"\d+", found[1])]
        arrow = ">" in found[1]
        if chains and _joined(text, chains[-1].end, found.start()):
            last = chains.pop()
            arrow = arrow or last.arrow or ">" in text[last.end : found.start()]
            last.ids.extend(ids)  # in place: a copy for every id would make a long answer quadratic
            chains.append(_Chain(last.ids, arrow, last.start, found.end()))
        else:
            chains.append(_Chain(ids, arrow, found.start(), found.end()))
    return chains


def _joined(text: str, start: int, end: int) -> bool:
    return end - start <= _BETWEEN_CHARACTERS and bool(_BETWEEN.fullmatch(text, start, end))


def _is_whole(chain: _Chain, text: str) -> bool:
    """Whether there is nothing but the chain: before it at most a lead-in that ends in a colon, after it only punctuation."""
    before, after = text[: chain.start].strip(_WRAPPING), text[chain.end :].strip(_WRAPPING)
    return not after and bool(_BEFORE_WHOLE.fullmatch(before))


def _bare_ids(text: str) -> list[int]:
    """The numbers of a text that is nothing but a list of them, after at most a lead-in that ends in a colon."""
    lead_in = _LEAD_IN.match(text)
    rest = text[lead_in.end() if lead_in else 0 :].strip(_WRAPPING)
    return [_number(digits) for digits in re.findall(r"\d+", rest)] if _BARE_IDS.fullmatch(rest) else []


def _plain(text: str) -> str:
    """The text with digits, brackets and arrows of all kinds in their plain form."""
    return unicodedata.normalize("NFKC", text).translate(_BRACKETS)


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 10 else 0  # no window is that long, and int() refuses thousands of digits


def _json_object(body: str) -> tuple[dict[str, Any] | None, bool]:
    """The JSON object in a text, mended if need be, and whether the text was that object and nothing else."""
    try:
        if isinstance(found := json.loads(body), dict):
            return found, True
    except (ValueError, RecursionError):
        pass
    start = _OBJECT.search(body)
    broken = body[start.start() :] if start else ""
    if not broken or broken.count("{") + broken.count("[") > MENDED_BRACKETS:
        return None, False
    try:
        found = json_repair.loads(broken)
    except (ValueError, RecursionError):
        return None, False
    if isinstance(found, list):  # a text that goes on after its object
        found = next((item for item in found if isinstance(item, dict)), None)
    return (found, False) if isinstance(found, dict) else (None, False)


def _text(value: Any) -> str:
    """A string, or a list of strings that was meant as one, on one line."""
    parts = value if isinstance(value, list) else [value]
    text = " ".join(" ".join(part.split()) for part in parts if isinstance(part, str))
    return text.encode("utf-8", "replace").decode()  # JSON can spell half a character, and no file can hold it


def _whole_sentences(text: str, whole: bool) -> str:
    """The summary without sentences said before (a model that loops), beyond the bound, or broken off with the JSON."""
    sentences = split_sentences(text)
    kept = list(dict.fromkeys(sentences))[:SUMMARY_SENTENCES]
    if not whole and len(kept) > 1 and kept[-1] == sentences[-1] and kept[-1][-1].isalnum():
        kept.pop()
    return text if kept and kept == sentences else " ".join(kept)
