import gzip
from pathlib import Path

import pytest

from actors.corpora import beir
from actors.corpora.records import BadInput, Document, Judgement, Query, Refused
from conf.schema import Beir, Queries

HEADER = "query-id\tcorpus-id\tscore\n"


def corpus(folder: Path) -> Beir:
    return Beir("beir", "c", str(folder), "stop")


def queries(folder: Path, qrels: Path | str = "", split: str = "test") -> Queries:
    return Queries("beir", str(folder), str(qrels), split, "_id", "text", 0, "stop")


def qrels(folder: Path, text: str | bytes) -> Queries:
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "qrels" / "test.tsv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return queries(folder)


def test_documents_have_their_title_above_their_text(tmp_path: Path) -> None:
    lines = '{"_id": "1", "title": "T", "text": "t"}\n{"_id": "2", "text": "u", "metadata": {}}\n{"_id": "3"}\n'
    (tmp_path / "corpus.jsonl").write_text(lines)
    assert list(beir.documents(corpus(tmp_path))) == [
        Document("1", "T\nt", "corpus.jsonl:1"),
        Document("2", "u", "corpus.jsonl:2"),
        Refused("corpus.jsonl:3", "no text", '{"_id": "3"}'),
    ]
    assert beir.files(corpus(tmp_path)) == [tmp_path / "corpus.jsonl"]


def test_a_corpus_of_another_layout_says_which_keys_there_are(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"docid": "1", "contents": "t"}\n')
    with pytest.raises(BadInput, match=r"corpus\.path=.*has the key '_id'.*docid, contents"):
        list(beir.documents(corpus(tmp_path)))


def test_missing_and_ambiguous_files_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"corpus\.path=.*expected corpus\.jsonl or corpus\.jsonl\.gz"):
        list(beir.documents(corpus(tmp_path)))
    with pytest.raises(BadInput, match=r"queries\.path=.*expected queries\.jsonl"):
        list(beir.queries(queries(tmp_path)))
    file = tmp_path / "corpus.jsonl"
    file.write_text("")
    with pytest.raises(BadInput, match="expected a BEIR folder, not a file"):
        list(beir.documents(corpus(file)))
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(BadInput, match=r"both corpus\.jsonl and corpus\.jsonl\.gz"):
        list(beir.documents(corpus(tmp_path)))


def test_excluded_documents_come_from_both_files(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "t", "excluded_ids": ["a", "b"]}\n{"_id": "2", "text": "u"}\n{"_id": "3", "text": "v"}\n'
    )
    (tmp_path / "excluded.jsonl.gz").write_bytes(
        gzip.compress(
            b'{"_id": "1", "excluded_ids": ["c", "a"]}\n{"_id": "3", "excluded_ids": ["N/A"]}\n'
            b'{"_id": "9", "excluded_ids": ["a"]}\n'
            b'{"_id": "2", "excluded_ids": 7}\n{"_id": "2", "excluded_ids": ["x"]}\n{"_id": "2", "excluded_ids": ["y"]}\n{'
        )
    )
    assert list(beir.queries(queries(tmp_path))) == [
        Query("1", "t", ("a", "b", "c"), "queries.jsonl:1"),
        Query("2", "u", ("x", "y"), "queries.jsonl:2"),
        Query("3", "v", (), "queries.jsonl:3"),
        Refused("excluded.jsonl.gz:4", "excluded_ids is not a list of ids", '{"_id": "2", "excluded_ids": 7}'),
        Refused("excluded.jsonl.gz:7", "not JSON", "{"),
        Refused("excluded.jsonl.gz:3", "no such query", "9"),
    ]
    assert beir.files(queries(tmp_path)) == [tmp_path / "excluded.jsonl.gz", tmp_path / "queries.jsonl"]


def test_judgements_below_a_header(tmp_path: Path) -> None:
    node = qrels(tmp_path, "\ufeffquery-id\tcorpus-id\tscore\r\nq 1\td 1\t2\r\n\r\nq 1\td\t-1\r\n")
    assert list(beir.judgements(node)) == [
        Judgement("q 1", "d 1", 2, "qrels/test.tsv:2"),
        Judgement("q 1", "d", -1, "qrels/test.tsv:4"),
    ]


def test_judgements_in_the_four_columns_of_trec(tmp_path: Path) -> None:
    node = qrels(tmp_path, "q\t0\td 1\t2\nq\tQ0\td 2\t0\n")
    assert [each[:3] for each in beir.judgements(node)] == [("q", "d 1", 2), ("q", "d 2", 0)]


def test_bad_judgements_are_refused(tmp_path: Path) -> None:
    bad = [
        (b"q\td\t1.0", "score is not an integer"), (b"q\td\t", "score is not an integer"),
        (b"q\td\t1_0", "score is not an integer"), (b"q\td\tyes", "score is not an integer"),
        (b"q\td", "wrong number of columns"), (b"q d 1", "wrong number of columns"), (b"q\t0\td\t1", "wrong number of columns"),
        (b"\td\t1", "no id"), (b"q\t\t1", "no id"), (b"q\t\xff\t1", "not UTF-8"),
    ]  # fmt: skip
    node = qrels(tmp_path, HEADER.encode() + b"\n".join(line for line, _ in bad) + b"\nq\td\t1")
    *refused, last = beir.judgements(node)
    assert [each[:2] for each in refused] == [(f"qrels/test.tsv:{n}", reason) for n, (_, reason) in enumerate(bad, 2)]
    assert last == Judgement("q", "d", 1, f"qrels/test.tsv:{len(bad) + 2}")


@pytest.mark.parametrize("text", ["", "q 0 d 1\n", "q\td\t1\n", "qid\tdocid\trel\n"])
def test_qrels_of_another_form_are_bad_input(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match="header line query-id TAB corpus-id TAB score"):
        list(beir.judgements(qrels(tmp_path, text)))


def test_which_qrels_are_read(tmp_path: Path) -> None:
    assert list(beir.judgements(queries(tmp_path))) == []
    qrels(tmp_path, HEADER + "q\td\t1\n")
    (tmp_path / "qrels" / "dev.tsv").write_text(HEADER + "q\td\t2\n")
    (tmp_path / "own.tsv").write_text(HEADER + "q\td\t3\n")
    assert [each[2] for each in beir.judgements(queries(tmp_path))] == [1]
    assert [each[2] for each in beir.judgements(queries(tmp_path, split="dev"))] == [2]
    assert [each[2:] for each in beir.judgements(queries(tmp_path, tmp_path / "own.tsv"))] == [(3, "own.tsv:2")]
    with pytest.raises(BadInput, match=r"queries\.split=train: .* dev, test"):
        list(beir.judgements(queries(tmp_path, split="train")))
    with pytest.raises(BadInput, match=r"queries\.qrels=.*no such file"):
        list(beir.judgements(queries(tmp_path, tmp_path / "none.tsv")))
    with pytest.raises(BadInput, match=r"queries\.qrels=.*not a folder"):
        list(beir.judgements(queries(tmp_path, tmp_path)))
