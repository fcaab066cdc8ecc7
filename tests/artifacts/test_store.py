"""Identities, drafts and manifests: what is the same, what is finished, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.artifacts import store
from actors.artifacts.store import Address, BadArtifact, Recipe, add_timings, draft, finish, open_manifest, open_timings
from conf import schema
from conf.load import compose
from jobs import stages
from jobs.stages import STAGES, Addresses, Digests

RECIPE = Recipe("graph", {"graph": {"k": 4}}, {"embeddings": "embeddings-0"}, {"file": "abc"}, {"path": "/here"})


def build(shelf: Path, recipe: Recipe = RECIPE, files: dict[str, bytes] | None = None) -> Address:
    address = Address(shelf, recipe)
    with draft(address) as folder:
        for name, data in (files or {"a.npy": b"12345"}).items():
            (folder / name).write_bytes(data)
        finish(address, {"documents": 3})
    return address


# --- identity ---------------------------------------------------------------------------------------------------------


def test_everything_but_what_is_aside_makes_the_identity() -> None:
    same = dataclasses.replace(RECIPE, aside={"path": "/there"})
    assert same.identity == RECIPE.identity == Recipe(**vars(RECIPE)).identity and len(RECIPE.identity) == 12
    others = [
        dataclasses.replace(RECIPE, kind="groups"),
        dataclasses.replace(RECIPE, config={"graph": {"k": 5}}),
        dataclasses.replace(RECIPE, inputs={"embeddings": "embeddings-1"}),
        dataclasses.replace(RECIPE, outside={"file": "abd"}),
        dataclasses.replace(RECIPE, outside={}),
    ]
    assert len({recipe.identity for recipe in [RECIPE, *others]}) == 6


def test_a_new_format_is_a_new_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    before = RECIPE.identity
    monkeypatch.setitem(store.FORMATS, "graph", store.FORMATS["graph"] + 1)
    assert RECIPE.identity != before


def test_the_order_of_keys_does_not_matter() -> None:
    one, other = (Recipe("graph", dict(pairs)) for pairs in ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)]))
    assert one.identity == other.identity


@pytest.fixture
def beir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A BEIR folder of two documents and one query; the model is not looked for."""
    monkeypatch.setattr(stages, "model_digest", lambda node: f"digest of {node.model}")
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "1", "text": "one"}\n{"_id": "2", "text": "two"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "which"}\n')
    for split in ("test", "testx"):
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    for role in ("documents", "groups"):
        (folder / f"{role}.tsv").write_text("query_id\tid\tscore\nq\t1\t1.0\n")
    return folder


def settings_of(beir: Path, *overrides: str) -> schema.Settings:
    return compose(["corpus=beir", f"corpus.path={beir}", f"artifacts.root={beir.parent}/root", *overrides])


def identities(settings: schema.Settings) -> dict[str, str]:
    addresses = Addresses(settings)
    return {kind: addresses[kind].name for kind in STAGES}


def readers_of(*kinds: str) -> set[str]:
    """These kinds and everything that is made of them."""
    found = set(kinds)
    for kind, stage in STAGES.items():  # a stage stands after its inputs
        if found & set(stage.inputs):
            found.add(kind)
    return found


def test_stages_stand_after_what_they_read() -> None:
    before: set[str] = set()
    for kind, stage in STAGES.items():
        assert set(stage.inputs) <= before
        before.add(kind)


def test_the_same_again_is_the_same(beir: Path) -> None:
    assert identities(settings_of(beir)) == identities(settings_of(beir))


def other_value(field: dataclasses.Field[Any], value: Any) -> Any:
    """Another value of the same type."""
    if field.metadata["choices"]:
        return next((choice for choice in field.metadata["choices"] if choice != value), None)
    if dataclasses.is_dataclass(value):
        return None  # its values are changed one by one where all settings are (tests/jobs/test_rebuild.py)
    if isinstance(value, bool):
        return not value
    return [*value, "map_cut_5"] if isinstance(value, list) else value + 1 if isinstance(value, int | float) else value + "x"


def changes() -> Iterator[tuple[str, str, bool]]:
    """node, field, whether it belongs to the identity; for every node that a stage reads, with the options the toy uses."""
    used = {"corpus": schema.Beir, "queries": schema.Queries, "embeddings": schema.OnnxEmbeddings,
            "lists": schema.Lists, "graph": schema.AutoGraph, "groups": schema.Leiden,
            "lexicon": schema.Lexicon, "summaries": schema.ExtractiveSummaries,
            "first_stage": schema.Bm25FirstStage, "loop": schema.GarenLoop, "reranker": schema.TableJudge,
            "navigator": schema.TableJudge, "metrics": schema.Metrics}  # fmt: skip
    assert set(used) == {node for stage in STAGES.values() for node in stage.nodes}
    for node, cls in used.items():
        for field in dataclasses.fields(cls):
            yield node, field.name, field.metadata["identity"]


@pytest.fixture
def tabled(beir: Path) -> schema.Settings:
    tables = [f"{role}.path={beir}/{of}.tsv" for role, of in (("reranker", "documents"), ("navigator", "groups"))]
    return settings_of(beir, "reranker=table", "navigator=table", *tables)


def test_every_value_that_says_what_changes_its_stages_and_all_after_them_and_nothing_else(
    beir: Path, tabled: schema.Settings
) -> None:
    before = identities(tabled)
    checked = 0
    for node, name, matters in changes():
        value = getattr(getattr(tabled, node), name)
        other = other_value({f.name: f for f in dataclasses.fields(getattr(tabled, node))}[name], value)
        if other is None or name in ("path", "qrels", "name", "reader"):
            continue  # nothing else to choose; places are moved in the next test
        changed = dataclasses.replace(tabled, **{node: dataclasses.replace(getattr(tabled, node), **{name: other})})
        expected = readers_of(*(kind for kind, stage in STAGES.items() if node in stage.nodes)) if matters else set[str]()
        if (node, name) == ("embeddings", "model"):
            expected = readers_of("embeddings")  # by its digest
        assert {kind for kind, found in identities(changed).items() if found != before[kind]} == expected, f"{node}.{name}"
        checked += 1
    assert checked > 40


def test_where_things_lie_does_not_matter_but_what_lies_there(beir: Path, tabled: schema.Settings) -> None:
    before = identities(tabled)
    moved = beir.rename(beir.with_name("moved"))
    settings = settings_of(moved, "reranker=table", "navigator=table", "corpus.name=tiny",
                           f"reranker.path={moved}/documents.tsv", f"navigator.path={moved}/groups.tsv")  # fmt: skip
    assert identities(settings) == before

    for file, kinds in (
        ("corpus.jsonl", ("corpus",)),
        ("queries.jsonl", ("queries",)),
        ("qrels/test.tsv", ("queries",)),
        ("documents.tsv", ("run",)),
        ("groups.tsv", ("run",)),
    ):
        text = (moved / file).read_text()
        (moved / file).write_text(text + "\n")
        assert {kind for kind, found in identities(settings).items() if found != before[kind]} == readers_of(*kinds), file
        (moved / file).write_text(text)


def test_the_cluster_changes_nothing(beir: Path) -> None:
    settings = settings_of(beir)
    doubled = [
        f"cluster.{pool}.{key}={value * (0.5 if key == 'gpu_memory_utilization' else 2)}"
        for pool, node in dataclasses.asdict(settings.cluster).items()
        if isinstance(node, dict)
        for key, value in node.items()
    ]
    faster = settings_of(beir, *doubled, "cluster.in_process=true", "cluster.num_cpus=64")
    assert faster.cluster != settings.cluster
    assert identities(faster) == identities(settings)


def test_a_file_is_digested_once_until_it_changes(beir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(beir)
    digested: list[Path] = []
    monkeypatch.setattr("jobs.outside.sha256", lambda path: digested.append(path) or "0" * 64)
    for _ in range(2):
        Addresses(settings)["corpus"].name  # noqa: B018
    assert digested == [beir / "corpus.jsonl"]
    (beir / "corpus.jsonl").write_text('{"_id": "1", "text": "another"}\n')
    Addresses(settings)["corpus"].name  # noqa: B018
    assert len(digested) == 2


# --- drafts -----------------------------------------------------------------------------------------------------------


def test_a_draft_becomes_the_artifact_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    address = build(tmp_path)
    assert address.built and open_manifest(address.folder, "graph", checksums=True)["counts"] == {"documents": 3}
    assert [p.name for p in tmp_path.iterdir()] == [address.name]
    manifest = json.loads((address.folder / "manifest.json").read_text())
    assert manifest["files"]["a.npy"][0] == 5 and manifest["inputs"] == {"embeddings": "embeddings-0"}
    assert manifest["aside"] == {"path": "/here"}


def test_a_draft_keeps_what_an_earlier_attempt_left(tmp_path: Path) -> None:
    address = Address(tmp_path, RECIPE)
    with pytest.raises(KeyboardInterrupt), draft(address) as folder:
        (folder / "half").write_bytes(b"1")
        raise KeyboardInterrupt
    assert not address.built
    with draft(address) as folder:
        assert (folder / "half").exists()


def test_the_same_draft_is_the_same_bytes(tmp_path: Path) -> None:
    one, other = build(tmp_path / "1"), build(tmp_path / "2")
    assert [(p.name, p.read_bytes()) for p in one.folder.iterdir()] == [(p.name, p.read_bytes()) for p in other.folder.iterdir()]


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    address = Address(tmp_path, RECIPE)
    script = (
        "import sys; from pathlib import Path; from actors.artifacts.store import *\n"
        "a = Address(Path(sys.argv[1]), Recipe('graph', {'graph': {'k': 4}}, {'embeddings': 'embeddings-0'}, {'file': 'abc'}))\n"
        "try:\n with draft(a): print('in')\nexcept BadArtifact as e: print(e)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with draft(address):
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert refused.strip() == f"{address.partial} is being written by another job. Wait until it ends, or end it."
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "in\n"


def test_a_lock_that_a_killed_job_left_holds_nobody_up(tmp_path: Path) -> None:
    address = Address(tmp_path, RECIPE)
    (tmp_path / f".{address.name}.lock").write_text("")
    with draft(address):
        pass


# --- what is refused --------------------------------------------------------------------------------------------------


def test_not_there_and_unfinished(tmp_path: Path) -> None:
    address = Address(tmp_path, RECIPE)
    with pytest.raises(BadArtifact, match="does not exist. Run its job: python -m jobs.build_graph with the same settings"):
        open_manifest(address.folder, "graph")
    with draft(address), pytest.raises(BadArtifact, match="is unfinished. Run its job: python -m jobs.build_graph"):
        open_manifest(address.folder, "graph")


@pytest.mark.parametrize("kind", STAGES)
def test_the_job_that_is_named_exists(kind: str, tmp_path: Path) -> None:
    with pytest.raises(BadArtifact) as refused:
        open_manifest(tmp_path / f"{kind}-0", kind)
    job = str(refused.value).split("python -m ")[1].split()[0]
    assert Path(job.replace(".", "/") + ".py").exists(), job


def test_another_format_or_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build(tmp_path).folder
    with pytest.raises(BadArtifact, match=r"manifest.json: graph format 1, expected groups format 1. Build it again"):
        open_manifest(folder, "groups")
    monkeypatch.setitem(store.FORMATS, "graph", 2)
    with pytest.raises(BadArtifact, match=r"manifest.json: graph format 1, expected graph format 2. Build it again"):
        open_manifest(folder, "graph")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "graph"}'])
def test_a_damaged_manifest_is_named_with_the_remedy(text: str, tmp_path: Path) -> None:
    folder = build(tmp_path).folder
    (folder / store.MANIFEST).write_text(text)
    with pytest.raises(BadArtifact, match=f"{folder}/manifest.json: no manifest .*Remove {folder} and run its job again"):
        open_manifest(folder, "graph")


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = store.os.fsync

    def meanwhile(handle: int) -> None:
        monkeypatch.setattr(store.os, "fsync", real)
        monkeypatch.setattr(store.os, "getpid", lambda: -1)
        store.write_text(tmp_path / "x", "another's")

    monkeypatch.setattr(store.os, "fsync", meanwhile)
    store.write_text(tmp_path / "x", "mine")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x", "mine")]


@pytest.mark.parametrize("state", ["{bad", "a folder"])
def test_digests_that_cannot_be_kept_are_taken_again(state: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    if state == "a folder":
        (tmp_path / "digests.json").mkdir()
    else:
        (tmp_path / "digests.json").write_text(state)
    assert Digests(tmp_path).of(tmp_path / "x") == store.sha256(tmp_path / "x")


def test_a_damaged_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    address = build(tmp_path)
    file = address.folder / "a.npy"
    remedy = f"Remove {address.folder} and run its job again."
    file.write_bytes(b"12346")
    open_manifest(address.folder, "graph")  # same size: only the checksum sees it
    with pytest.raises(BadArtifact, match=f"{file}: its sha256 is not the manifest's .*{remedy}"):
        open_manifest(address.folder, "graph", checksums=True)
    file.write_bytes(b"1234")
    with pytest.raises(BadArtifact, match=f"{file}: expected 5 bytes, found 4. {remedy}"):
        open_manifest(address.folder, "graph")
    file.unlink()
    with pytest.raises(BadArtifact, match=f"{file}: expected 5 bytes, found missing. {remedy}"):
        open_manifest(address.folder, "graph")


# --- timings ----------------------------------------------------------------------------------------------------------


def test_timings_add_up_over_attempts_and_are_not_part_of_the_bytes(tmp_path: Path) -> None:
    address = Address(tmp_path, RECIPE)
    with draft(address) as folder:
        (folder / "a.npy").write_bytes(b"1")
        add_timings(folder, [("", "graph", 1.5)])
        add_timings(folder, [])
        add_timings(folder, [("q", "total", 2.0)])
        finish(address, {})
    assert [(t["query_id"], t["name"], t["seconds"]) for t in open_timings(address.folder)] == [
        ("", "graph", 1.5),
        ("q", "total", 2.0),
    ]
    assert list(open_manifest(address.folder, "graph")["files"]) == ["a.npy"]


def test_changed_weights_of_a_local_model_change_what_it_made(beir: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    (model / "1_Pooling").mkdir(parents=True)
    (model / "model.safetensors").write_bytes(b"weights")
    (model / "1_Pooling" / "config.json").write_text("{}")
    roles = {"summaries": "summaries=llm", "reranker": "reranker=listwise", "navigator": "navigator=pointwise"}
    changes = [(chosen, f"model@{role}.model=smollm2_135m", f"{role}.model.name={model}") for role, chosen in roles.items()]
    overrides = [override for change in changes for override in change]
    before = identities(settings_of(beir, *overrides))
    assert identities(settings_of(beir, *overrides)) == before
    (model / "1_Pooling" / "config.json").write_text('{"other": 1}')
    after = identities(settings_of(beir, *overrides))
    assert {kind for kind in before if before[kind] != after[kind]} == readers_of("summaries") | {"run", "metrics"}
