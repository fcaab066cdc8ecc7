"""What a change of the settings or of the files makes anew: that stage and those that build on it, and nothing else."""

from __future__ import annotations

import dataclasses
import functools
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.algorithms.loops.methods import METHODS
from actors.engines.minilm import file_sha256, find_minilm
from conf import schema
from conf.load import compose
from jobs.stages import STAGES, Addresses
from tests.jobs.conftest import StartJob, payload, take, write_collection

# Who is anew when a node changes, as the design says it and not as jobs/stages.py does.
ON_GROUPS = {"groups", "summaries", "index", "run", "metrics"}
ON_GRAPH = {"graph", *ON_GROUPS}
ON_EMBEDDINGS = {"embeddings", "lists", *ON_GRAPH}
ON_LEXICON = {"lexicon", "summaries", "index", "run", "metrics"}
ANEW: dict[str, set[str]] = {
    "corpus": set(STAGES),
    "queries": {"queries", "run", "metrics"},
    "embeddings": ON_EMBEDDINGS,
    "lists": {"lists"},  # those that an approximate graph names are its own values
    "graph": ON_GRAPH,
    "groups": ON_GROUPS,
    "lexicon": ON_LEXICON,
    "summaries": {"summaries", "index", "run", "metrics"},
    "first_stage": {"run", "metrics"},
    "loop": {"run", "metrics"},
    "reranker": {"run", "metrics"},
    "navigator": {"run", "metrics"},
    "metrics": {"metrics"},
    "compare": set(),
    "prices": set(),
    "cluster": set(),
    "artifacts": set(),
}
NEVER = {"compare", "prices", "run_seed", "overrides", "do"}  # a seed counts in the nodes that hold it, overrides in what they made
# Values that say where something lies: its content enters, the place does not.
PLACES = {"corpus.name", "corpus.path", "queries.path", "queries.qrels", "embeddings.model", "embeddings.sha256",
          "first_stage.path", "reranker.path", "navigator.path", "loop.neighbours"}  # fmt: skip


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = write_collection(tmp_path / "here" / "c", 20, 4)
    lines = "query_id\tid\tscore\nq0\tships 0\t0.5\n"
    for name in ("documents", "groups", "other"):
        lines += f"q0\tships 1\t{len(name)}\n"
        (folder / f"{name}.tsv").write_text(lines)
    shutil.copy(folder / "qrels" / "test.tsv", folder / "qrels" / "testx.tsv")
    return folder


def settings_of(collection: Path, *overrides: str) -> schema.Settings:
    return compose((f"artifacts.root={collection.parents[1] / 'root'}", "corpus=beir", f"corpus.path={collection}", *overrides))


def names(settings: schema.Settings) -> dict[str, str]:
    """The folder name of every artifact."""
    addresses = Addresses(settings)
    return {kind: addresses[kind].name for kind in STAGES}


def anew(before: schema.Settings, after: schema.Settings) -> set[str]:
    old, new = names(before), names(after)
    return {kind for kind in STAGES if old[kind] != new[kind]}


def values(node: Any, path: Sequence[str] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value of a tree of dataclasses, changed, with the names that lead to it; a value without an alternative is left out."""
    for field in dataclasses.fields(node):
        here, value = (*path, field.name), getattr(node, field.name)
        if dataclasses.is_dataclass(value):
            yield from values(value, here)
        elif other := changed(value, field.metadata.get("choices", ())):
            yield here, other[0]


def changed(value: Any, choices: Sequence[str]) -> list[Any]:
    if choices:
        return [choice for choice in choices if choice != value][:1]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, dict):
        return [{**value, "more": []}]
    return [[*value, "P_5"] if isinstance(value, list) else value + "x" if isinstance(value, str) else value + 1]


def put(node: Any, path: Sequence[str], value: Any) -> Any:
    inner = put(getattr(node, path[0]), path[1:], value) if len(path) > 1 else value
    return replace(node, **{path[0]: inner})


VARIANTS: dict[tuple[str, ...], set[str]] = {  # overrides -> the judges that the method asks
    (): {"reranker", "navigator"},
    ("loop=retrieve_and_rerank", "first_stage.weighting=bm25"): {"reranker"},
    ("loop=bm25", "groups=kmeans", "navigator=simulated"): set(),
    ("loop=repair", "first_stage=hybrid", "reranker=simulated", "navigator=simulated"): {"reranker"},
    ("loop=documents", "reranker=simulated", "navigator=simulated"): {"reranker", "navigator"},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_value_of_the_settings(collection: Path, variant: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that the method does not ask makes nothing anew."""
    monkeypatch.setattr("actors.engines.onnx_files.file_sha256", functools.cache(file_sha256))  # 23 MB, a hundred times over
    settings = settings_of(collection, *variant)
    never = NEVER | ({"reranker", "navigator"} - VARIANTS[variant])
    seen = set()
    for path, value in values(settings):
        key = ".".join(path)
        if key in PLACES or path[0] in ("artifacts", "plan", "ask", "query_id", "seed") or key == "queries.reader":
            continue  # each below
        nothing = path[0] in never or key == "graph.attempts"  # how often it may try changes no graph that it ends with
        expected = set() if nothing else ANEW[path[0]]
        assert anew(settings, put(settings, path, value)) == expected, f"{key}={value!r}"
        seen.add(path[0])
    assert set(ANEW) - seen == {"artifacts"}


@pytest.mark.parametrize("method", METHODS)
def test_a_judge_counts_where_it_is_asked(method: str, collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.stages.model_digest", lambda node: "of no model")
    settings = settings_of(collection, f"loop={method}")
    simulated = schema.SimulatedJudge("simulated", 0.3, 0.0, 0, 3)
    tables = [schema.TableJudge("table", f"{collection}/{name}.tsv", 0.0) for name in ("documents", "other")]
    for role in ("reranker", "navigator"):
        own = getattr(settings, role)
        for one, other in ((own, simulated), (simulated, replace(simulated, seed=1)), (own, tables[0]), tables):
            found = anew(replace(settings, **{role: one}), replace(settings, **{role: other}))
            assert found == (ANEW[role] if role in METHODS[method].asks else set()), (role, one, other)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("loop=bm25", ANEW["loop"]),
        ("loop=retrieve_and_rerank", ANEW["loop"]),
        ("first_stage=dense", ANEW["first_stage"]),
        ("first_stage=hybrid", ANEW["first_stage"]),
        ("lexicon=plain", ON_LEXICON),
        ("queries.reader=none", ANEW["queries"]),
        ("loop=rgs", ANEW["loop"]),
        ("loop.group_score=votes", ANEW["loop"]),
        ("loop.sources.pool=3", ANEW["loop"]),
        ("reranker=simulated", ANEW["reranker"]),
        ("navigator=simulated", ANEW["navigator"]),
        ("seed=1", ON_GROUPS),
        ("run_seed=1", set()),
        ("compare.seeds=[1,2]", set()),
        ("groups=random", ON_GROUPS),
        ("cluster.in_process=true", set()),
        ("cluster.embedder.part_rows=7", set()),
        ("plan=true", set()),
        ("query_id=q1", set()),
        ("ask=/question", set()),
        ("corpus.name=other", set()),
        ("artifacts.collections=/elsewhere", set()),
        ("embeddings.query_prefix=about", ON_EMBEDDINGS),
    ],
)
def test_overrides_as_they_are_typed(collection: Path, override: str, expected: set[str]) -> None:
    assert anew(settings_of(collection), settings_of(collection, override)) == expected


def test_content_of_files(collection: Path) -> None:
    """Adding to the end of a file that is read; the time of change alone makes nothing anew."""
    settings = settings_of(collection, "reranker=table", "navigator=table",
                           f"reranker.path={collection}/documents.tsv", f"navigator.path={collection}/groups.tsv")  # fmt: skip
    for name, expected in (
        ("corpus.jsonl", set(STAGES)),
        ("queries.jsonl", ANEW["queries"]),
        ("qrels/test.tsv", ANEW["queries"]),
        ("documents.tsv", ANEW["reranker"]),
        ("groups.tsv", ANEW["navigator"]),
    ):
        file, before = collection / name, names(settings)
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        after = names(settings)
        assert {kind for kind in STAGES if before[kind] != after[kind]} == expected, name
        file.write_bytes(content)
        assert names(settings) == before, f"{name} is as it was"
    (collection / "README").write_text("not read by any stage\n")
    assert names(settings) == before


def test_content_of_a_replayed_run_and_of_another_graph(collection: Path) -> None:
    """Of a run that is replayed, its answers count and nothing else; of a graph that was brought, the file."""
    run = collection / "run"
    run.mkdir()
    (run / "answers.parquet").write_bytes(b"answers")
    (collection / "graph.npy").write_bytes(b"graph")
    overrides = ("loop=rgs", f"loop.neighbours={collection}/graph.npy", "reranker=replay", f"reranker.path={run}")
    before = names(settings_of(collection, *overrides))
    (run / "timings.parquet").write_bytes(b"clock")
    assert names(settings_of(collection, *overrides)) == before
    for file in (run / "answers.parquet", collection / "graph.npy"):
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        after = names(settings_of(collection, *overrides))
        assert {kind for kind in STAGES if before[kind] != after[kind]} == ANEW["reranker"], file
        file.write_bytes(content)
    shutil.move(run, collection / "moved")
    assert names(settings_of(collection, *overrides[:3], f"reranker.path={collection}/moved")) == before


def test_moved_files(collection: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(find_minilm()[0].parent, model, copy_function=lambda source, target: Path(target).symlink_to(source))
    (model / "tokenizer.json").symlink_to(find_minilm()[1])
    moved = tmp_path / "there" / "other name"
    shutil.copytree(collection, moved)
    (tmp_path / "moved model").symlink_to(model)

    def at(folder: Path, model: Path) -> schema.Settings:
        settings = settings_of(collection, "reranker=table", f"reranker.path={folder}/documents.tsv")
        for node, key, place in (("corpus", "path", folder), ("queries", "path", folder), ("embeddings", "model", model)):
            settings = put(settings, (node, key), str(place))
        return settings

    assert names(at(collection, model)) == names(at(moved, tmp_path / "moved model"))
    shutil.rmtree(collection)
    settings = at(moved, model)
    assert Addresses(settings)["corpus"].shelf == tmp_path / "root" / "c", "the corpus' name decides the shelf"


def test_a_root_elsewhere_holds_artifacts_of_the_same_names(collection: Path, tmp_path: Path) -> None:
    settings = settings_of(collection)
    assert names(settings) == names(replace(settings, artifacts=replace(settings.artifacts, root=str(tmp_path / "x"))))


@pytest.mark.slow
def test_a_job_says_what_it_takes_as_it_is(job: StartJob, models: Path, tmp_path: Path) -> None:
    given = ("corpus=beir", f"corpus.path={write_collection(tmp_path / 'c', 60, 4)}", "cluster.num_cpus=4")
    root = take(tmp_path / "root", Path(), "", models)
    job("build_index", root, *given).end()
    before = {folder.name: payload(folder) for folder in (root / "c").iterdir()}
    said = job("build_index", root, *given, "groups.max_size=5", "cluster.summarizer.part_rows=3").end()
    reused = set(re.findall(r"^(\w+): \1-\w+ is already built$", said, re.MULTILINE))
    built = {kind for kind in STAGES if f"{kind}: building" in said}
    assert reused == {"corpus", "embeddings", "graph", "lexicon", "queries"}
    assert built == {"groups", "summaries", "index"}
    after = {folder.name: payload(folder) for folder in (root / "c").iterdir()}
    assert before.items() <= after.items(), "what there was is as it was"
    assert len(after) == len(before) + len(built)
