"""Runs of every first stage as jobs make them: what enters their identity, what they read, what they say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from actors.artifacts.run import open_ledger
from actors.artifacts.store import open_manifest
from conf import schema
from conf.load import BadConfig, compose
from jobs import online, run_queries
from jobs.session import on_this_machine
from jobs.stages import STAGES, Addresses, lists_of
from tests.jobs.conftest import StartJob, artifact, payload, take, write_collection
from tests.jobs.test_flow import heard
from tests.jobs.test_resume import start_here

NODES = ("dense", "dense lists", "hybrid", "hybrid lists", "run")
OFFLINE = "corpus embeddings lists graph groups lexicon summaries index queries"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> schema.Settings:
    """Everything built in one process, with a model that costs nothing; the run is BM25's own."""
    folder = tmp_path_factory.mktemp("built")
    corpus = f"corpus.path={write_collection(folder / 'c', 36, 4)}"
    given = (f"artifacts.root={folder / 'root'}", "corpus=beir", corpus, "loop=bm25", "loop.budget=10", "first_stage.depth=15")
    settings = compose(given)
    assert start_here(settings, list(STAGES))
    return settings


@pytest.fixture(autouse=True)
def of_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.stages.model_digest", lambda node: "of no model")


def settings_of(built: schema.Settings, node: str, root: Path | None = None) -> schema.Settings:
    """The same with another first stage; the run that is brought in is BM25's."""
    method, *lists = node.split()
    brought = artifact(Path(built.artifacts.root), "run") / "run.tsv"
    own = [f"first_stage.path={brought}"] if method == "run" else [f"first_stage.search={(lists or ['exact'])[0]}"]
    first_stage = compose((f"first_stage={method}", *own)).first_stage
    return replace(built, first_stage=first_stage, artifacts=replace(built.artifacts, root=str(root or built.artifacts.root)))


def made(built: schema.Settings, node: str, root: Path) -> Path:
    take(root, Path(built.artifacts.root), OFFLINE, root.parent)
    assert start_here(settings_of(built, node, root), ["run"])
    return artifact(root, "run")


def lines(run: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (run / "run.tsv").read_text().splitlines():
        query_id, _, doc_id, *_ = line.split("\t")
        found.setdefault(query_id, []).append(doc_id)
    return found


# --- identity ---------------------------------------------------------------------------------------------------------


def test_a_first_stage_is_part_of_its_run_alone(built: schema.Settings) -> None:
    names = {}
    for node in (*NODES, "bm25"):
        settings = built if node == "bm25" else settings_of(built, node)
        addresses = Addresses(settings)
        names[node] = addresses["run"].name
        assert addresses["index"].name == Addresses(built)["index"].name
        assert ("lists" in addresses["run"].recipe.inputs) == node.endswith("lists")
        assert lists_of(settings) == (str(addresses["lists"].folder) if node.endswith("lists") else "")
    assert len(set(names.values())) == len(names)


def test_other_lists_make_another_run_where_they_are_searched(built: schema.Settings) -> None:
    for node, same in (("dense lists", False), ("hybrid lists", False), ("dense", True), ("run", True)):
        settings = settings_of(built, node)
        other = replace(settings, lists=replace(settings.lists, seed=settings.lists.seed + 1))
        assert (Addresses(settings)["run"].name == Addresses(other)["run"].name) == same, node


def test_the_content_of_a_run_counts_and_its_place_does_not(built: schema.Settings, tmp_path: Path) -> None:
    settings = settings_of(built, "run")
    moved = tmp_path / "elsewhere.run"
    moved.write_bytes(Path(settings.first_stage.path).read_bytes())  # type: ignore[union-attr]
    there = replace(settings, first_stage=replace(settings.first_stage, path=str(moved)))
    assert Addresses(there)["run"].name == Addresses(settings)["run"].name
    moved.write_bytes(moved.read_bytes() + b"q9 Q0 x 1 1 x\n")
    assert Addresses(there)["run"].name != Addresses(settings)["run"].name


def test_an_index_names_the_lists_it_was_meant_to_be_searched_with(built: schema.Settings) -> None:
    aside = Addresses(settings_of(built, "hybrid lists"))["index"].recipe.aside
    assert aside["lists"] == Addresses(built)["lists"].name and aside["answering"]["first_stage"]["method"] == "hybrid"
    assert "lists" not in Addresses(built)["index"].recipe.aside


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", NODES)
def test_a_run_of_every_first_stage(built: schema.Settings, node: str, tmp_path: Path) -> None:
    run = made(built, node, tmp_path / "root")
    found, bm25 = lines(run), lines(artifact(Path(built.artifacts.root), "run"))
    assert set(found) == set(bm25) == {f"q{n}" for n in range(4)}
    usage = open_manifest(run, "run")["counts"]["usage"]
    if node == "run":
        assert found == bm25 and "encoder" not in usage
    else:
        assert found != bm25 and all(len(docs) == 10 for docs in found.values())
        assert usage["encoder"] == {"calls": 4, "judged": 0, "outcome ok": 4, "texts": 4}
    assert ("lists" in open_manifest(run, "run")["inputs"]) == node.endswith("lists")


def test_what_a_run_that_was_brought_lacks_is_told(built: schema.Settings, tmp_path: Path) -> None:
    own = lines(artifact(Path(built.artifacts.root), "run"))
    brought = tmp_path / "brought.tsv"
    kept = [f"q0\tQ0\t{own['q0'][0]}\t1\t2.0\tx", "q0\tQ0\tno such\t2\t1.0\tx", "q1\tQ0\tnor this\t1\t1.0\tx"]
    brought.write_text("\n".join(kept) + "\n")
    root = tmp_path / "root"
    take(root, Path(built.artifacts.root), OFFLINE, root.parent)
    settings = settings_of(built, "run", root)
    settings = replace(settings, first_stage=replace(settings.first_stage, path=str(brought)))
    assert start_here(settings, ["run"])
    said, address = heard(run_queries.run, settings)
    assert lines(address.folder) == {"q0": own["q0"][:1]}
    assert "  first stage: 2 ids that the corpus does not have\n" in said
    assert "  first stage: 2 queries without a line in the run\n" in said
    assert "  3 queries have an empty pool and an empty answer: the run has no document of the corpus for it\n" in said
    counted = {(line["query_id"], line["counter"]) for line in open_ledger(address.folder) if line["role"] == "first_stage"}
    assert {query_id for query_id, _ in counted} == {"q0", "q1", "q2", "q3"}


# --- deployments and settings -----------------------------------------------------------------------------------------


def test_the_encoder_is_deployed_where_a_first_stage_asks_it(built: schema.Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(online, "start_ray", lambda cluster: None)
    monkeypatch.setattr(online, "check_cpus", lambda cluster, needs: None)
    monkeypatch.setattr(online, "_deploy", lambda cluster, role, app, node: told.append(role))
    monkeypatch.setattr(online, "_remove", lambda app: None)
    monkeypatch.setattr("ray.get_runtime_context", lambda: SimpleNamespace(get_job_id=lambda: "7"))
    with online.service(built.cluster) as service:
        for node, apps in (("dense lists", {"encoder"}), ("hybrid", {"encoder"}), ("run", set())):
            settings = settings_of(built, node)
            work = service._work(settings, Path("/index"), "", 1)
            assert set(work.apps) == apps and work.lists == lists_of(settings)
    assert told == ["encoder"], "one for all of them"


def test_a_run_s_path_is_made_absolute(built: schema.Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    relative = compose(("first_stage=run", "first_stage.path=their.run"))
    assert on_this_machine(relative, in_copy=False).first_stage.path == str(tmp_path / "their.run")  # type: ignore[union-attr]
    relative = compose(("first_stage=run", "first_stage.path=their.run", f"artifacts.root={tmp_path.parent}"))
    with pytest.raises(BadConfig, match=r"first_stage\.path='their.run': expected an absolute path in a submitted job"):
        on_this_machine(relative, in_copy=True)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("first_stage=run",), r"first_stage\.path='\?\?\?'"),
        (("first_stage=dense", "first_stage.search=ivf"), r"first_stage\.search='ivf': expected one of 'exact', 'lists'"),
        (("first_stage=dense", "first_stage.probes=0"), r"first_stage\.probes=0: expected a value from 1"),
        (("first_stage=hybrid", "first_stage.lexical_weight=1.5"), r"first_stage\.lexical_weight=1.5: expected a value from 0.0"),
        (("first_stage.method=splade",), r"first_stage\.method='splade': expected one of bm25, dense, hybrid, run"),
    ],
)
def test_settings_that_cannot_be(overrides: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        compose(overrides)


# --- with models, behind Serve ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_encoder_behind_serve_finds_what_one_in_the_searcher_finds(job: StartJob, models: Path, tmp_path: Path) -> None:
    corpus = ("corpus=beir", f"corpus.path={write_collection(tmp_path / 'c', 60, 5)}", "cluster.num_cpus=4", "loop.budget=30")
    given = (*corpus, "first_stage=hybrid", "first_stage.search=lists", "first_stage.probes=3")
    root = take(tmp_path / "root", Path(), "", models)
    assert "lists: done" in job("build_index", root, *given, "cluster.in_process=true").end()
    said = job("run_queries", root, *given, "cluster.in_process=true").end()
    assert "deploying" not in said
    inside = payload(artifact(root, "run"))
    other = take(tmp_path / "other", root, OFFLINE, models)
    said = job("run_queries", other, *given).end()
    assert re.search(r"^deploying encoder as garen-\w+-encoder-\d$", said, re.MULTILINE)
    assert payload(artifact(other, "run")) == inside
    (tmp_path / "question").write_text("what is said about honey, a queen and her hive?")
    said = job("search", other, *given, f"ask={tmp_path / 'question'}").end()
    assert re.search(r"encoder 1 calls", said) and said.count("bees") >= 5
