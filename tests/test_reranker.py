"""The shells around judges: an order from scores, and which judge a configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.index import Index
from actors.judges.build import build_judge
from actors.judges.judge import Ask, Scores
from actors.judges.table import TableJudge
from actors.navigator import Navigator
from actors.reranker import Reranker
from conf import schema
from tests import toy

NAN = float("nan")


class Fixed:
    """A judge that answers what it was given."""

    def __init__(self, *answers: Scores) -> None:
        self._answers = answers

    def scores(self, asks: list[Ask]) -> list[Scores]:
        return list(self._answers)


def reranker(*answers: Scores) -> Reranker:
    shell = Reranker.__new__(Reranker)
    shell._judge = Fixed(*answers)
    return shell


def ask(*rows: int) -> Ask:
    return Ask("/index", "q", "text", list(rows))


def test_best_first_and_the_window_s_order_in_ties() -> None:
    (ranking,) = reranker(Scores([0.5, 0.9, 0.5, 0.9], "ok", {"tokens": 3})).rank([ask(7, 3, 1, 9)])
    assert ranking == ([3, 9, 7, 1], "ok", {"tokens": 3})


def test_each_request_by_itself() -> None:
    answers = reranker(Scores([0, 1], "ok", {}), Scores([NAN, 1], "failed: X", {}), Scores([1, 0], "ok", {}))
    assert [r.docs for r in answers.rank([ask(1, 2), ask(3, 4), ask(5, 6)])] == [[2, 1], None, [5, 6]]


@pytest.mark.parametrize(("outcome", "told"), [("failed: Timeout", "failed: Timeout"), ("ok", "failed: no score")])
def test_no_order_without_all_scores_and_the_ledger_says_so(outcome: str, told: str) -> None:
    assert reranker(Scores([0.5, NAN], outcome, {})).rank([ask(1, 2)]) == [(None, told, {})]


def test_a_judge_that_answers_for_other_rows_is_not_believed() -> None:
    with pytest.raises(ValueError):
        reranker(Scores([0.5], "ok", {})).rank([ask(1, 2)])
    with pytest.raises(ValueError):
        reranker(Scores([0.5], "ok", {})).rank([ask(1), ask(2)])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_an_order_is_the_rows_again(scores: list[int]) -> None:
    rows = list(range(len(scores)))[::-1]
    (ranking,) = reranker(Scores([float(s) for s in scores], "ok", {})).rank([ask(*rows)])
    assert ranking.docs is not None and sorted(ranking.docs) == sorted(rows)
    by_row = dict(zip(rows, scores, strict=True))
    assert [by_row[r] for r in ranking.docs] == sorted(scores, reverse=True)


def test_the_toy_s_tables(toy_index: Index) -> None:
    answering = toy_index.answering
    folder = str(toy_index.folder)
    (ranking,) = Reranker(answering.reranker, toy_index.embeddings, "").rank([Ask(folder, "q1", "copper", [0, 3, 1, 6])])
    assert ranking == ([0, 6, 3, 1], "ok", {})
    (scores,) = Navigator(answering.navigator, toy_index.embeddings, "").score([Ask(folder, "q1", "copper", [2, 0])])
    assert scores == ([0.6, 0.2], "ok", {})


def test_a_configuration_names_its_judge(toy_index: Index, tmp_path: Path) -> None:
    judge = build_judge(toy_index.answering.reranker, "documents", toy_index.embeddings, str(tmp_path))
    assert isinstance(judge, TableJudge)
    unknown: Any = schema.Metrics(["map"])
    with pytest.raises(TypeError, match="no judge for Metrics"):
        build_judge(unknown, "documents", toy_index.embeddings, str(tmp_path))


def test_the_toy_s_tables_hold_what_the_toy_says(tmp_path: Path) -> None:
    folder = toy.write_tables(tmp_path)
    assert len((folder / "documents.tsv").read_text().splitlines()) == 1 + 2 * len(toy.IDS)
