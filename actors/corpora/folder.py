"""A folder of .txt and .md files, subfolders too: one document per file, or per Markdown section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from actors.corpora.lines import BOM, document, existing, label, refused, source_files
from actors.corpora.records import BadInput, Document, Refused
from conf.schema import Folder

SUFFIXES = (".txt", ".md")
HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Section(NamedTuple):
    """A heading and the text below it, up to the next one. `titles` are the headings it stands under and its own."""

    line: int
    titles: tuple[str, ...]
    text: str


def files(corpus: Folder) -> list[Path]:
    """Every .txt and .md file that is not hidden, sorted."""
    if not existing("corpus.path", corpus.path).is_dir():
        raise BadInput(f"corpus.path={corpus.path}: expected a folder and not a file; set corpus.path to the folder.")
    return source_files("corpus.path", corpus.path, SUFFIXES)


def documents(corpus: Folder) -> Iterator[Document | Refused]:
    """The documents in the order of the files' paths. An id is the path below the folder, with #section where split."""
    for file in files(corpus):
        name = label(file, corpus.path)
        raw = file.read_bytes().removeprefix(BOM)
        try:
            text = raw.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            yield refused(f"{name}:{line}", "not UTF-8", raw.splitlines()[line - 1].decode("utf-8", "replace"))
            continue
        if corpus.split == "section" and file.suffix.lower() == ".md":
            yield from _section_documents(name, text)
        else:
            yield document(f"{name}:1", text, name, None, text)


def _section_documents(name: str, text: str) -> Iterator[Document | Refused]:
    taken: set[str] = set()
    for section in sections(text):
        doc_id = f"{name}#{_slug(section.titles[-1], taken)}" if section.titles else name
        title = " > ".join(each for each in section.titles if each)
        yield document(f"{name}:{section.line}", section.text or title, doc_id, title, section.text)


def sections(text: str) -> Iterator[Section]:
    """The Markdown sections below `#` headings, in order; what stands above the first heading has no titles.

    A heading with nothing of its own below it but deeper headings is no section: it is in their titles. A `#` inside
    a fenced code block is no heading, nor is a heading that is underlined. A text with no section at all is one.
    """
    found = 0
    parts = list(_parts(text))
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        is_parent = following is not None and following.titles[: len(part.titles)] == part.titles
        if part.text or not (is_parent or not part.titles):
            found += 1
            yield part
    if not found:
        yield Section(1, (), text.strip())


def _parts(text: str) -> Iterator[Section]:
    path: list[tuple[int, str]] = []
    start, lines, fence = 1, list[str](), ""
    for number, line in enumerate(text.split("\n"), 1):
        heading = None if fence else HEADING.fullmatch(line)
        if heading is None:
            fence = _fence_after(line, fence)
            lines.append(line)
            continue
        yield Section(start, tuple(title for _, title in path), "\n".join(lines).strip())
        level = len(heading[1])
        path = [*(each for each in path if each[0] < level), (level, (heading[2] or "").strip())]
        start, lines = number, []
    yield Section(start, tuple(title for _, title in path), "\n".join(lines).strip())


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after this line: a block ends with at least as many of the characters that began it."""
    match = FENCE.fullmatch(line)
    if match is None:
        return fence
    marks, rest = match[1], match[2]
    if not fence:
        return "" if marks[0] == "`" and "`" in rest else marks
    return "" if marks.startswith(fence) and not rest.strip() else fence


def _slug(title: str, taken: set[str]) -> str:
    """The title in lower case with hyphens for spaces and without punctuation; -2, -3 where it is taken."""
    plain = re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") or "section"
    slug, count = plain, 1
    while slug in taken:
        count += 1
        slug = f"{plain}-{count}"
    taken.add(slug)
    return slug
