import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.corpora import parquet
from actors.corpora.records import BadInput, Document, Query, Refused
from conf.schema import Parquet, Queries


def corpus(path: Path, title: str = "") -> Parquet:
    return Parquet("parquet", "c", str(path), "id", title, "text", "stop")


def written(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def not_utf8(*values: bytes) -> pa.Array:
    binary = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())


def test_bad_rows_are_refused_with_their_number(tmp_path: Path) -> None:
    ids, texts, titles = ["a", None, "", "x\ty", "e"], ["t", "u", "v", "w", None], ["T", None, None, None, None]
    path = written(tmp_path / "c.parquet", id=ids, text=texts, title=titles)
    assert list(parquet.documents(corpus(path, "title"))) == [
        Document("a", "T\nt", "c.parquet:1"),
        Refused("c.parquet:2", "no id", "u"),
        Refused("c.parquet:3", "no id", "v"),
        Refused("c.parquet:4", "TAB or line break in the id", "x\ty"),
        Refused("c.parquet:5", "no text", "e"),
    ]


@pytest.mark.parametrize("encode", [lambda text: text, lambda text: text.dictionary_encode()])
def test_a_string_that_is_not_utf8_is_refused(tmp_path: Path, encode) -> None:  # type: ignore[no-untyped-def]
    path = written(tmp_path / "c.parquet", id=["a", "b", "c"], text=encode(not_utf8(b"t", b"\xff", "ü".encode())))
    read = list(parquet.documents(corpus(path)))
    assert [each[:2] for each in read] == [("a", "t"), ("c.parquet:2", "not UTF-8"), ("c", "ü")]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8()])
def test_integer_ids_are_their_decimals(tmp_path: Path, kind: pa.DataType) -> None:
    path = written(tmp_path / "c.parquet", id=pa.array([7, 0], kind), text=["t", "u"])
    assert [each[0] for each in parquet.documents(corpus(path))] == ["7", "0"]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_every_kind_of_string_column_is_read(tmp_path: Path, kind: pa.DataType) -> None:
    path = written(tmp_path / "c.parquet", id=["a"], text=pa.array(["t"]).cast(kind))
    assert list(parquet.documents(corpus(path))) == [Document("a", "t", "c.parquet:1")]


def test_rows_are_numbered_across_batches_and_files_are_sorted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    written(tmp_path / "b.parquet", id=["z"], text=["t"])
    ids = [f"d{n}" for n in range(3000)]
    written(tmp_path / "a" / "0.parquet", id=ids, text=ids)
    read = list(parquet.documents(corpus(tmp_path)))
    assert [each[0] for each in read] == [*ids, "z"]
    assert [each[2] for each in read[2998:]] == ["a/0.parquet:2999", "a/0.parquet:3000", "b.parquet:1"]


def test_a_row_group_is_not_held_as_a_whole(tmp_path: Path) -> None:
    texts = pa.array([random.Random(n).randbytes(2000).hex() for n in range(8000)])
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"id": [str(n) for n in range(8000)], "text": texts}), path, compression="none", use_dictionary=False)
    size, before = texts.nbytes, pa.total_allocated_bytes()
    reading = parquet.documents(corpus(path))
    next(reading)
    assert pa.total_allocated_bytes() - before < size / 2


def test_a_column_that_one_file_lacks_stops_before_the_first_record(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", id=["a"], text=["t"])
    written(tmp_path / "b.parquet", id=["a"], body=["t"])
    with pytest.raises(BadInput, match=r"corpus\.text=text: expected one such column in .*b\.parquet.*id, body"):
        next(parquet.documents(corpus(tmp_path)))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [1.5], "text": ["t"]}, r"corpus\.id=id: its type .* double"),
        ({"id": ["a"], "text": [1]}, r"corpus\.text=text: its type .* int64"),
    ],
)
def test_a_column_of_another_type_is_bad_input(tmp_path: Path, columns: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        list(parquet.documents(corpus(written(tmp_path / "c.parquet", **columns))))


def test_what_is_no_parquet_file_or_a_damaged_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    path.write_bytes(b"id,text\n")
    with pytest.raises(BadInput, match=rf"{path}: expected a Parquet file"):
        list(parquet.documents(corpus(path)))
    content = bytearray(written(path, id=["a"] * 9, text=[f"text {n}" for n in range(9)]).read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    with pytest.raises(BadInput, match=rf"{path}: damaged after row 0"):
        list(parquet.documents(corpus(path)))


def test_queries_have_their_excluded_documents(tmp_path: Path) -> None:
    path = written(tmp_path / "q.parquet", id=["1", "2", "3"], text=["t", "u", "v"], excluded_ids=[["a", "b"], ["N/A"], None])
    node = Queries("parquet", str(path), "", "", "id", "text", 0, "stop")
    assert list(parquet.queries(node)) == [
        Query("1", "t", ("a", "b"), "q.parquet:1"), Query("2", "u", (), "q.parquet:2"), Query("3", "v", (), "q.parquet:3"),
    ]  # fmt: skip
