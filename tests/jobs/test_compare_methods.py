"""A comparison makes each run once and says of simulated judges what they are; its analysis leaves tables and figures."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from actors.artifacts import comparison as comparison_files
from actors.artifacts.run import open_ledger
from actors.artifacts.store import BadArtifact, open_manifest
from conf import schema
from conf.load import BadConfig, compose
from jobs import analyse_runs, compare_methods, session
from jobs.comparing import variants
from tests.jobs.conftest import take, write_collection
from tests.jobs.test_flow import heard, no_ray, of_no_model, on_disk, own_ray

__all__ = ["no_ray", "of_no_model"]  # fixtures

DOCUMENTS, QUERIES, BUDGET = 60, 6, 40
METHODS = ["bm25", "retrieve_and_rerank", "garen"]
MEASURES = ["ndcg_cut_10", "recall_100"]
SEEDS = [0, 1]


def write_corpus(folder: Path) -> Path:
    """The made-up collection, with queries that share a word with every document: a pool is never the end of a method."""
    write_collection(folder, DOCUMENTS, QUERIES)
    asked = folder / "queries.jsonl"
    asked.write_text(asked.read_text().replace("?", ", and what old account does nobody make better?"))
    return folder


def settings_of(root: Path, corpus: Path, methods: list[str], *more: str) -> schema.Settings:
    return compose((
        f"artifacts.root={root}", "corpus=beir", f"corpus.path={corpus}", f"loop.budget={BUDGET}", "loop=bm25",
        "reranker=simulated", "navigator=simulated", f"metrics.measures=[{','.join(MEASURES)}]", "compare.name=tiny",
        f"compare.methods=[{','.join(methods)}]", f"compare.seeds=[{','.join(map(str, SEEDS))}]", "cluster.num_cpus=4",
        "cluster.in_process=true", "cluster.embedder.actors=1", "cluster.summarizer.actors=1", "cluster.searchers.actors=1", *more,
    ))  # fmt: skip


# --- which runs there are; without Ray --------------------------------------------------------------------------------


def test_a_later_override_of_the_same_key_wins(tmp_path: Path) -> None:
    given = compose((f"artifacts.root={tmp_path}", "loop=slidegar", "loop.budget=50", "run_seed=4", "reranker=simulated"))
    made = session.variant(given, ["loop=garen", "run_seed=7"])
    assert (made.loop.method, made.loop.budget, made.run_seed) == ("garen", 50, 7)
    assert (made.reranker.seed, made.artifacts.root) == (7, str(tmp_path)), "what else was given stays, and follows"
    assert made.overrides.count("run_seed=7") == 1 and "run_seed=4" not in made.overrides


def test_there_is_a_run_for_every_collection_method_and_seed(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, tmp_path, ["votes"])
    (tmp_path / "other").mkdir()
    settings.compare.collections = {"here": [], "there": [f"corpus.path={tmp_path}/other", "corpus.name=there"]}
    found = variants(settings)
    assert list(found) == [(where, "votes", seed) for where in ("here", "there") for seed in SEEDS]
    assert [one.run_seed for one in found.values()] == SEEDS * 2
    assert [Path(one.corpus.path).name for one in found.values()] == [tmp_path.name] * 2 + ["other"] * 2
    assert {(one.loop.method, one.loop.group_score, one.loop.budget) for one in found.values()} == {("garen", "votes", BUDGET)}


def test_without_names_all_methods_and_the_corpus_at_hand_are_compared(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, tmp_path, [])
    settings.compare.seeds = [3]
    settings.compare.variants = {name: settings.compare.variants[name] for name in ("gar", "kmeans")}
    found = variants(settings)
    assert list(found) == [(tmp_path.name, "gar", 3), (tmp_path.name, "kmeans", 3)]
    assert [(one.loop.method, one.groups.method) for one in found.values()] == [("gar", "leiden"), ("garen", "kmeans")]


def test_a_method_that_is_not_known_is_named_before_anything_is_made(tmp_path: Path, no_ray: None) -> None:
    settings = settings_of(tmp_path / "root", tmp_path, ["garen", "garden"])
    for job in (compare_methods, analyse_runs):
        with pytest.raises(BadConfig, match=r"^compare\.methods=\['garden'\]: expected some of bm25, retrieve_and_rerank, gar"):
            heard(job.run, settings)
    assert not (tmp_path / "root").exists()


def test_a_plan_says_which_runs_are_missing_and_makes_nothing(tmp_path: Path, no_ray: None, of_no_model: None) -> None:
    corpus = write_collection(tmp_path / "c", 12, 2)
    settings = settings_of(tmp_path / "root", corpus, ["garen"], "plan=true")
    said, address = heard(compare_methods.run, settings)
    assert address is None
    assert said == "compare: tiny, 2 runs\n  c, garen, seed 0: to be made\n  c, garen, seed 1: to be made\n"
    settings.compare.seeds = [5]
    assert heard(analyse_runs.run, settings) == ("analysis: would read 1 runs\n", None)
    assert on_disk(tmp_path / "root") == {}


def test_runs_that_are_not_there_are_named_with_their_job(tmp_path: Path, no_ray: None, of_no_model: None) -> None:
    settings = settings_of(tmp_path / "root", write_collection(tmp_path / "c", 12, 2), ["bm25"])
    settings.compare.seeds = [0]
    with pytest.raises(BadArtifact, match=r"does not exist.*python -m jobs\.\w+"):
        heard(analyse_runs.run, settings)


# --- a comparison that was made ---------------------------------------------------------------------------------------


@dataclass
class Compared:
    """A comparison, the same with one method more, and its analysis; what each said, and the files between them."""

    root: Path
    settings: schema.Settings
    first: Path
    wider: Path
    analysis: Path
    said: dict[str, str]
    before: dict[str, int]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, models: Path) -> Iterator[Compared]:
    folder = tmp_path_factory.mktemp("compared")
    root = take(folder / "root", Path(), "", models)
    corpus = write_corpus(folder / "c")
    narrow, wide = settings_of(root, corpus, METHODS), settings_of(root, corpus, [*METHODS, "rgs"])
    said = {}
    with own_ray():
        said["first"], first = heard(compare_methods.run, narrow)
        before = on_disk(root)
        said["wider"], wider = heard(compare_methods.run, wide)
        said["analysis"], analysis = heard(analyse_runs.run, wide)
    assert first and wider and analysis
    yield Compared(root, narrow, first.folder, wider.folder, analysis.folder, said, before)


def runs_below(root: Path) -> set[str]:
    return {str(folder.relative_to(root)) for folder in root.glob("c/run-*")}


def rows_of(table: str) -> dict[str, list[str]]:
    """Method -> its cells, of a Markdown table."""
    lines = [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in table.splitlines() if line.startswith("| ")]
    return {name: cells for name, *cells in lines[2:]}


def tables_of(folder: Path) -> dict[str, str]:
    """Title -> table."""
    _, *parts = (folder / "table.md").read_text().split("### ")
    return {part.splitlines()[0]: part for part in parts}


@pytest.mark.slow
def test_every_run_is_made_once(compared: Compared) -> None:
    runs = comparison_files.open_runs(compared.first)
    assert [(r["method"], r["seed"]) for r in runs] == [(method, seed) for method in METHODS for seed in SEEDS]
    assert {r["run"] for r in runs} == runs_below_before(compared)
    assert len({r["run"] for r in runs}) == 5, "bm25 is the same with any seed; the others' judges err by theirs"
    assert len({r["index"] for r in runs}) == len({r["queries"] for r in runs}) == 1
    assert all((compared.root / r[kind]).is_dir() for r in runs for kind in ("run", "metrics", "index", "queries"))
    assert compared.said["first"].count("index: done") == 1


def runs_below_before(compared: Compared) -> set[str]:
    return {name for name in runs_below(compared.root) if str(compared.root / name) in compared.before}


@pytest.mark.slow
def test_a_second_call_makes_nothing_new(compared: Compared, no_ray: None) -> None:
    before = on_disk(compared.root)
    said, address = heard(compare_methods.run, compared.settings)
    assert address and address.folder == compared.first and on_disk(compared.root) == before
    tables = compared.said["first"].partition("\nndcg_cut_10 ")[2]
    assert tables and tables in said, "the tables are shown again"


@pytest.mark.slow
def test_a_method_that_is_added_makes_only_its_own_runs(compared: Compared) -> None:
    after = on_disk(compared.root)
    assert {path: after.get(path) for path in compared.before if not Path(path).is_dir()} == {
        path: time for path, time in compared.before.items() if not Path(path).is_dir()
    }
    new = runs_below(compared.root) - runs_below_before(compared)
    assert len(new) == len(SEEDS)
    for name in new:
        tags = {line.split("\t")[-1] for line in (compared.root / name / "run.tsv").read_text().splitlines()}
        assert tags == {"garen-rgs-simulated"}


@pytest.mark.slow
def test_simulated_stands_wherever_figures_of_simulated_judges_do(compared: Compared) -> None:
    for folder in (compared.first, compared.wider):
        assert open_manifest(folder, "comparison")["counts"]["judges"] == "simulated"
        assert set(tables_of(folder)) == {f"{title} (simulated judges)" for title in (*MEASURES, "calls and tokens a query")}
        assert (folder / "table.tex").read_text().count("(simulated judges)}\n") == len(MEASURES) + 1
    for run in comparison_files.open_runs(compared.wider):
        asked = run["method"] != "bm25"
        for kind in ("run", "metrics"):
            judges = open_manifest(compared.root / run[kind], kind)["counts"].get("judges")
            assert judges == ("simulated" if asked else None)
        tags = {line.split("\t")[-1] for line in (compared.root / run["run"] / "run.tsv").read_text().splitlines()}
        assert tags == {f"garen-{run['method']}" + ("-simulated" if asked else "")}
    assert open_manifest(compared.analysis, "analysis")["counts"]["judges"] == "simulated"
    assert re.search(r"^c distance of gold \(simulated judges\)$", compared.said["analysis"], re.MULTILINE)


@pytest.mark.slow
def test_tables_have_a_row_for_each_method_with_the_means_of_its_queries(compared: Compared) -> None:
    tables, values = tables_of(compared.wider), comparison_files.open_per_query(compared.wider)
    lines = list(csv.DictReader((compared.wider / "table.csv").open()))
    assert len(lines) == len(MEASURES) * (len(METHODS) + 1) and {line["seeds"] for line in lines} == {"2"}
    for measure in MEASURES:
        rows = rows_of(tables[f"{measure} (simulated judges)"])
        assert list(rows) == [*METHODS, "rgs"]
        for method, (shown, mean) in rows.items():
            own = [v["value"] for v in values if (v["method"], v["measure"]) == (method, measure)]
            (line,) = (x for x in lines if (x["method"], x["measure"]) == (method, measure))
            assert len(own) == QUERIES * len(SEEDS)
            assert float(line["mean"]) == pytest.approx(sum(own) / len(own))
            assert mean == f"{sum(own) / len(own):.3f}" and shown.startswith(mean)
            assert ("±" in shown) == (float(line["std"]) > 0) and shown.endswith("*") == (line["significant"] == "True")


@pytest.mark.slow
def test_the_ledger_tells_what_a_query_cost(compared: Compared) -> None:
    table = tables_of(compared.wider)["calls and tokens a query (simulated judges)"]
    head = [cell.strip() for cell in table.splitlines()[2].strip("| ").split(" | ")][1:]
    cost = {method: dict(zip(head, map(float, cells), strict=True)) for method, cells in rows_of(table).items()}
    assert list(cost) == [*METHODS, "rgs"]
    windows = 1 + (BUDGET - 20) / 10
    assert {m: cost[m]["reranker calls"] for m in METHODS} == {"bm25": 0, "retrieve_and_rerank": windows, "garen": windows}
    assert cost["rgs"]["reranker calls"] > windows, "it reranks what it has read already"
    assert {method: cost[method]["navigator calls"] > 0 for method in cost} == {m: m == "garen" for m in cost}
    assert all(cost[m]["documents"] == BUDGET for m in ("retrieve_and_rerank", "garen", "rgs"))
    runs = [r for r in comparison_files.open_runs(compared.wider) if r["method"] == "garen"]
    ledger = [line for r in runs for line in open_ledger(compared.root / r["run"])]
    calls = sum(line["number"] for line in ledger if (line["role"], line["counter"]) == ("navigator", "calls"))
    assert cost["garen"]["navigator calls"] == pytest.approx(calls / QUERIES / len(SEEDS), abs=0.051)


@pytest.mark.slow
def test_an_analysis_leaves_tables_and_figures(compared: Compared) -> None:
    drawn = ["recall by iteration", "distance of gold", "hit by distance"]
    drawn += [f"{MEASURES[0]} against {cost} a query" for cost in ("seconds", "tokens")]
    assert {p.name for p in compared.analysis.glob("*.png")} == {f"c {name}.png" for name in drawn}
    assert all(p.read_bytes()[:4] == b"\x89PNG" for p in compared.analysis.glob("*.png"))
    tables = {p.stem.removeprefix("c "): list(csv.reader(p.open())) for p in compared.analysis.glob("*.csv")}
    assert set(tables) == {*drawn, "fate of the gold group"}
    assert [line[0] for line in tables["recall by iteration"][1:]] == ["retrieve_and_rerank", "garen", "rgs"]
    for _, *shares in tables["recall by iteration"][1:]:
        found = [float(share) for share in shares if share]
        assert found == sorted(found) and 0 < found[-1] <= 1
    assert {line[0] for line in tables["distance of gold"][1:]} <= {"documents", "groups"}
    assert {line[0] for line in tables["fate of the gold group"][1:]} == {"garen"}
    assert [line[0] for line in tables[drawn[-1]][1:]] == [*METHODS, "rgs"]
