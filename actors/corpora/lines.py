"""What the readers share: finding files, reading their lines, JSON objects, and the checks a field has to pass."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from actors.corpora.records import BadInput, Document, Query, Refused, join_title

Reason = Literal[
    "not UTF-8", "not JSON", "NaN or Infinity", "not an object", "not CSV", "wrong number of columns", "lone surrogate",
    "no id", "id is not a string", "TAB or line break in the id", "no text", "text is not a string",
    "title is not a string", "excluded_ids is not a list of ids", "no such query", "score is not an integer",
    "duplicate id", "duplicate judgement", "empty text",
]  # fmt: skip

BOM = b"\xef\xbb\xbf"


class Fault(ValueError):
    """Why a record cannot be used; becomes a `Refused` where the record's place is known."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


class Line(NamedTuple):
    """One line, its end included; `number` counts from 1."""

    number: int
    raw: bytes


class JsonRecord(NamedTuple):
    where: str
    line: str
    fields: dict[str, Any]


def source_files(key: str, path: str, suffixes: tuple[str, ...]) -> list[Path]:
    """The file at `path`, or every file with one of the suffixes in the folder at `path` and below, sorted.

    Hidden files and folders are left out. Raises `BadInput` naming the setting `key` where there is nothing to read.
    """
    source, kinds = existing(key, path), " or ".join(suffixes)
    if source.is_file():
        if not source.name.lower().endswith(suffixes):
            raise BadInput(f"{key}={path}: expected a file ending in {kinds}; choose the reader for this kind of file.")
        return [source]
    if not source.is_dir():
        raise BadInput(f"{key}={path}: expected a file or a folder, not a pipe or device; write what it gives into a file.")
    found = sorted(
        file
        for file in source.rglob("*")
        if file.name.lower().endswith(suffixes) and file.is_file() and not is_hidden(file, source)
    )
    if not found:
        raise BadInput(f"{key}={path}: the folder holds no file ending in {kinds}; set {key} to one that does.")
    return found


def existing(key: str, path: str) -> Path:
    if not path:
        raise BadInput(f"{key} is empty: expected a path; set {key}=<path>.")
    source = Path(path).expanduser()
    if not source.exists():
        raise BadInput(f"{key}={path}: there is no such file or folder; set {key} to an existing path.")
    return source


def is_hidden(file: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(root).parts)


def label(file: Path, path: str) -> str:
    """The file's name in refusals: relative to the source, so that it is the same wherever the source lies."""
    root = Path(path).expanduser()
    return file.relative_to(root).as_posix() if file != root else file.name


def lines(file: Path) -> Iterator[Line]:
    """The lines of a plain or .gz file, split at LF, without byte order mark. Raises `BadInput` on a damaged .gz."""
    with gzip.open(file, "rb") if file.suffix.lower() == ".gz" else file.open("rb") as stream:
        number = 0
        while raw := _next_line(stream, file, number):
            number += 1
            yield Line(number, raw.removeprefix(BOM) if number == 1 else raw)


def _next_line(stream: Any, file: Path, number: int) -> bytes:
    try:
        line: bytes = stream.readline()
        return line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(
            f"{file}: the .gz is damaged or truncated after line {number} ({error}); expected it whole: fetch it again."
        ) from error


def json_objects(file: Path, name: str) -> Iterator[JsonRecord | Refused]:
    """One record per line that holds anything but white space."""
    for number, raw in lines(file):
        if not raw.strip():
            continue
        where = f"{name}:{number}"
        try:
            text = decoded(raw)
            yield JsonRecord(where, text, _parsed(text))
        except Fault as fault:
            yield refused(where, fault.reason, raw.decode("utf-8", "replace"))


def decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Fault("not UTF-8") from error


def _parsed(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text, parse_constant=_no_constant)
    except Fault:
        raise
    except (ValueError, RecursionError) as error:
        raise Fault("not JSON") from error
    if not isinstance(parsed, dict):
        raise Fault("not an object")
    return parsed


def _no_constant(_: str) -> NoReturn:
    raise Fault("NaN or Infinity")


def refused(where: str, reason: Reason, content: str) -> Refused:
    """The excerpt can always be written as UTF-8."""
    return Refused(where, reason, content[:80].strip().encode("utf-8", "replace").decode("utf-8"))


def document(where: str, content: str, doc_id: object, title: object, text: object) -> Document | Refused:
    """The checked document; `content` is what a refusal quotes."""
    try:
        heading = "" if title is None else string(title, "title is not a string")
        return Document(identifier(doc_id), join_title(heading, body(text)), where)
    except Fault as fault:
        return refused(where, fault.reason, content)


def query(where: str, content: str, query_id: object, text: object, excluded: object = None) -> Query | Refused:
    """The checked query; `content` is what a refusal quotes."""
    try:
        return Query(identifier(query_id), body(text).strip(), identifiers(excluded), where)
    except Fault as fault:
        return refused(where, fault.reason, content)


def identifier(value: object) -> str:
    """The id as it is written, spaces included; integers as decimals. A TAB or line break would break a run file."""
    if type(value) is int:
        return str(value)
    if value is None or value == "":
        raise Fault("no id")
    text = string(value, "id is not a string")
    if not text.strip():
        raise Fault("no id")
    if "\t" in text or text.splitlines() != [text]:
        raise Fault("TAB or line break in the id")
    return text


def identifiers(value: object) -> tuple[str, ...]:
    """The ids of the documents that a query excludes. BRIGHT writes ["N/A"] for none."""
    if value is None or value == ["N/A"]:
        return ()
    if not isinstance(value, list):
        raise Fault("excluded_ids is not a list of ids")
    try:
        return tuple(dict.fromkeys(identifier(each) for each in value))
    except Fault as fault:
        raise Fault("excluded_ids is not a list of ids") from fault


def body(value: object) -> str:
    if value is None:
        raise Fault("no text")
    return string(value, "text is not a string")


def string(value: object, otherwise: Reason) -> str:
    """Bytes stand for text that could not be decoded."""
    if isinstance(value, bytes):
        raise Fault("not UTF-8")
    if not isinstance(value, str):
        raise Fault(otherwise)
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise Fault("lone surrogate") from error
    return value
