"""From a collection to metrics and answers, as jobs are called: one Ray for all of them, and what they say on the way."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import pytrec_eval

from actors.algorithms import partition
from actors.artifacts.graph import open_graph
from actors.artifacts.groups import open_groups
from actors.artifacts.metrics import open_metrics
from actors.artifacts.queries import open_qrels
from actors.artifacts.run import open_answers, open_ledger
from actors.artifacts.store import BadArtifact, open_manifest
from actors.index import Hit
from actors.searcher import Work
from conf import schema
from conf.load import BadConfig, compose
from jobs import build_embeddings, build_index, online, ray_session, run_queries, score_run, search, show_trace
from jobs.stages import STAGES, Addresses
from tests.jobs.conftest import StartJob, a_scratch, artifact, payload, take, write_collection
from tests.jobs.test_resume import STAGE_JOBS, start_here

DOCUMENTS, QUERIES, BUDGET = 60, 5, 30
BUILT = [kind for kind in STAGES if kind != "lists"]  # a small corpus needs none
QUESTION = "what is said about honey, a queen and her hive?"


@dataclass
class Flow:
    """A root in which everything was built by jobs, and what each of them said."""

    settings: schema.Settings
    root: Path
    said: dict[str, str] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory, models: Path) -> Iterator[Flow]:
    folder = tmp_path_factory.mktemp("flow")
    root = take(folder / "root", Path(), "", models)
    (folder / "question").write_text(QUESTION)
    settings = compose((
        f"artifacts.root={root}", "corpus=beir", f"corpus.path={write_collection(folder / 'c', DOCUMENTS, QUERIES)}",
        f"loop.budget={BUDGET}", f"ask={folder / 'question'}", "query_id=q0", "cluster.num_cpus=4", "cluster.in_process=true",
        "cluster.embedder.actors=1", "cluster.summarizer.actors=1", "cluster.searchers.actors=1",
    ))  # fmt: skip
    flow = Flow(settings, root)
    with own_ray():
        for job in (build_index, run_queries, score_run, search, show_trace):
            flow.said[job.__name__], result = heard(job.run, settings)
            flow.hits = result if job is search else flow.hits
    yield flow


@contextlib.contextmanager
def own_ray() -> Iterator[None]:
    """A Ray that the jobs of this process start, and that is gone afterwards with everything that starting it changes here."""
    on_term = signal.getsignal(signal.SIGTERM)
    with a_scratch() as scratch, pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        for name, value in (("RAY_TMPDIR", str(scratch)), ("RAY_AUTH_TOKEN", "0" * 64), ("RAY_USAGE_STATS_ENABLED", "0")):
            patch.setenv(name, value)
        try:
            yield
        finally:
            ray_session.stop_ray()
            signal.signal(signal.SIGTERM, on_term)


def heard(run: Callable[[schema.Settings], Any], settings: schema.Settings) -> tuple[str, Any]:
    """What a job prints, and what it returns."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        result = run(settings)
    return out.getvalue(), result


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting Ray fails the test."""

    def refused(**options: Any) -> None:
        raise AssertionError("Ray was started")

    monkeypatch.setattr("ray.init", refused)


# --- what the jobs say and leave --------------------------------------------------------------------------------------


def test_every_stage_says_what_it_made(flow: Flow) -> None:
    for kind in set(BUILT) - {"run", "metrics"}:
        assert re.search(rf"^{kind}: done in \d+:\d\d  \w", flow.said["jobs.build_index"], re.MULTILINE), kind
    assert f"embeddings: {DOCUMENTS} of {DOCUMENTS} documents" in flow.said["jobs.build_index"]
    assert re.search(r"^ +groups +smallest +mean +largest", flow.said["jobs.build_index"], re.MULTILINE)
    assert re.search(r"^ +role +calls +judged +calls a query\n +reranker +\d", flow.said["jobs.run_queries"], re.MULTILINE)
    assert re.search(r"^ +method +ndcg_cut_10 .*\n +garen +\d\.\d{3}", flow.said["jobs.score_run"], re.MULTILINE)


def test_each_query_observes_its_budget(flow: Flow) -> None:
    lines = [line.split("\t") for line in (artifact(flow.root, "run") / "run.tsv").read_text().splitlines()]
    assert Counter(query_id for query_id, *_ in lines) == {f"q{n}": BUDGET for n in range(QUERIES)}
    assert len({(query_id, doc_id) for query_id, _, doc_id, *_ in lines}) == len(lines)


def test_the_run_and_another_scorer_give_the_metrics(flow: Flow) -> None:
    run: dict[str, dict[str, float]] = {}
    for line in (artifact(flow.root, "run") / "run.tsv").read_text().splitlines():
        query_id, _, doc_id, _, score, _ = line.split("\t")
        run.setdefault(query_id, {})[doc_id] = float(score)
    qrels = open_qrels(artifact(flow.root, "queries"))
    found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(run)
    mean = sum(measures["ndcg_cut_10"] for measures in found.values()) / QUERIES
    assert open_metrics(artifact(flow.root, "metrics"))["mean"]["ndcg_cut_10"] == pytest.approx(mean, abs=1e-12)
    assert 0.2 < mean <= 1.0, "a query holds three words of its document's topic"


def test_an_answer_and_a_path_can_be_read(flow: Flow) -> None:
    assert [hit.rank for hit in flow.hits] == list(range(1, 11))
    assert sum(hit.doc_id.startswith("bees") for hit in flow.hits) >= 5
    for hit in flow.hits:
        line = f"{hit.rank:>3}  {hit.doc_id}   [group {hit.group}: {hit.concept}; found through {hit.source}]"
        assert line in flow.said["jobs.search"].splitlines()
    assert f"{BUDGET} documents observed" in flow.said["jobs.search"]
    path = flow.said["jobs.show_trace"]
    (gold,) = open_qrels(artifact(flow.root, "queries"))["q0"]
    assert f"method garen; gold: {gold}\n" in path
    assert re.search(r"iteration 1: window of \d+, best now: \w", path)
    assert re.search(rf"the answer's first ten of {BUDGET}:\n +1 +\*? ?\w", path)


def test_a_second_call_takes_everything_as_it_is(flow: Flow, no_ray: None) -> None:
    before = {kind: payload(artifact(flow.root, kind)) for kind in BUILT}
    said = "".join(heard(job.run, flow.settings)[0] for job in (build_index, run_queries, score_run))
    for kind in BUILT:
        assert f"{kind}: {artifact(flow.root, kind).name} is already built" in said
    assert "building" not in said
    assert {kind: payload(artifact(flow.root, kind)) for kind in BUILT} == before


def test_the_index_answers_in_a_python_without_ray(flow: Flow) -> None:
    code = f"""
import sys
from actors.index import Index
hits = Index.open({str(artifact(flow.root, "index"))!r}).search({QUESTION!r})
assert "ray" not in sys.modules and "hydra" not in sys.modules
print("\\n".join(f"{{hit.rank}}\t{{hit.doc_id}}\t{{hit.source}}" for hit in hits))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{hit.rank}\t{hit.doc_id}\t{hit.source}" for hit in flow.hits]


# --- what a job refuses, and what it only plans; without Ray ----------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> schema.Settings:
    """Settings with everything built, in one process and with a model that costs nothing."""
    folder = tmp_path_factory.mktemp("built")
    corpus = f"corpus.path={write_collection(folder / 'c', 36, 4)}"
    settings = compose((f"artifacts.root={folder / 'root'}", "corpus=beir", corpus, "cluster.num_cpus=2"))
    assert start_here(settings, list(BUILT))
    return settings


@pytest.fixture
def of_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.stages.model_digest", lambda node: "of no model")


CHANGES: dict[str, tuple[str, Any]] = {  # something that makes a stage anew
    "corpus": ("on_bad", "skip"),
    "embeddings": ("max_tokens", 64),
    "graph": ("k", 5),
    "groups": ("max_size", 5),
    "lexicon": ("b", 0.7),
    "summaries": ("concept_words", 3),
    "queries": ("limit", 2),
    "run": ("loop.budget", 25),
    "metrics": ("measures", ["P_5"]),
}


def with_change(settings: schema.Settings, kind: str) -> schema.Settings:
    name, value = CHANGES[kind]
    node, key = name.split(".") if "." in name else (kind, name)
    return replace(settings, **{node: replace(getattr(settings, node), **{key: value})})


def on_disk(root: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in sorted(root.rglob("*")) if p.name != "digests.json" and p != root}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_plan_changes_nothing_on_disk(kind: str, built: schema.Settings, no_ray: None, of_no_model: None) -> None:
    root = Path(built.artifacts.root)
    before = on_disk(root)
    job = importlib.import_module(f"jobs.{STAGE_JOBS[kind]}")
    said, _ = heard(job.run, replace(with_change(built, kind), plan=True))
    assert f"{kind}: would build {root}" in said and "building" not in said
    assert on_disk(root) == before


def test_a_plan_of_the_whole_index_says_what_stays_and_what_is_built_anew(
    built: schema.Settings, no_ray: None, of_no_model: None, tmp_path: Path
) -> None:
    said, address = heard(build_index.run, replace(with_change(built, "graph"), plan=True))
    assert re.findall(r"^(\w+): would build", said, re.MULTILINE) == ["graph", "groups", "summaries", "index"]
    assert re.findall(r"^(\w+): .* is already built", said, re.MULTILINE) == ["corpus", "embeddings", "lexicon", "queries"]
    assert not address.built
    nowhere = replace(built, plan=True, artifacts=replace(built.artifacts, root=str(tmp_path / "none")))
    said, _ = heard(build_index.run, nowhere)
    assert re.findall(r"^(\w+): would build", said, re.MULTILINE) == [
        kind for kind in BUILT if kind not in ("index", "run", "metrics")
    ] + ["index"]
    assert on_disk(tmp_path / "none") == {}


def groups_built(settings: schema.Settings, groups: schema.Groups, root: Path) -> Path:
    """The job run with other groups over the same graph, in another root; the folder of what it built."""
    take(root, Path(settings.artifacts.root), "corpus embeddings graph", root.parent)
    settings = replace(settings, groups=groups, artifacts=replace(settings.artifacts, root=str(root)))
    assert start_here(settings, ["groups"])
    return Addresses(settings)["groups"].folder


@pytest.mark.parametrize("method", ["kmeans", "random"])
def test_groups_that_are_like_leiden_s_are_built_after_those(
    method: str, built: schema.Settings, of_no_model: None, tmp_path: Path
) -> None:
    folder = groups_built(built, compose((f"groups={method}",)).groups, tmp_path / "root")
    leiden = folder.with_name(artifact(Path(built.artifacts.root), "groups").name)
    assert leiden != folder and payload(leiden) == payload(artifact(Path(built.artifacts.root), "groups"))
    sizes, found = (np.diff(open_groups(each).member_offsets) for each in (leiden, folder))
    assert len(sizes) == len(found) > 2 and found.sum() == 36
    assert method == "kmeans" or sorted(sizes) == sorted(found)
    assert (open_groups(leiden).group_of != open_groups(folder).group_of).any()


def test_similarities_weigh_at_every_level(built: schema.Settings, of_no_model: None, tmp_path: Path) -> None:
    node = replace(built.groups, max_size=4, weights="similarity")
    found = open_groups(groups_built(built, node, tmp_path / "root")).group_of
    neighbours, similarities = open_graph(artifact(Path(built.artifacts.root), "graph"))
    how = partition.Leiden(4, node.resolution, node.randomness, node.iterations, node.seed)
    for level, finer in ((similarities, similarities), (similarities, None), (None, similarities)):
        labels = partition.level0(neighbours, how, level).labels
        sets = partition.batches(neighbours, labels, 4)
        refined = [(rows, partition.refine(neighbours, rows, labels[rows], how, finer)) for rows in sets]
        same = bool((partition.combine(labels, refined) == found).all())
        assert same == (level is finer)


# --- judges that are no model; without Ray ----------------------------------------------------------------------------


def run_with(settings: schema.Settings, root: Path, **nodes: Any) -> tuple[Path, Path]:
    """Runs made and scored with other nodes, in another root; the folders of run and metrics."""
    take(root, Path(settings.artifacts.root), "corpus embeddings graph groups lexicon summaries index queries", root.parent)
    settings = replace(settings, **nodes, artifacts=replace(settings.artifacts, root=str(root)))
    assert start_here(settings, ["run", "metrics"])
    return artifact(root, "run"), artifact(root, "metrics")


def test_simulated_judges_say_so_wherever_their_figures_go(
    built: schema.Settings, of_no_model: None, no_ray: None, tmp_path: Path
) -> None:
    judge = schema.SimulatedJudge("simulated", noise=0.0, bias=0.0, seed=0, plan_steps=3)
    run, metrics = run_with(built, tmp_path / "root", reranker=judge, navigator=judge)
    assert open_manifest(run, "run")["counts"]["judges"] == open_manifest(metrics, "metrics")["counts"]["judges"] == "simulated"
    assert {line.split("\t")[-1] for line in (run / "run.tsv").read_text().splitlines()} == {"garen-garen-simulated"}
    assert open_metrics(metrics)["mean"]["recip_rank"] == 1.0, "judges without errors put what is relevant first"
    again = replace(built, reranker=judge, navigator=judge, artifacts=replace(built.artifacts, root=str(tmp_path / "root")))
    assert "  simulated judges: these figures say nothing about any model" in heard(run_queries.run, again)[0]
    assert re.search(r"^ +garen \(simulated judges\) +\d", heard(score_run.run, again)[0], re.MULTILINE)
    own = artifact(Path(built.artifacts.root), "run")
    assert "judges" not in open_manifest(own, "run")["counts"] and "simulated" not in (own / "run.tsv").read_text()


@pytest.mark.parametrize("method", ["garen", "gar", "bm25"])
def test_simulated_judges_without_judgements_are_refused_where_they_would_be_asked(
    method: str, built: schema.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nobody(contextlib.nullcontext[Any]):
        def answer(self, *given: Any) -> Iterator[Any]:
            raise LookupError("asked")

    monkeypatch.setattr(run_queries, "open_qrels", lambda folder: {})
    monkeypatch.setattr(run_queries, "service", lambda cluster: Nobody(Nobody()))
    inputs = {kind: artifact(Path(built.artifacts.root), kind) for kind in ("index", "queries")}
    settings = replace(
        built, **{node: getattr(compose((f"loop={method}", "reranker=simulated")), node) for node in ("loop", "reranker")}
    )
    refused = (LookupError, "asked") if method == "bm25" else (ValueError, r"these queries have none: give queries\.qrels=")
    with pytest.raises(refused[0], match=refused[1]):
        run_queries.make(settings, inputs, Path(built.artifacts.root) / "nowhere")


def test_a_run_that_is_replayed_is_the_same_run(built: schema.Settings, of_no_model: None, tmp_path: Path) -> None:
    own = artifact(Path(built.artifacts.root), "run")
    judge = schema.ReplayJudge("replay", str(own), missing=-1.0)
    run, _ = run_with(built, tmp_path / "root", reranker=judge, navigator=judge)
    assert run.name != own.name
    for file in ("run.tsv", "run.parquet", "trace.parquet", "answers.parquet", "ledger.parquet"):
        assert (run / file).read_bytes() == (own / file).read_bytes(), file


def test_the_ledger_of_a_run_is_that_of_its_queries(built: schema.Settings) -> None:
    own = artifact(Path(built.artifacts.root), "run")
    summed: dict[str, Counter[str]] = {}
    for line in open_ledger(own):
        summed.setdefault(line["role"], Counter())[line["counter"]] += line["number"]
    assert open_manifest(own, "run")["counts"]["usage"] == summed
    assert {line["query_id"] for line in open_ledger(own)} == {f"q{n}" for n in range(4)}
    for role in ("reranker", "navigator"):
        assert sum(1 for _ in open_answers(own, role)) == summed[role]["calls"]


# --- the deployments of a job -----------------------------------------------------------------------------------------


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every deployment as it is made and removed, none of them real."""
    told: list[str] = []
    monkeypatch.setattr(online, "start_ray", lambda cluster: None)
    monkeypatch.setattr(online, "check_cpus", lambda cluster, needs: None)
    monkeypatch.setattr(online, "_deploy", lambda cluster, role, app, node: told.append(f"+{app}"))
    monkeypatch.setattr(online, "_remove", lambda app: told.append(f"-{app}"))
    monkeypatch.setattr("ray.get_runtime_context", lambda: SimpleNamespace(get_job_id=lambda: "7"))
    return told


def test_runs_of_a_job_share_deployments_and_another_judge_makes_way(deployed: list[str]) -> None:
    def work(service: online.Service, *overrides: str) -> dict[str, str]:
        return service._work(compose(overrides), Path("/index"), "/queries", 1).apps

    with online.service(compose(()).cluster) as service:
        first = work(service)
        assert first == {"reranker": "garen-7-reranker-0", "navigator": "garen-7-navigator-1"}
        assert work(service, "loop.budget=50") == first and work(service, "loop=bm25") == {}
        assert work(service, "loop=gar") == {"reranker": first["reranker"]} and len(deployed) == 2
        assert work(service, "loop=repair") == {"reranker": first["reranker"], "encoder": "garen-7-encoder-2"}
        changed = work(service, "reranker.lexical_weight=0.5")
        assert changed == {"reranker": "garen-7-reranker-3", "navigator": first["navigator"]}
        assert deployed[3:] == ["-garen-7-reranker-0", "+garen-7-reranker-3"]
    assert sorted(deployed[5:]) == ["-garen-7-encoder-2", "-garen-7-navigator-1", "-garen-7-reranker-3"]


def test_judges_inside_the_searchers_deploy_nothing(deployed: list[str]) -> None:
    settings = compose(("cluster.in_process=true",))
    with online.service(settings.cluster) as service:
        work = service._work(settings, Path("/index"), "/queries", 1)
    assert work == Work("/index", "/queries", settings.answering, {}) and not deployed


# --- what is missing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", ["run_queries", "score_run", "search", "show_trace", "build_graph"])
def test_what_is_not_there_yet_is_named_with_its_job(
    job: str, built: schema.Settings, no_ray: None, of_no_model: None, tmp_path: Path
) -> None:
    (tmp_path / "ask").write_text(QUESTION)
    nowhere = replace(built, ask=str(tmp_path / "ask"), artifacts=replace(built.artifacts, root=str(tmp_path / "none")))
    with pytest.raises(BadArtifact, match=r"does not exist.*python -m jobs\.\w+"):
        heard(importlib.import_module(f"jobs.{job}").run, nowhere)


def test_too_little_disk_is_said_before_anything_is_written(
    built: schema.Settings, no_ray: None, of_no_model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9 - 1024, 1024))
    said = r"free disk='0 MiB': expected [\d,]+ MiB below .*root, as foreseen\. Remove what is not needed"
    for kind in ("corpus", "embeddings", "graph", "groups", "lexicon"):
        before = on_disk(Path(built.artifacts.root))
        with pytest.raises(BadConfig, match=said):
            heard(importlib.import_module(f"jobs.build_{kind}").run, with_change(built, kind))
        assert on_disk(Path(built.artifacts.root)) == before


@pytest.mark.parametrize("kind", ["groups", "lexicon"])
def test_too_little_memory_is_said(
    kind: str, built: schema.Settings, no_ray: None, of_no_model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.room.available_memory_mb", lambda: 0.001)
    with pytest.raises(BadConfig, match="free memory='0 MiB': expected"):
        heard(importlib.import_module(f"jobs.build_{kind}").run, with_change(built, kind))


def test_too_few_cpus_are_said_instead_of_waiting_for_them(
    built: schema.Settings, of_no_model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.building.start_ray", lambda cluster: None)
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 2.0})
    settings = with_change(built, "embeddings")
    cluster = replace(settings.cluster, embedder=replace(settings.cluster.embedder, actors=64, part_rows=1))
    with pytest.raises(BadConfig, match=r"pool 18 \+ reader 1 CPUs.*at most the 2 CPUs of the cluster.*Lower num_cpus"):
        heard(build_embeddings.run, replace(settings, cluster=cluster))


# --- other ways to the same -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_judges_behind_serve_give_the_same_bytes(flow: Flow, job: StartJob, models: Path, tmp_path: Path) -> None:
    root = take(tmp_path / "root", flow.root, " ".join(set(BUILT) - {"run", "metrics"}), models)
    given = ("corpus=beir", f"corpus.path={flow.root.parent / 'c'}", f"loop.budget={BUDGET}", "cluster.num_cpus=4")
    said = job("run_queries", root, *given, "cluster.in_process=false").end()
    for role in ("reranker", "navigator"):
        assert re.search(rf"^deploying embedding {role} as garen-\w+-{role}-\d$", said, re.MULTILINE)
    assert "encoder" not in said, "garen compares no texts"
    assert payload(artifact(root, "run")) == payload(artifact(flow.root, "run"))


@pytest.mark.slow
def test_a_folder_of_notes_needs_no_queries(job: StartJob, models: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    known = [("bees", "The queen of a hive is fed with honey."), ("trains", "A signal stops the train.")]
    for number, (topic, text) in enumerate(known * 12):
        (notes / f"{topic} {number}.md").write_text(f"# Note {number}\n\n{text} This is note {number}.\n")
    root = take(tmp_path / "root", Path(), "", models)
    given = ("corpus=folder", f"corpus.path={notes}", "cluster.num_cpus=4", "cluster.in_process=true")
    job("build_index", root, *given).end()
    asked = job("run_queries", root, *given)
    assert asked.process.wait(300) == 2
    assert "garen: queries: there are none. Give some with queries=jsonl" in asked.output
    assert "Traceback" not in asked.output
    (tmp_path / "question").write_text("who eats honey?")
    said = job("search", root, *given, f"ask={tmp_path / 'question'}").end()
    answer = re.findall(r"^ +\d+  (\w+) \d+\.md ", said, re.MULTILINE)
    assert len(answer) == 10 and answer[0] == "bees", said
