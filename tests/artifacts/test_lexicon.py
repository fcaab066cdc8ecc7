from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from actors.algorithms import bm25, bm25_building
from actors.algorithms.terms import Analyzer
from actors.artifacts import lexicon as artifact


def built() -> artifact.Lexicon:
    texts = ["red apple", "red pear trees", "", "青い tree"]
    weights = bm25_building.build(texts, Analyzer("english", "none"), 0.9, 0.4)
    return artifact.Lexicon(**vars(weights), stemmer="english", stop_words="none")


def test_what_is_opened_is_what_was_written(tmp_path: Path):
    lexicon = built()
    artifact.write(tmp_path / "new" / "folder", lexicon)
    again = artifact.open_lexicon(tmp_path / "new" / "folder")
    for field in fields(lexicon):
        before, after = getattr(lexicon, field.name), getattr(again, field.name)
        np.testing.assert_array_equal(after, before)
        assert np.asarray(after).dtype == np.asarray(before).dtype
    assert again.documents == 4


def test_arrays_are_mapped_and_read_only(tmp_path: Path):
    artifact.write(tmp_path, built())
    lexicon = artifact.open_lexicon(tmp_path)
    for name in artifact.FILES:
        values = getattr(lexicon, name)
        assert isinstance(values.base, np.memmap)
        assert not values.flags.writeable


def test_an_opened_lexicon_searches_like_the_one_in_memory(tmp_path: Path):
    artifact.write(tmp_path, built())
    lexicon, terms = artifact.open_lexicon(tmp_path), ["red", "tree", "青い", "kiwi"]
    for weighting in bm25.WEIGHTINGS:
        rows, scores = bm25.retrieve(lexicon, terms, 10, weighting=weighting)
        assert rows.tolist() == [3, 1, 0]
        in_memory = bm25.retrieve(built(), terms, 10, weighting=weighting)
        assert (rows.tobytes(), scores.tobytes()) == (in_memory[0].tobytes(), in_memory[1].tobytes())
        assert bm25.score(lexicon, terms, rows, weighting=weighting).tobytes() == scores.tobytes()


def test_two_builds_give_the_same_files(tmp_path: Path):
    artifact.write(tmp_path / "one", built())
    artifact.write(tmp_path / "two", built())
    one = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert one == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    assert set(one) == {*artifact.FILES.values(), "lexicon.json"}


def test_a_wrong_dtype_is_refused_before_it_is_written(tmp_path: Path):
    lexicon = built()
    wrong = replace(lexicon, posting_rows=lexicon.posting_rows.astype(np.int64))
    with pytest.raises(ValueError, match=r"posting_rows\.i32\.npy: holds int64; expected int32"):
        artifact.write(tmp_path, wrong)


@pytest.mark.parametrize("file", ["posting_rows.i32.npy", "forward_weights.f32.npy", "term_bytes.u8.npy"])
def test_a_short_array_is_refused_on_opening(tmp_path: Path, file: str):
    artifact.write(tmp_path, built())
    np.save(tmp_path / file, np.load(tmp_path / file)[:-1])
    with pytest.raises(ValueError, match=rf"{file}: \d+ values; expected \d+\. delete the folder"):
        artifact.open_lexicon(tmp_path)


@pytest.mark.parametrize("file", ["forward_offsets.i64.npy", "term_offsets.i64.npy"])
def test_offsets_of_another_size_are_refused_on_opening(tmp_path: Path, file: str):
    artifact.write(tmp_path, built())
    np.save(tmp_path / file, np.load(tmp_path / file)[1:])
    with pytest.raises(ValueError, match=rf"{file}: \d+ values"):
        artifact.open_lexicon(tmp_path)


@pytest.mark.parametrize("file", ["lexicon.json", "term_bytes.u8.npy"])
def test_a_missing_file_is_named(tmp_path: Path, file: str):
    artifact.write(tmp_path, built())
    (tmp_path / file).unlink()
    with pytest.raises(FileNotFoundError, match=file):
        artifact.open_lexicon(tmp_path)
