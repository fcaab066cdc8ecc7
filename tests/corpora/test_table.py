import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from actors.corpora import table
from actors.corpora.records import BadInput, Document, Refused
from conf.schema import Queries, Table


def corpus(path: Path, title: str = "") -> Table:
    return Table("table", "c", str(path), "id", title, "text", "stop")


def written(folder: Path, content: str | bytes, name: str = "c.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def places(path: Path) -> list[tuple[str, str]]:
    return [(each.where, each.reason if isinstance(each, Refused) else each.doc_id) for each in table.documents(corpus(path))]


def test_a_record_stands_where_its_first_line_is(tmp_path: Path) -> None:
    path = written(tmp_path, 'id,n,text\r\na,1,"one\r\n\r\ntwo ""x"", y"\r\n\r\nb,2,t\r\n')
    assert list(table.documents(corpus(path))) == [
        Document("a", 'one\r\n\r\ntwo "x", y', "c.csv:2"),
        Document("b", "t", "c.csv:6"),
    ]


def test_bad_records_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b'id,text\n,t\na,\xff\n"a\tb",t\na\na,t,u\nb,"\n\xe9\n"\nz,t\n')
    assert places(path) == [
        ("c.csv:2", "no id"), ("c.csv:3", "not UTF-8"), ("c.csv:4", "TAB or line break in the id"),
        ("c.csv:5", "wrong number of columns"), ("c.csv:6", "wrong number of columns"), ("c.csv:7", "not UTF-8"), ("c.csv:10", "z"),
    ]  # fmt: skip


@pytest.mark.parametrize("stray", ['x,"never closed', 'x,"closed" badly', '"x,t'])
def test_a_stray_quote_costs_its_own_line_only(tmp_path: Path, stray: str) -> None:
    path = written(tmp_path, f'id,text\na,t\n{stray}\nb,"two\nlines"\nc,t\n{stray}\n')
    expected = [("c.csv:2", "a"), ("c.csv:3", "not CSV"), ("c.csv:4", "b"), ("c.csv:6", "c"), ("c.csv:7", "not CSV")]
    assert places(path) == expected


def test_a_quote_that_is_open_at_the_end_takes_no_line_with_it(tmp_path: Path) -> None:
    path = written(tmp_path, 'id,text\nx,"t\na,t\nb,t\nc,t\n')
    assert places(path) == [("c.csv:2", "not CSV"), ("c.csv:3", "a"), ("c.csv:4", "b"), ("c.csv:5", "c")]


BAD = {"x,t,u": "wrong number of columns", ",t": "no id", 'x,"t" u': "not CSV", 'x\t,"t\n\n"': "TAB or line break in the id"}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(st.sampled_from(sorted(BAD)), st.tuples(st.text("ab", min_size=1), st.text('a",\n ')))))
def test_all_bad_records_are_found(records: list[str | tuple[str, str]]) -> None:
    content, number, expected = "id,text\r\n", 2, []
    for record in records:
        stream = io.StringIO(newline="")
        csv.writer(stream).writerow([] if isinstance(record, str) else record)
        text = record + "\r\n" if isinstance(record, str) else stream.getvalue()
        expected.append((f"c.csv:{number}", BAD[record] if isinstance(record, str) else record[0]))
        content, number = content + text, number + text.count("\n")
    with tempfile.TemporaryDirectory() as folder:
        assert places(written(Path(folder), content)) == expected


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    assert places(written(tmp_path, "\ufeffid,text\na,t\n")) == [("c.csv:2", "a")]


def test_the_suffix_decides_the_separator(tmp_path: Path) -> None:
    assert list(table.documents(corpus(written(tmp_path, "id\ttext\na\tt, u\n", "c.tsv")))) == [Document("a", "t, u", "c.tsv:2")]


def test_long_documents_are_read_and_the_limit_of_others_is_left(tmp_path: Path) -> None:
    csv.field_size_limit(131_072)
    path = written(tmp_path, "id,text\na," + "x" * 200_000)
    assert len(next(table.documents(corpus(path)))[1]) == 200_000
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "c.csv:1: expected a header line"),
        ('"id,text', "c.csv:1: expected a header line"),
        ("uid,text\na,t\n", "corpus.id=id: expected one such column in .*: uid, text"),
        ("id,text,text\na,t,u\n", "corpus.text=text: expected one such column"),
        ("id,text\na,t\n", "corpus.title=title: expected one such column"),
    ],
)
def test_a_table_without_the_configured_columns_is_bad_input(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        list(table.documents(corpus(written(tmp_path, content), "title")))


def test_a_folder_is_bad_input(tmp_path: Path) -> None:
    written(tmp_path, "id,text\n")
    with pytest.raises(BadInput, match=r"expected one file and not a folder.*c\.csv"):
        list(table.documents(corpus(tmp_path)))


def test_queries_name_their_own_settings(tmp_path: Path) -> None:
    path = written(tmp_path, "qid,text\n1,t\n")
    with pytest.raises(BadInput, match=r"queries\.id=id: "):
        list(table.queries(Queries("table", str(path), "", "", "id", "text", 0, "stop")))
