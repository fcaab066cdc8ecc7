from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from actors import lexicon_builder as builder
from actors.algorithms import bm25_building as building
from actors.algorithms.terms import Analyzer
from actors.artifacts import corpus, lexicon as lexicon_files
from actors.artifacts.blocks import blocks_of
from conf import schema
from tests.algorithms.test_bm25 import CORPORA

NODE = schema.Lexicon(0.9, 0.4, "english", "none")


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)


def whole(folder: Path, texts: list[str]) -> dict[str, bytes]:
    """The files of a lexicon that was built in memory, in one shard."""
    built = building.build(texts, Analyzer(NODE.stemmer, NODE.stop_words), NODE.k1, NODE.b)
    lexicon_files.write(folder, lexicon_files.Lexicon(**vars(built), stemmer=NODE.stemmer, stop_words=NODE.stop_words))
    return files(folder)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def sharded(source: Path, draft: Path, rows: int, postings: int, stop_after: int = -1) -> bool:
    """Every step in the order that no dependency forbids, the last of a kind first. Ends after so many; returns whether done."""
    steps = [
        lambda: [(builder.read_rows, NODE, source, draft, *span) for span in builder.missing_rows(draft, documents(source), rows)],
        lambda: [] if (draft / lexicon_files.SETTINGS).exists() else [(builder.take_together, NODE, draft)],
        lambda: [(builder.weigh, NODE, draft, first) for first, _ in builder.missing_shards(draft)],
        lambda: [(builder.join_rows, draft)],
        lambda: [(builder.gather, draft, *span) for span in builder.missing_postings(draft, postings)],
        lambda: [(builder.join_postings, draft)],
    ]
    left = stop_after
    for missing in steps:
        for step, *arguments in reversed(missing()):
            if left == 0:
                return False
            step(*arguments)
            left -= 1
    return True


def documents(source: Path) -> int:
    return len(corpus.open_corpus(source))


def written(folder: Path, texts: list[str]) -> Path:
    folder.mkdir(parents=True)
    corpus.write(folder, ((str(row), text) for row, text in enumerate(texts)))
    return folder


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CORPORA, st.integers(1, 13), st.integers(1, 30), st.integers(1, 40))
def test_built_in_shards_the_files_are_those_of_one_piece(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], rows: int, postings: int, tokens: int
):
    folder = tmp_path_factory.mktemp("lexicon")
    source = written(folder / "corpus", texts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(building, "TOKENS", tokens)
        assert sharded(source, folder / "draft", rows, postings)
    assert files(folder / "draft") == whole(folder / "whole", texts)
    shutil.rmtree(folder)


def test_ended_between_any_two_steps_and_cut_otherwise_the_files_are_the_same(tmp_path: Path):
    draw = np.random.default_rng(5)
    texts = [" ".join(f"w{n}" for n in draw.zipf(1.4, 9)) for _ in range(16)]
    source, expected = written(tmp_path / "corpus", texts), whole(tmp_path / "whole", texts)
    ended = 0
    for stop_after in range(1, 100):
        draft = tmp_path / f"draft{stop_after}"
        done = sharded(source, draft, 6, 30, stop_after)
        ended += not done
        sharded(source, draft, 4, 60, 2)
        assert sharded(source, draft, 5, 25)
        assert files(draft) == expected, f"ended after {stop_after}"
        if done:
            break
    assert ended > 8


def test_what_a_killed_step_left_half_written_is_not_taken(tmp_path: Path):
    """A writer that was killed before its marker leaves arrays of rows that others have read since, cut otherwise."""
    texts = ["red apple", "green tree", "red tree", "pear", "apple pear red"]
    source, draft = written(tmp_path / "corpus", texts), tmp_path / "draft"
    builder.read_rows(NODE, source, draft, 2, 5)
    for name in ("lengths", "row_pairs"):
        blocks_of(draft / "shards", name)[2].unlink()
    assert builder.missing_rows(draft, 5, 3) == [(0, 3), (3, 5)]
    assert sharded(source, draft, 3, 4, stop_after=7) is False
    assert len(blocks_of(draft / "shards", "posting_weights")) == 1, "the postings of the last terms, without those before"
    assert sharded(source, draft, 3, 4)
    assert files(draft) == whole(tmp_path / "whole", texts)


def test_a_corpus_without_a_term_is_refused(tmp_path: Path):
    source = written(tmp_path / "corpus", ["--", "", "?"])
    with pytest.raises(ValueError, match="none of its 3 documents holds a term"):
        sharded(source, tmp_path / "draft", 2, 10)
