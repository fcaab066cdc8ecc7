"""BEIR folders: corpus.jsonl[.gz], queries.jsonl[.gz], qrels/<split>.tsv; and qrels files, which all readers share.

BRIGHT's excluded documents are read from the queries' `excluded_ids` and from excluded.jsonl[.gz], where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from actors.corpora import jsonl
from actors.corpora.lines import (
    Fault,
    decoded,
    document,
    existing,
    identifier,
    identifiers,
    label,
    lines,
    query,
    refused,
)
from actors.corpora.records import BadInput, Document, Judgement, Query, Refused
from conf.schema import Beir, Queries

HEADER = ["query-id", "corpus-id", "score"]


def files(node: Beir | Queries) -> list[Path]:
    """The corpus file, or the file of queries and that of their excluded documents. `qrels_file` is apart."""
    if not isinstance(node, Queries):
        return [_file("corpus.path", node.path, "corpus")]
    excluded = _either("queries.path", node.path, "excluded")
    return sorted([_file("queries.path", node.path, "queries"), *([excluded] if excluded else [])])


def documents(corpus: Beir) -> Iterator[Document | Refused]:
    """The documents in the order of their lines."""
    setting = f"corpus.path={corpus.path}"
    for record in jsonl.read(files(corpus), corpus.path, {"_id": setting, "text": setting}):
        if isinstance(record, Refused):
            yield record
            continue
        where, line, fields = record
        yield document(where, line, fields.get("_id"), fields.get("title"), fields.get("text"))


def queries(queries: Queries) -> Iterator[Query | Refused]:
    """The queries in the order of their lines, then what is wrong with their excluded documents."""
    setting, faults = f"queries.path={queries.path}", list[Refused]()
    excluded = _excluded(queries, faults)
    unused = set(excluded)
    source = _file("queries.path", queries.path, "queries")
    for record in jsonl.read([source], queries.path, {"_id": setting, "text": setting}):
        if isinstance(record, Refused):
            yield record
            continue
        where, line, fields = record
        read = query(where, line, fields.get("_id"), fields.get("text"), fields.get("excluded_ids"))
        if isinstance(read, Query) and read.query_id in excluded:
            unused.discard(read.query_id)
            read = read._replace(excluded=tuple(dict.fromkeys((*read.excluded, *excluded[read.query_id][1]))))
        yield read
    yield from faults
    yield from (refused(excluded[each][0], "no such query", each) for each in excluded if each in unused)


def _excluded(queries: Queries, faults: list[Refused]) -> dict[str, tuple[str, list[str]]]:
    """By query id: where the last of its lines in excluded.jsonl stands, and the ids of all of them."""
    source = _either("queries.path", queries.path, "excluded")
    setting, excluded, known = f"queries.path={queries.path}", dict[str, tuple[str, list[str]]](), dict[str, str]()
    wanted = {"_id": setting, "excluded_ids": setting}
    for record in jsonl.read([source] if source else [], queries.path, wanted):
        if isinstance(record, Refused):
            faults.append(record)
            continue
        try:
            query_id, ids = identifier(record.fields.get("_id")), identifiers(record.fields.get("excluded_ids"))
        except Fault as fault:
            faults.append(refused(record.where, fault.reason, record.line))
            continue
        before = excluded[query_id][1] if query_id in excluded else []
        # Queries of one subset exclude the same thousands of documents: each id is kept once.
        excluded[query_id] = (record.where, before + [known.setdefault(each, each) for each in ids])
    return excluded


def _file(key: str, path: str, stem: str) -> Path:
    file = _either(key, path, stem)
    if file is None:
        raise BadInput(f"{key}={path}: expected {stem}.jsonl or {stem}.jsonl.gz there; set {key} to a BEIR folder.")
    return file


def _either(key: str, path: str, stem: str) -> Path | None:
    folder = existing(key, path)
    if not folder.is_dir():
        raise BadInput(f"{key}={path}: expected a BEIR folder, not a file; set {key} to it, or use the reader jsonl.")
    found = [file for suffix in jsonl.SUFFIXES if (file := folder / f"{stem}{suffix}").is_file()]
    if len(found) > 1:
        names = " and ".join(file.name for file in found)
        raise BadInput(f"{key}={path}: both {names} are there; expected one of them: remove the other.")
    return found[0] if found else None


def qrels_file(queries: Queries) -> Path | None:
    """The file that `queries.qrels` names, else the split's file of a BEIR folder; None where there are no qrels."""
    if queries.qrels:
        file = existing("queries.qrels", queries.qrels)
        if not file.is_file():
            raise BadInput(f"queries.qrels={queries.qrels}: expected a TSV file and not a folder; name the file.")
        return file
    folder = Path(queries.path).expanduser() / "qrels"
    if queries.reader != "beir" or not folder.is_dir():
        return None
    file = folder / f"{queries.split}.tsv"
    if not file.is_file():
        splits = ", ".join(sorted(each.stem for each in folder.glob("*.tsv"))) or "none"
        raise BadInput(f"queries.split={queries.split}: there is no {file}; set it to one of those there: {splits}.")
    return file


def judgements(queries: Queries) -> Iterator[Judgement | Refused]:
    """The qrels: BEIR's three columns below their header line, or TREC's four (query, 0, document, relevance) without.

    Columns are separated by TAB, since ids may hold spaces. Raises `BadInput` if the first line is neither.
    """
    file = qrels_file(queries)
    if file is None:
        return
    name = label(file, queries.qrels or queries.path)
    columns = 0
    for number, raw in lines(file):
        text = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not columns:
            columns = _columns(file, text)
            if columns == len(HEADER):
                continue
        if text.strip():
            yield _judgement(f"{name}:{number}", raw, columns)
    if not columns:
        raise BadInput(f"{file} is empty: expected qrels with the header line {' TAB '.join(HEADER)}.")


def _columns(file: Path, first: str) -> int:
    fields = first.split("\t")
    if [field.strip().lower() for field in fields] == HEADER or len(fields) == 4:
        return len(fields)
    raise BadInput(
        f"{file}:1: {first[:80]!r} is no beginning of qrels; expected the header line {' TAB '.join(HEADER)}, "
        "or TREC's four columns separated by TAB. Add the header, or separate the columns by TAB."
    )


def _judgement(where: str, raw: bytes, columns: int) -> Judgement | Refused:
    try:
        fields = decoded(raw).rstrip("\r\n").split("\t")
        if len(fields) != columns:
            raise Fault("wrong number of columns")
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", fields[-1].strip()):
            raise Fault("score is not an integer")
        return Judgement(identifier(fields[0]), identifier(fields[-2]), int(fields[-1]), where)
    except Fault as fault:
        return refused(where, fault.reason, raw.decode("utf-8", "replace"))
