"""Queries and qrels come back as they were written."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings, strategies as st

from actors.artifacts.queries import Query, open_qrels, open_queries, write

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
queries = st.lists(
    st.builds(
        Query,
        ids,
        st.text(st.characters(exclude_categories=["Cs"])),
        st.lists(st.integers(0, 9), max_size=3).map(tuple),
    ),
    unique_by=lambda q: q.query_id,
    max_size=5,
)


def test_by_hand(tmp_path: Path) -> None:
    asked = [Query("b 1", "why\nso?", (4, 9)), Query("a", "", ())]
    write(tmp_path, asked, [("a", "d 2", 1), ("b 1", "d 1", 0), ("a", "d 1", 2)])
    assert open_queries(tmp_path) == asked
    assert open_qrels(tmp_path) == {"a": {"d 2": 1, "d 1": 2}, "b 1": {"d 1": 0}}


def test_none_of_either(tmp_path: Path) -> None:
    write(tmp_path, [], [])
    assert open_queries(tmp_path) == [] and open_qrels(tmp_path) == {}


@settings(max_examples=25)
@given(queries, st.dictionaries(st.tuples(ids, ids), st.integers(-2, 4), max_size=5))
def test_any(tmp_path_factory, asked: list[Query], judged: dict[tuple[str, str], int]) -> None:
    folder = tmp_path_factory.mktemp("queries")
    write(folder, asked, [(*pair, relevance) for pair, relevance in judged.items()])
    assert open_queries(folder) == asked
    assert {(q, d): r for q, docs in open_qrels(folder).items() for d, r in docs.items()} == judged
