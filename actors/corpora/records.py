"""What every reader yields. A record that cannot be used is never dropped: it is yielded as `Refused`, with its place."""

from __future__ import annotations

from typing import NamedTuple


class Document(NamedTuple):
    """One document as it was read. `text` already has its title joined; `where` is "file:line" or what stands for it."""

    doc_id: str
    text: str
    where: str


class Query(NamedTuple):
    """One question. `excluded` are the ids of documents that do not exist for it."""

    query_id: str
    text: str
    excluded: tuple[str, ...]
    where: str


class Judgement(NamedTuple):
    """One line of the qrels: how relevant (0 = not) a document is for a query."""

    query_id: str
    doc_id: str
    relevance: int
    where: str


class Refused(NamedTuple):
    """A record that cannot be used: where it stands, why, and the beginning of it (at most 80 characters)."""

    where: str
    reason: str
    excerpt: str


class BadInput(Exception):
    """Input that the user has to mend. The message names file and line or key, the value, what was expected, and the remedy."""


def join_title(title: str, text: str) -> str:
    """The text that is indexed: the title on a line of its own above the body, either of them alone where the other is empty."""
    return "\n".join(part for part in (title.strip(), text.strip()) if part)
