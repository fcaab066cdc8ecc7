"""All readers: what is written in any format is read back the same; the real collections have the counts they state."""

import csv
import gzip
import io
import json
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from actors.corpora import readers
from actors.corpora.admission import admit, admit_judgements, admit_queries
from actors.corpora.records import Document, Query, Refused, join_title
from conf.schema import Beir, Jsonl, Parquet, Queries, Table

any_text = st.text(st.characters(exclude_categories=["Cs"]))
ids = any_text.filter(lambda text: text.strip() and "\t" not in text and text.splitlines() == [text])
rows = st.lists(st.tuples(ids, any_text, any_text))


def write(folder: Path, reader: str, stem: str, names: tuple[str, ...], records: list[tuple[str, ...]]) -> Path:
    """The records in the reader's format; the last letter z of the reader asks for .gz."""
    if reader == "parquet":
        path = folder / f"{stem}.parquet"
        columns = zip(*records, strict=True) if records else [[] for _ in names]
        pq.write_table(pa.table({n: pa.array(list(c), pa.string()) for n, c in zip(names, columns, strict=True)}), path)
        return path
    if reader.startswith(("csv", "tsv")):
        stream = io.StringIO(newline="")
        csv.writer(stream, delimiter="," if reader.startswith("csv") else "\t").writerows([names, *records])
        text, suffix = stream.getvalue(), f".{reader[:3]}"
    else:
        lines = [json.dumps(dict(zip(names, record, strict=True)), ensure_ascii=reader.endswith("z")) for record in records]
        text, suffix = "".join(line + "\n" for line in lines), ".jsonl"
    path = folder / (f"{stem}{suffix}.gz" if reader.endswith("z") else f"{stem}{suffix}")
    path.write_bytes(gzip.compress(text.encode()) if reader.endswith("z") else text.encode())
    return path


def corpus_node(reader: str, path: Path) -> readers.Corpus:
    if reader.startswith("beir"):
        return Beir("beir", "c", str(path.parent), "stop")
    if reader == "parquet":
        return Parquet("parquet", "c", str(path), "_id", "title", "text", "stop")
    if reader.startswith("jsonl"):
        return Jsonl("jsonl", "c", str(path), "_id", "title", "text", "stop")
    return Table("table", "c", str(path), "_id", "title", "text", "stop")


FORMATS = ["beir", "beir-z", "jsonl", "jsonl-z", "parquet", "csv", "csv-z", "tsv", "tsv-z"]


@pytest.mark.parametrize("reader", FORMATS)
@settings(deadline=None, max_examples=20)
@given(records=rows)
def test_any_documents_are_read_back(reader: str, records: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        node = corpus_node(reader, write(Path(folder), reader, "corpus", ("_id", "title", "text"), records))
        read = list(readers.documents(node))
        assert [each[:2] for each in read] == [(doc_id, join_title(title, text)) for doc_id, title, text in records]
        assert not any(isinstance(each, Refused) for each in read)


@pytest.mark.parametrize("reader", FORMATS)
@settings(deadline=None, max_examples=8)
@given(records=st.lists(st.tuples(ids, any_text)))
def test_any_queries_are_read_back(reader: str, records: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), reader, "queries", ("_id", "text"), records)
        name = {"beir": "beir", "jsonl": "jsonl", "parquet": "parquet"}.get(reader.removesuffix("-z"), "table")
        node = queries_node(name, path.parent if name == "beir" else path)
        assert [each[:3] for each in readers.queries(node)] == [(qid, text.strip(), ()) for qid, text in records]


def queries_node(reader: str, path: Path | str, qrels: str = "", split: str = "test") -> Queries:
    return Queries(reader, str(path), qrels, split, "_id", "text", 0, "stop")


def test_the_reader_none_has_nothing() -> None:
    node = queries_node("none", "")
    assert (list(readers.queries(node)), list(readers.judgements(node)), readers.files(node)) == ([], [], [])


def test_a_file_of_queries_takes_its_qrels_by_name(tmp_path: Path) -> None:
    queries = write(tmp_path, "jsonl", "asked", ("_id", "text"), [("q", "why")])
    qrels = tmp_path / "a.tsv"
    qrels.write_text("query-id\tcorpus-id\tscore\nq\td\t2\n")
    node = queries_node("jsonl", queries, str(qrels))
    assert list(readers.queries(node)) == [Query("q", "why", (), "asked.jsonl:1")]
    assert list(readers.judgements(node)) == [("q", "d", 2, "a.tsv:2")]
    assert readers.files(node) == [qrels, queries]
    assert readers.files(queries_node("jsonl", queries)) == [queries]


def test_the_python_documentation_is_a_reader_like_the_others() -> None:
    node = queries_node("python_docs", "")
    assert {each.query_id for each in readers.judgements(node)} <= {each.query_id for each in readers.queries(node)}
    assert all(file.is_file() for file in readers.files(node))


@pytest.mark.collection
@pytest.mark.parametrize(("name", "empty"), [("scifact", []), ("cranfield", ["471", "995"])])
def test_real_collections_have_the_counts_that_they_state(name: str, empty: list[str]) -> None:
    if "GAREN_COLLECTIONS" not in os.environ:
        pytest.skip("GAREN_COLLECTIONS is not set")
    folder = Path(os.environ["GAREN_COLLECTIONS"]) / name
    stated = json.loads((folder / "INFO.json").read_text())
    documents = admit(readers.documents(Beir("beir", name, str(folder), "skip")), "skip")
    node = queries_node("beir", folder)
    read = list(documents)
    assert all(isinstance(each, Document) for each in read)
    assert [each.excerpt for each in documents.refused] == empty
    assert len(read) == stated["docs"] - len(empty)
    assert len(list(admit_queries(readers.queries(node), "stop"))) == stated["queries"]
    judgements = list(admit_judgements(readers.judgements(node), "stop"))
    assert len(judgements) == stated["qrels"]
    assert sum(each.relevance > 0 for each in judgements) == stated["positive"]


@pytest.mark.collection
def test_excluded_documents_of_bright_are_read() -> None:
    if "GAREN_COLLECTIONS" not in os.environ:
        pytest.skip("GAREN_COLLECTIONS is not set")
    folder = Path(os.environ["GAREN_COLLECTIONS"]) / "bright_queries"
    with gzip.open(folder / "aops" / "excluded.jsonl.gz", "rt", encoding="utf-8") as lines:
        stated = {record["_id"]: set(record["excluded_ids"]) for record in map(json.loads, lines)}
    aops = list(admit_queries(readers.queries(queries_node("beir", folder / "aops")), "stop"))
    assert {each.query_id: set(each.excluded) for each in aops} == stated
    assert all(len(each.excluded) == len(set(each.excluded)) for each in aops)
    pony = list(admit_queries(readers.queries(queries_node("beir", folder / "pony")), "stop"))
    assert len(pony) == 112
    assert not any(each.excluded for each in pony)
