"""The synthetic reader: the same documents whatever the span, questions that its documents answer, and where it may be chosen."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from actors.algorithms.terms import Analyzer
from actors.artifacts import corpus as corpus_files
from actors.corpora import readers, synthetic
from actors.corpora.admission import admit, admit_judgements, admit_queries
from conf import schema
from conf.load import BadConfig, compose
from jobs import build_corpus
from jobs.stages import Addresses


def settings_of(*overrides: str) -> schema.Settings:
    return compose(["corpus=synthetic", "corpus.documents=5000", "embeddings=synthetic", *overrides])


@pytest.fixture(scope="module")
def settings() -> schema.Settings:
    return settings_of("queries.limit=100")


def test_spans_are_the_documents(settings: schema.Settings) -> None:
    documents = list(readers.documents(settings.corpus))
    assert len(list(admit(documents, "stop"))) == readers.rows(settings.corpus) == 5000
    assert documents[0].doc_id == "s0000" and documents[4999].doc_id == "s4999"
    for first, last in ((0, 5), (4090, 4100), (4999, 5000)):
        ids, texts = readers.span(settings.corpus, first, last)
        assert list(zip(ids.to_pylist(), texts.to_pylist(), strict=True)) == [d[:2] for d in documents[first:last]]
        ids.validate(full=True)
        texts.validate(full=True)


@pytest.mark.parametrize("documents", [1, 2, 13, 40])
def test_few_documents(documents: int) -> None:
    settings = compose(["corpus=synthetic", f"corpus.documents={documents}"])
    assert len(list(admit(readers.documents(settings.corpus), "stop"))) == documents
    judged = {j.query_id for j in readers.judgements(settings.queries, settings.corpus)}
    assert judged == {q.query_id for q in readers.queries(settings.queries, settings.corpus)} != set()


def test_a_seed_changes_all() -> None:
    texts = [{d.text for d in readers.documents(settings_of(f"seed={seed}").corpus)} for seed in (0, 1)]
    assert len(texts[0] & texts[1]) < 5


def test_files_made_apart_are_those_of_one_writer(settings: schema.Settings, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "BATCH", 700)
    monkeypatch.setattr(corpus_files, "PART", 3)
    (tmp_path / "serial").mkdir()
    (tmp_path / "apart").mkdir()
    counts = corpus_files.write(tmp_path / "serial", (d[:2] for d in readers.documents(settings.corpus)))
    spans = corpus_files.missing_files(tmp_path / "apart", 5000)
    assert spans == [(0, 2100), (2100, 4200), (4200, 5000)]
    assert build_corpus.write_file(settings.corpus, tmp_path / "apart", *spans[2]) == 800
    assert corpus_files.missing_files(tmp_path / "apart", 5000) == spans[:2]
    for span in spans[:2]:
        build_corpus.write_file(settings.corpus, tmp_path / "apart", *span)
    files = [{p.name: p.read_bytes() for p in (tmp_path / which).iterdir()} for which in ("serial", "apart")]
    assert files[0] == files[1] and len(files[0]) == 3
    assert corpus_files.count(tmp_path / "apart") == counts


def test_questions_and_judgements_follow_the_topics(settings: schema.Settings) -> None:
    queries = list(admit_queries(readers.queries(settings.queries, settings.corpus), "stop"))
    judged = list(admit_judgements(readers.judgements(settings.queries, settings.corpus), "stop"))
    assert len(queries) == 100
    topics = synthetic.topics_of(settings.corpus)
    leaf_of = topics.leaf_of(np.arange(5000))
    grades: dict[str, dict[int, int]] = {}
    for line in judged:
        grades.setdefault(line.query_id, {})[int(line.doc_id[1:])] = line.relevance
    for query in queries:
        leaf = int(query.where.split()[1])
        sibling = topics.sibling(leaf)
        assert {row for row, grade in grades[query.query_id].items() if grade == 2} == set(np.flatnonzero(leaf_of == leaf).tolist())
        beside = set(np.flatnonzero(leaf_of == sibling).tolist()) if sibling >= 0 else set()
        assert {row for row, grade in grades[query.query_id].items() if grade == 1} == beside
    assert len({q.where for q in queries}) == 100
    again = list(readers.queries(settings.queries, settings.corpus))
    assert again == queries


def test_a_limit_of_none_asks_about_every_topic_and_a_lower_one_asks_the_same_first() -> None:
    settings = settings_of("queries.limit=0")
    queries = list(readers.queries(settings.queries, settings.corpus))
    assert len(queries) == synthetic.topics_of(settings.corpus).leaves
    few = settings_of("queries.limit=7")
    assert list(readers.queries(few.queries, few.corpus)) == queries[:7]


def test_words_find_some_of_the_documents_but_not_all(settings: schema.Settings) -> None:
    """Documents in the first wording share the question's rarest words, those in the second none of them."""
    analyzer = Analyzer("english", "english")
    terms = [set(analyzer.terms(d.text)) for d in readers.documents(settings.corpus)]
    gold: dict[str, list[int]] = {}
    for line in readers.judgements(settings.queries, settings.corpus):
        if line.relevance == 2:
            gold.setdefault(line.query_id, []).append(int(line.doc_id[1:]))
    shares = []
    for query in readers.queries(settings.queries, settings.corpus):
        asked = set(analyzer.terms(query.text))
        shares.append(np.mean([len(asked & terms[row]) >= 2 for row in gold[query.query_id]]))
    assert 0.3 < np.mean(shares) < 0.8


def test_its_queries_and_vectors_need_it() -> None:
    with pytest.raises(BadConfig, match="embeddings='synthetic': expected corpus=synthetic"):
        compose(["corpus=scifact", "embeddings=synthetic"])
    with pytest.raises(BadConfig, match="queries.reader='synthetic': expected corpus=synthetic"):
        compose(["corpus=scifact", "queries.reader=synthetic"])


def test_what_changes_documents_changes_the_corpus_and_the_number_of_questions_does_not() -> None:
    usual, few = settings_of(), settings_of("corpus.queries=7")
    name = Addresses(usual)["corpus"].name
    assert Addresses(few)["corpus"].name == name
    assert Addresses(few)["embeddings"].name == Addresses(usual)["embeddings"].name
    assert Addresses(few)["queries"].name != Addresses(usual)["queries"].name
    for change in ({"seed": 9}, {"words": 30.0}, {"reworded": 0.1}, {"documents": 5001}):
        other = dataclasses.replace(usual, corpus=dataclasses.replace(usual.corpus, **change))
        assert Addresses(other)["corpus"].name != name
