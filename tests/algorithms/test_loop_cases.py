"""The loops' answers on small corpora with known answers (tests/cases/loop)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.algorithms.loops.dialogue import Loop, Navigate, Outcome, Pool, Rerank
from actors.algorithms.loops.garen import garen
from actors.algorithms.loops.retrieve_and_rerank import retrieve_and_rerank
from actors.algorithms.loops.slidegar import slidegar

CASES = sorted((Path(__file__).parent.parent / "cases" / "loop").glob("case-*.json"))


class Case:
    """One case: a corpus graph with its groups, a pool, and tables that answer the loop."""

    def __init__(self, path: Path) -> None:
        self.case: dict[str, Any] = json.loads(path.read_text())
        self.ids: list[str] = self.case["documents"]
        row = {doc_id: i for i, doc_id in enumerate(self.ids)}
        near = [[row[n] for n in self.case["neighbours"].get(doc_id, [])] for doc_id in self.ids]
        k = max(map(len, near))
        self.neighbours = np.array([line + [-1] * (k - len(line)) for line in near], dtype=np.int32)
        self.group_of = np.array([self.case["group_of"][d] for d in self.ids], dtype=np.int32)
        self.pool = Pool([row[d] for d in self.case["pool"]])
        self.excluded = [row[d] for d in self.case["excluded"]]
        self.document_score = [self.case["document_score"][d] for d in self.ids]
        self.group_score = {int(g): s for g, s in self.case["group_score"].items()}

    def members(self, group: int) -> np.ndarray:
        return np.flatnonzero(self.group_of == group).astype(np.int32)

    def answer(self, loop: Loop) -> Outcome:
        """Drive a loop: the reranker sorts by document score and keeps the window's order in ties, the navigator
        reads its table.
        """
        try:
            requests = next(loop)
            while True:
                requests = loop.send(tuple(self.one(request) for request in requests))
        except StopIteration as end:
            return end.value

    def one(self, request: Rerank | Navigate) -> list:
        assert request[0], "no request is yielded for an empty set"
        if isinstance(request, Rerank):
            return sorted(request.docs, key=lambda d: -self.document_score[d])
        return [self.group_score[g] for g in request.groups]

    def names(self, docs: list[int]) -> list[str]:
        return [self.ids[d] for d in docs]


def parameters(case: Case) -> dict[str, Any]:
    given = case.case["parameters"]
    return {
        "w": given["w"],
        "h": given["h"],
        "budget": given["budget"],
        "K_g": given["k_g"],
        "tau_switch": given["tau"],
        "eligible": given["eligible_scope"],
        "group_score": "navigator",
        "sources": {"groups": given["w"] - given["h"], "neighbours": 0, "pool": 0},
        "p": given["p"],
        "alpha": given["alpha"],
    }


def test_there_are_cases() -> None:
    assert len(CASES) == 32


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_garen(path: Path) -> None:
    case = Case(path)
    expected = case.case["expected"]["garen"]
    outcome = case.answer(garen(case.pool, case, case.excluded, **parameters(case)))
    turns = outcome.iterations
    observed = (turns[0].window if turns else []) + [doc for turn in turns for doc in turn.added]
    spent = len(observed) >= case.case["parameters"]["budget"]
    expanding = turns[:-1] if spent else turns  # after the last rerank nothing is navigated and nothing added
    assert case.names(outcome.ranking) == expected["final"]
    assert [turn.navigated for turn in expanding] == expected["navigated"]
    assert [case.names(turn.added) for turn in expanding] == expected["added"]
    assert case.names(observed) == expected["observed"]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
@pytest.mark.parametrize("method", [retrieve_and_rerank, slidegar], ids=lambda m: m.__name__)
def test_sliding_methods(path: Path, method: Callable[..., Loop]) -> None:
    case = Case(path)
    given = case.case["parameters"]
    loop = method(case.pool, case, case.excluded, w=given["w"], h=given["h"], budget=given["budget"])
    assert case.names(case.answer(loop).ranking) == case.case["expected"][method.__name__]["final"]
