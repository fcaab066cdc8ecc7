"""The shells around judges, and which judge a configuration names; how they are reached inside a process and behind Serve."""

from __future__ import annotations

import asyncio
import functools
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from actors import roles
from actors.index import Index
from actors.judges.build import build_judge
from actors.judges.embedding import EmbeddingJudge
from actors.judges.judge import GROUPS, Ask, Scores
from actors.judges.simulated import SimulatedJudge
from actors.judges.table import TableJudge
from actors.navigator import Navigator
from actors.reranker import Reranker
from actors.roles import SHELLS, in_process, served
from conf import schema
from conf.load import compose
from tests import toy


async def started(shell: Any, ask: Ask) -> list[Scores]:
    await shell.start()
    answers: list[Scores] = await shell.answer([ask])
    return answers


def test_the_toy_s_tables(toy_index: Index) -> None:
    answering = toy_index.answering
    ask = Ask(str(toy_index.folder), "q1", "copper", [0, 3, 1, 6])
    assert asyncio.run(started(Reranker(answering.reranker, None), ask)) == [Scores([0.5, 0.3, 0.1, 0.4], "ok", {})]
    groups = ask._replace(rows=[2, 0], of=GROUPS)
    assert asyncio.run(started(Navigator(answering.navigator, None), groups)) == [Scores([0.6, 0.2], "ok", {})]


@pytest.mark.parametrize("shell", SHELLS.values())
def test_a_shell_gives_what_its_judge_says(shell: Any) -> None:
    class Echo:
        async def scores(self, asks: list[Ask]) -> list[Scores]:
            return [Scores([float(row) for row in ask.rows], "ok", {}) for ask in asks]

    made = shell.__new__(shell)
    made._judge = Echo()
    asks = [Ask("/index", "q", "text", rows) for rows in ([1, 2], [3])]
    assert [scores.values for scores in asyncio.run(made.answer(asks))] == [[1.0, 2.0], [3.0]]


def test_a_configuration_names_its_judge(toy_index: Index) -> None:
    judges = compose(("reranker.lexical_weight=0.5", "reranker.plan_steps=7"))
    assert isinstance(asyncio.run(build_judge(toy_index.answering.reranker, "reranker", None)), TableJudge)
    assert isinstance(asyncio.run(build_judge(judges.reranker, "reranker", None)), EmbeddingJudge)
    assert isinstance(asyncio.run(build_judge(judges.navigator, "navigator", None)), EmbeddingJudge)
    assert isinstance(asyncio.run(build_judge(compose(("reranker=simulated",)).reranker, "reranker", None)), SimulatedJudge)
    unknown: Any = schema.Metrics(["map"])
    with pytest.raises(TypeError, match="no judge for Metrics"):
        asyncio.run(build_judge(unknown, "reranker", None))


def test_simulated_judges_err_by_the_run_s_seed() -> None:
    settings = compose(("reranker=simulated", "navigator=simulated", "run_seed=7", "navigator.seed=8"))
    assert (settings.reranker.seed, settings.navigator.seed, settings.seed) == (7, 8, 0)  # type: ignore[union-attr]


def test_the_toy_s_tables_hold_what_the_toy_says(tmp_path: Path) -> None:
    folder = toy.write_tables(tmp_path)
    assert len((folder / "documents.tsv").read_text().splitlines()) == 1 + 2 * len(toy.IDS)


# --- how they are reached ---------------------------------------------------------------------------------------------


def test_inside_a_process_a_judge_is_loaded_when_it_is_first_asked_and_once(
    toy_index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    read = roles.Reranker

    def counted(node: schema.Reranker, place: Any) -> Reranker:
        loaded.append(node.judge)
        return read(node, place)

    monkeypatch.setattr(roles, "SHELLS", {**SHELLS, "reranker": counted})
    reached = in_process(toy_index.answering)
    assert set(reached) == {"reranker", "navigator", "encoder", roles.FINDER} and not loaded
    ask = Ask(str(toy_index.folder), "q1", "copper", [4, 8])
    assert [asyncio.run(_one(reached["reranker"](ask))) for _ in range(2)] == [Scores([0.95, 0.8], "ok", {})] * 2
    assert loaded == ["table"]


async def _one(answer: Any) -> Scores:
    return await answer


def test_behind_serve_each_role_has_the_handle_of_its_application(monkeypatch: pytest.MonkeyPatch) -> None:
    class Handle:
        def __init__(self, role: str, app: str) -> None:
            told = f"{role} of {app}"
            remotes = (functools.partial(self._tell, told + verb) for verb in ("", " finds"))
            self.answer, self.find = (SimpleNamespace(remote=remote) for remote in remotes)

        async def _tell(self, told: str, asks: list[Any]) -> list[Scores]:
            return [Scores([0.0], told, {}) for _ in asks]

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(serve=SimpleNamespace(get_deployment_handle=Handle)))
    reached = served({"reranker": "one", "encoder": "two"}, compose(()).cluster)
    told = {role: asyncio.run(_one(reached[role](Ask("/index", "q", "text", [1])))).outcome for role in reached}
    assert told == {"reranker": "reranker of one", "encoder": "encoder of two", roles.FINDER: "encoder of two finds"}
