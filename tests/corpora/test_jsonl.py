import gzip
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from actors.corpora import jsonl
from actors.corpora.lines import source_files
from actors.corpora.records import BadInput, Document, Query, Refused
from conf.schema import Jsonl, Queries

GOOD = b'{"id": "a b", "text": "t"}'

FAULTS = [
    (b'{"id": "a", "text": "\xff"}', "not UTF-8"),
    (b'{"id": "a", "text": "t"', "not JSON"),
    (b'{"id": "a", "text": "t"} {}', "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b'{"id": "a", "text": "t", "n": ' + b"1" * 5000 + b"}", "not JSON"),
    (b'{"id": "a", "text": "t", "n": NaN}', "NaN or Infinity"),
    (b'{"id": "a", "text": -Infinity}', "NaN or Infinity"),
    (b'["a", "t"]', "not an object"),
    (b"null", "not an object"),
    (b'{"text": "t"}', "no id"),
    (b'{"id": null, "text": "t"}', "no id"),
    (b'{"id": "", "text": "t"}', "no id"),
    (b'{"id": " ", "text": "t"}', "no id"),
    (b'{"id": 1.0, "text": "t"}', "id is not a string"),
    (b'{"id": true, "text": "t"}', "id is not a string"),
    (b'{"id": ["a"], "text": "t"}', "id is not a string"),
    (b'{"id": "a\\tb", "text": "t"}', "TAB or line break in the id"),
    (b'{"id": "a\\n", "text": "t"}', "TAB or line break in the id"),
    (b'{"id": "a\\rb", "text": "t"}', "TAB or line break in the id"),
    (b'{"id": "a\\u2028b", "text": "t"}', "TAB or line break in the id"),
    (b'{"id": "a"}', "no text"),
    (b'{"id": "a", "text": null}', "no text"),
    (b'{"id": "a", "text": 7}', "text is not a string"),
    (b'{"id": "a", "text": ["t"]}', "text is not a string"),
    (b'{"id": "a", "text": "t", "title": 7}', "title is not a string"),
    (b'{"id": "\\ud800", "text": "t"}', "lone surrogate"),
    (b'{"id": "a", "text": "t\\udfff"}', "lone surrogate"),
    (b'{"id": "a", "text": "t", "title": "\\ud800"}', "lone surrogate"),
]


def corpus(path: Path, title: str = "") -> Jsonl:
    return Jsonl("jsonl", "c", str(path), "id", title, "text", "stop")


def queries(path: Path) -> Queries:
    return Queries("jsonl", str(path), "", "", "id", "text", 0, "stop")


def written(folder: Path, *lines: bytes, name: str = "c.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"\n".join(lines))
    return path


@pytest.mark.parametrize(("line", "reason"), FAULTS)
def test_a_bad_line_is_refused_with_its_place_and_reason(tmp_path: Path, line: bytes, reason: str) -> None:
    path = written(tmp_path, GOOD, line, b'{"id": "z", "text": "t", "title": "T"}')
    first, bad, last = jsonl.documents(corpus(path, "title"))
    assert first == Document("a b", "t", "c.jsonl:1")
    assert bad == Refused("c.jsonl:2", reason, line.decode("utf-8", "replace")[:80])
    assert last == Document("z", "T\nt", "c.jsonl:3")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([(GOOD, ""), (b"", ""), *FAULTS])), st.booleans(), st.booleans())
def test_all_bad_lines_are_found(lines: list[tuple[bytes, str]], crlf: bool, compressed: bool) -> None:
    content = (b"\r\n" if crlf else b"\n").join(line for line, _ in [(GOOD, ""), *lines])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("c.jsonl.gz" if compressed else "c.jsonl")
        path.write_bytes(gzip.compress(content) if compressed else content)
        found = [each for each in jsonl.documents(corpus(path)) if isinstance(each, Refused)]
    # No title is configured here, so what the key holds does not matter.
    expected = [(f"{path.name}:{n}", reason) for n, (line, reason) in enumerate(lines, 2) if reason and b"title" not in line]
    assert [each[:2] for each in found] == expected


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.jsonl")
    with pytest.raises(BadInput, match=f"corpus.path={tmp_path}/x.jsonl: expected a file or a folder, not a pipe or device"):
        source_files("corpus.path", str(tmp_path / "x.jsonl"), (".jsonl",))


def test_an_integer_id_is_its_decimals(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"id": 12, "text": "t"}', b'{"id": -3, "text": "t"}')
    assert [each[0] for each in jsonl.documents(corpus(path))] == ["12", "-3"]


def test_a_byte_order_mark_belongs_to_no_record(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf" + GOOD)
    assert list(jsonl.documents(corpus(path))) == [Document("a b", "t", "c.jsonl:1")]


def test_a_title_may_be_missing_or_null(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD, b'{"id": "n", "title": null, "text": "t"}', b'{"id": "t", "title": "T", "text": ""}')
    assert [each[1] for each in jsonl.documents(corpus(path, "title"))] == ["t", "t", "T"]


def test_a_folder_is_read_in_order_without_hidden_and_other_files(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/z.jsonl", ".hidden.jsonl", ".git/x.jsonl", "notes.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        written(tmp_path, GOOD, name=name)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(GOOD))
    assert [each[2] for each in jsonl.documents(corpus(tmp_path))] == ["a/z.jsonl:1", "b.jsonl:1", "b.jsonl.gz:1"]
    assert jsonl.files(corpus(tmp_path)) == [tmp_path / "a" / "z.jsonl", tmp_path / "b.jsonl", tmp_path / "b.jsonl.gz"]


@pytest.mark.parametrize(("cut", "after"), [(slice(None, 10), 0), (slice(None, -9), 49), (slice(0, 0), 0)])
def test_a_damaged_gz_is_named(tmp_path: Path, cut: slice, after: int) -> None:
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n".join([GOOD] * 50))[cut] or b"no gzip at all")
    with pytest.raises(BadInput, match=rf"{path}.*(truncated|damaged) after line {after} "):
        list(jsonl.documents(corpus(path)))


def test_a_gz_with_a_wrong_checksum_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.gz"
    content = bytearray(gzip.compress(GOOD))
    content[-6] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadInput, match="c.jsonl.gz"):
        list(jsonl.documents(corpus(path)))


@pytest.mark.parametrize("key", ["id", "text", "title"])
def test_a_key_that_no_record_has_is_bad_input(tmp_path: Path, key: str) -> None:
    record = {"id": "a", "text": "t", "title": "T", "extra": 1}
    del record[key]
    path = written(tmp_path, json.dumps(record).encode(), json.dumps(record).encode())
    with pytest.raises(BadInput) as raised:
        list(jsonl.documents(corpus(path, "title")))
    assert str(raised.value).startswith(f"corpus.{key}={key}: none of the first 2 records has the key")
    assert ", ".join(record) in str(raised.value)


def test_a_wrong_key_stops_early_but_a_late_title_does_not(tmp_path: Path) -> None:
    path = written(tmp_path, *[GOOD] * 1500, b'{"id": "z", "text": "t", "title": "T"}')
    read = list(jsonl.documents(corpus(path, "title")))
    assert read[-1] == Document("z", "T\nt", "c.jsonl:1501")
    endless = jsonl.documents(Jsonl("jsonl", "c", str(path), "id", "", "body", "skip"))
    with pytest.raises(BadInput, match="corpus.text=body: none of the first 1000 "):
        for _ in range(1200):
            next(endless)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "corpus.path is empty"),
        ("missing.jsonl", "there is no such file"),
        ("c.parquet", "expected a file ending in .jsonl or .jsonl.gz"),
        ("folder", "the folder holds no file ending in"),
    ],
)
def test_a_path_that_cannot_be_read_is_bad_input(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    written(tmp_path, GOOD, name="c.parquet")
    node = corpus(tmp_path)
    node.path = str(tmp_path / path) if path else ""
    with pytest.raises(BadInput, match=message):
        list(jsonl.documents(node))


def test_queries_have_their_excluded_documents(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        b'{"id": "1", "text": " t ", "excluded_ids": ["b", 2, "b"]}',
        b'{"id": "2", "text": "t", "excluded_ids": ["N/A"]}',
        b'{"id": "3", "text": "t", "excluded_ids": "b"}',
        b'{"id": "4", "text": "t", "excluded_ids": [""]}',
        b'{"id": "5"}',
        b"{",
    )
    read = list(jsonl.queries(queries(path)))
    assert read[:2] == [Query("1", "t", ("b", "2"), "c.jsonl:1"), Query("2", "t", (), "c.jsonl:2")]
    wrong = "excluded_ids is not a list of ids"
    assert [each[:2] for each in read[2:]] == [
        ("c.jsonl:3", wrong), ("c.jsonl:4", wrong), ("c.jsonl:5", "no text"), ("c.jsonl:6", "not JSON"),
    ]  # fmt: skip
