"""The configuration: every file of it composes and loads, and every mistake has a message that says what to do."""

from __future__ import annotations

import copy
import dataclasses
import functools
import io
import subprocess
import sys
import typing
from pathlib import Path

import pytest
import yaml
from hydra import compose as hydra_compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

import conf
from conf import schema, templates
from conf.load import BadConfig, _prompt as load_prompt, compose, load, quoted
from jobs import building, session
from jobs.search import read_question

CONF = Path(conf.__file__).parent
OPTIONS = {
    node.name: sorted(path.stem for path in node.glob("*.yaml"))
    for node in sorted(CONF.iterdir())
    if node.is_dir() and any(node.glob("*.yaml")) and node.name not in ("experiment", "model")  # they go into other nodes
}
GIVEN = {  # what a file leaves to the user
    ("embeddings", "onnx"): ["embeddings.model=/models/x"],
    ("reranker", "table"): ["reranker.path=/data/documents.tsv"],
    ("navigator", "table"): ["navigator.path=/data/groups.tsv"],
    ("reranker", "replay"): ["reranker.path=/data/run-1"],
    ("navigator", "replay"): ["navigator.path=/data/run-1"],
} | {
    (node, name): [f"{node}.path=/data/x"]
    for nodes, names in (
        (("corpus", "queries"), ("beir", "jsonl", "parquet", "table", "folder", "csv")),
        (("embeddings", "graph", "groups", "summaries"), ("brought",)),
        (("first_stage",), ("run",)),
    )
    for node in nodes
    for name in names
}
NODES = [cls for cls in vars(schema).values() if dataclasses.is_dataclass(cls) and cls not in (schema.Settings, schema.Answering)]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("GAREN_COLLECTIONS", raising=False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("GAREN_HOME", str(tmp_path))
    return tmp_path


# --- what is there ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", range(max(map(len, OPTIONS.values()))))
def test_every_file_composes_and_loads(turn: int) -> None:
    """The first files of all nodes together, then the second ones, ..., so that every file has its turn."""
    chosen = {node: names[turn % len(names)] for node, names in OPTIONS.items()}
    if chosen["embeddings"] == "synthetic":
        chosen["corpus"] = "synthetic"  # whose vectors they are
    given = [override for choice in chosen.items() for override in GIVEN.get(choice, [])]
    settings = compose([*(f"{node}={name}" for node, name in chosen.items()), *given])
    assert settings.corpus.reader in (chosen["corpus"], "beir", "table")
    assert settings.queries.reader in (chosen["queries"], settings.corpus.reader, "none")
    assert settings.loop.method == chosen["loop"]


def test_experiments_change_what_they_are_named_for() -> None:
    usual = compose([]).loop
    assert isinstance(usual, schema.GarenLoop)
    assert compose(["experiment=exploit_only"]).loop == dataclasses.replace(usual, tau_switch=0)
    assert compose(["experiment=explore_only", "loop.budget=50"]).loop == dataclasses.replace(usual, tau_switch=1000, budget=50)
    assert compose(["experiment=no_propagation"]).loop == dataclasses.replace(usual, alpha=0.0)


def test_the_paper_s_values() -> None:
    settings = compose([])
    sources = schema.Sources(groups=10, neighbours=0, pool=0)
    assert settings.loop == schema.GarenLoop("garen", 20, 10, 100, 20, 4, "candidates", "navigator", sources, 0.6, 0.01)
    assert (settings.graph.k, settings.groups.max_size, settings.groups.resolution, settings.groups.randomness) == (
        16,
        20,
        1.0,
        0.001,
    )


def test_everything_lies_below_one_home(home: Path) -> None:
    settings = compose(["corpus=scifact"])
    assert settings.artifacts.root == str(home)
    assert settings.corpus.path == settings.queries.path == str(home / "collections" / "scifact")
    assert (settings.corpus.name, settings.queries.reader) == ("scifact", "beir")


def test_a_corpus_without_queries_has_none_and_is_named_after_its_file() -> None:
    settings = compose(["corpus=jsonl", "corpus.path=/data/my.notes.jsonl.gz"])
    assert (settings.queries.reader, settings.corpus.name) == ("none", "my")


def test_one_seed_for_all() -> None:
    assert compose(["seed=7"]).groups.seed == 7
    assert compose(["seed=7", "groups.seed=3"]).groups.seed == 3


@pytest.mark.parametrize("method", ["kmeans", "random"])
def test_groups_that_are_like_leiden_s_hold_leiden_s_values(method: str) -> None:
    assert compose([f"groups={method}"]).groups.like == compose([]).groups
    groups = compose([f"groups={method}", "groups.like.max_size=40", "seed=7"]).groups
    assert (groups.seed, groups.like) == (7, compose(["groups.max_size=40", "seed=7"]).groups)


# --- one home for every value -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", NODES, ids=lambda cls: cls.__name__)
def test_every_field_says_what_it_means_and_has_no_default(node: type) -> None:
    for each in dataclasses.fields(node):
        assert each.metadata["help"].strip(), f"{node.__name__}.{each.name}"
        assert each.default is each.default_factory is dataclasses.MISSING
        choices, kind = each.metadata["choices"], typing.get_type_hints(node)[each.name]
        assert not choices or kind is str
        assert kind not in (int, float) or each.metadata["minimum"] is not None or each.name == "missing"


@pytest.mark.parametrize("top", [f.name for f in dataclasses.fields(schema.Settings) if f.name != "overrides"])
def test_every_node_has_its_folder_and_every_root_key_its_line(top: str) -> None:
    root = yaml.safe_load((CONF / "config.yaml").read_text())
    assert ((CONF / top).is_dir() and any(top in line for line in root["defaults"] if isinstance(line, dict))) or top in root


def test_every_key_of_every_file_has_its_field() -> None:
    """`load` refuses unknown keys at any depth, so that a file that loads, as all do above, has no other keys."""
    for node in ("corpus", "loop", "cluster.knn"):
        with pytest.raises(BadConfig, match=rf"^{node}\.colour='red': expected one of the keys "):
            compose([f"+{node}.colour=red"])


def test_a_node_is_only_what_it_says_or_only_where() -> None:
    settings = compose([])
    for node in (settings.corpus, settings.embeddings, settings.reranker):
        assert schema.identity(node) | schema.places(node) == dataclasses.asdict(node)
    assert set(schema.places(settings.embeddings)) == {"model", "sha256"}


# --- mistakes ---------------------------------------------------------------------------------------------------------

MISTAKES = [
    (["graph.kk=3"], "graph.kk=3: expected one of the keys method, k, .*Did you mean graph.k?"),
    (["+graph.kk=3"], "graph.kk=3: expected one of the keys method, k, .*Did you mean graph.k?"),
    (["embedings=minilm"], "embedings='minilm': expected one of the keys artifacts, .*Did you mean embeddings?"),
    (["graph.k=abc"], "graph.k='abc': expected a value of type int."),
    (["graph.k=1.5"], "graph.k=1.5: expected a value of type int."),
    (["graph.k=true"], "graph.k=True: expected a value of type int."),
    (["cluster.in_process=1"], "cluster.in_process=1: expected a value of type bool."),
    (["graph.k=null"], "graph.k=None: expected a value of type int."),
    (["graph.k=0"], "graph.k=0: expected a value from 1 to 1024."),
    (["loop.budget=0"], "loop.budget=0: expected a value from 1."),
    (["loop.p=1.1"], "loop.p=1.1: expected a value from 0.0 to 1.0."),
    (["loop.p=nan"], "loop.p=nan: expected a value from 0.0 to 1.0."),
    (["loop.alpha=inf"], "loop.alpha=inf: expected a value from 0.0."),
    (["loop.eligible=all"], "loop.eligible='all': expected one of 'candidates', 'all_scored'."),
    (["++loop.method=slow"], "loop.method='slow': expected one of garen, .*bm25. Choose a file of conf/loop/, for example loop="),
    (["groups.weights=cosine"], "groups.weights='cosine': expected one of 'none', 'similarity'."),
    (["groups=kmeans", "groups.like.max_size=1"], "groups.like.max_size=1: expected a value from 2."),
    (["groups=random", "groups.like.k=1"], "groups.like.k=1: expected one of the keys method, max_size, .*Remove it."),
    (["loop.h=20"], "loop.h=20: expected less than loop.w=20."),
    (["loop=retrieve_and_rerank", "loop.w=5"], "loop.h=10: expected less than loop.w=5."),
    (["summaries.min_sentences=9"], "summaries.min_sentences=9: expected at most summaries.max_sentences=8."),
    (["embeddings=onnx"], "embeddings.model='???': expected a value. Give one on the command line: embeddings.model="),
    (["corpus=beir"], "corpus.path='???': expected a value."),
    (["artifacts.root=here"], "artifacts.root='here': expected an absolute path. Set it, or the environment variable GAREN_HOME."),
    (["corpus.name=a/b"], "corpus.name='a/b': expected a folder name."),
    (["corpus.name=.."], "corpus.name='..': expected a folder name."),
    (["metrics.measures=map"], r"metrics.measures='map': expected a list. Write metrics.measures=\[a,b\]."),
    (["metrics.measures=[map,[x]]"], r"metrics.measures\[1\]=\['x'\]: expected a value of type str."),
    (["~graph.k"], "graph.k=None: expected a value."),
]  # fmt: skip


@functools.cache
def usual() -> DictConfig:
    with initialize_config_module("conf", version_base="1.3"):
        return hydra_compose("config")


def loaded(overrides: list[str]) -> schema.Settings:
    """The usual configuration with other values: as `compose`, without Hydra's quarter of a second."""
    cfg = copy.deepcopy(usual())
    for override in OverridesParser.create().parse_overrides(overrides):
        OmegaConf.update(cfg, override.key_or_group, override.value(), force_add=True)
    return load(cfg)


@pytest.mark.parametrize(("overrides", "message"), MISTAKES, ids=lambda given: given[0] if isinstance(given, list) else "")
def test_a_mistake_is_named_with_value_expectation_and_remedy(overrides: list[str], message: str) -> None:
    nodes = {override.partition("=")[0] for override in overrides} & set(OPTIONS)
    make = compose if nodes or overrides[0][0] in "+~" or "Did you mean" in message else loaded
    with pytest.raises(BadConfig, match="^" + message.replace("?", r"\?")):
        make(overrides)


def test_a_number_may_be_a_name() -> None:
    assert compose(["corpus=jsonl", "corpus.path=/data/x.jsonl", "corpus.id=1", "corpus.name=2024"]).corpus.name == "2024"


PATHS = ["/a=b", "/a,b", "/été/日本", "~/x", "/it's", '/say "no"', "/a(b)", "/a#b", "2024"]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_needs_no_quotes_of_its_own(path: str) -> None:
    given = quoted(["corpus=folder", f"corpus.path={path}"])
    assert compose(given).corpus.path == path and quoted(given) == given


def test_what_hydra_reads_is_left_as_it_is() -> None:
    overrides = ["metrics.measures=[map,ndcg_cut_10]", "graph.k=3", "~graph.k", "+graph.kk=1", "corpus.path=/a b", "graph.k", "k="]
    assert quoted(overrides) == overrides


@pytest.mark.parametrize(
    ("path", "name"),
    [(".", "here"), ("x/..", "here"), (".notes", "notes"), ("a.b.jsonl", "a"), ("'2024'", "2024"), ("2024", "2024")],
)
def test_a_corpus_is_named_after_its_path(path: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert compose(["corpus=folder", f"corpus.path={path}"]).corpus.name == name


def test_a_machine_without_a_home_needs_only_ours(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    assert compose().artifacts.root == str(home)
    monkeypatch.delenv("GAREN_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    with pytest.raises(BadConfig, match="artifacts.root='~/.local/share/garen': expected an absolute path"):
        compose()


def test_several_mistakes_in_unknown_keys_still_end() -> None:
    with pytest.raises(BadConfig, match="Did you mean graph.k"):
        compose(["graph.kk=3", "loop.ww=4"])


def test_an_unknown_file_lists_the_known_ones() -> None:
    with pytest.raises(HydraException, match="(?s)Could not find 'lexicon/french'.*english.*plain"):
        compose(["lexicon=french"])


def test_composing_inside_a_running_job_leaves_its_hydra_alone() -> None:
    with initialize_config_module("conf", version_base="1.3"):
        outer = GlobalHydra.instance().hydra
        compose(["loop=bm25"])
        with pytest.raises(BadConfig):
            compose(["graph.kk=1"])
        assert GlobalHydra.instance().hydra is outer


# --- the same through a job -------------------------------------------------------------------------------------------


def test_paths_become_absolute_here_and_are_refused_in_a_submitted_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    overrides = [
        "corpus=jsonl",
        "corpus.path=notes.jsonl",
        "queries=jsonl",
        "queries.path=q.jsonl",
        "artifacts.root=/somewhere",
    ]
    settings = session.on_this_machine(compose(overrides), False)
    assert (settings.corpus.path, settings.queries.path) == (str(tmp_path / "notes.jsonl"), str(tmp_path / "q.jsonl"))
    assert (settings.embeddings.model, settings.ask) == ("minilm", "-")
    at_home = session.on_this_machine(compose(quoted(["corpus=jsonl", "corpus.path=~/notes.jsonl"])), False)
    assert at_home.corpus.path == str(Path.home() / "notes.jsonl")
    with pytest.raises(BadConfig, match="corpus.path='notes.jsonl': expected an absolute path in a submitted job"):
        session.on_this_machine(compose(overrides), True)


def test_a_plan_says_so_and_makes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "x.jsonl").write_text('{"id": "1", "text": "one"}\n')
    settings = compose(["corpus=jsonl", f"corpus.path={home}/x.jsonl", "plan=true"])

    def make(*_: object) -> dict[str, int]:
        raise AssertionError("a plan makes nothing")

    address = building.build(settings, "corpus", make)
    assert f"corpus: would build {address.folder}" in capsys.readouterr().out
    assert not address.built and not address.partial.exists()


def test_too_little_room_is_refused_before_anything_is_made(home: Path) -> None:
    (home / "x.jsonl").write_text('{"id": "1", "text": "one"}\n')
    settings = compose(["corpus=jsonl", f"corpus.path={home}/x.jsonl"])
    for what in ("disk", "memory"):
        with pytest.raises(BadConfig, match=f"free {what}='.* MiB': expected 1,000,000,000,000 MiB"):
            building.build(settings, "corpus", lambda *_: {}, ray=False, needs={what: 1e12})


@pytest.mark.parametrize("root", ["file", "file/below"])
def test_a_root_that_cannot_hold_anything_is_named(root: str, home: Path) -> None:
    (home / "file").write_text("")
    (home / "x.jsonl").write_text('{"id": "1", "text": "one"}\n')
    settings = compose(["corpus=jsonl", f"corpus.path={home}/x.jsonl", f"artifacts.root={home / root}"])
    with pytest.raises(BadConfig, match=f"artifacts.root='{home / root}': expected a folder that can be written to"):
        building.build(settings, "corpus", lambda *_: {}, ray=False)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), BrokenPipeError(), NotADirectoryError("x")])
def test_the_machine_s_errors_end_a_job_without_a_trace(
    error: OSError, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session.os, "dup2", lambda *_: None)
    with pytest.raises(SystemExit) as end, session.reported():
        raise error
    assert end.value.code == 2 and capfd.readouterr().err.startswith("\ngaren: ")


@pytest.mark.parametrize(("asked", "message"), [(b"\xff\xfe", "a question in UTF-8. Byte 0"), (b" \n", "a question. It is empty")])
def test_a_question_that_is_none(asked: bytes, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "q").write_bytes(asked)
    with pytest.raises(BadConfig, match=f"ask='{tmp_path}/q': expected {message}"):
        read_question(str(tmp_path / "q"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(asked), "ascii", "surrogateescape"))
    with pytest.raises(BadConfig, match=f"ask='-': expected {message}"):
        read_question("-")
    monkeypatch.setattr(sys, "stdin", None)  # it was closed
    with pytest.raises(BadConfig, match="ask='-': expected a question. It is empty"):
        read_question("-")


def test_a_job_s_last_line_is_the_message_and_its_status_is_2(home: Path) -> None:
    """The one test that pays for a real command line."""
    command = [sys.executable, "-m", "jobs.score_run", "graph.kk=3"]
    done = subprocess.run(command, cwd=CONF.parent, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("\ngaren: graph.kk=3: expected one of the keys method, k, ")
    assert done.stderr.endswith(". Did you mean graph.k?\n")
    assert done.stdout == ""


def test_the_command_line_s_own_words_for_an_unknown_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["jobs.search", "corpus=nope"])
    with pytest.raises(SystemExit) as end:
        session.job(lambda settings: None)()
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert "Could not find 'corpus/nope'" in message and "scifact" in message and "python_docs" in message


# --- models and prompts -----------------------------------------------------------------------------------------------

MODELS = sorted(path.stem for path in (CONF / "model").glob("*.yaml"))
PROMPT_OF = {
    "reranker": ("listwise", "reranker_plain", "Rank {documents} for {query}."),
    "navigator": ("pointwise", "navigator", "Does {document} help with {query}?"),
    "summaries": ("llm", "summarizer", "Describe {documents}."),
}


@pytest.mark.parametrize("turn", range(-(-len(MODELS) // 3)))
def test_every_model_fits_every_node_that_asks_one(turn: int) -> None:
    nodes = {"reranker": "listwise", "navigator": "pointwise", "summaries": "llm"}
    chosen = {node: MODELS[(turn * 3 + i) % len(MODELS)] for i, node in enumerate(nodes)}
    embeddings = OPTIONS["embeddings"][turn % len(OPTIONS["embeddings"])]
    overrides = [f"{node}={file}" for node, file in nodes.items()] + [f"model@{node}.model={m}" for node, m in chosen.items()]
    overrides += [f"{node}.model.name=mine" for node, model in chosen.items() if model == "openai"]
    overrides += ["corpus=synthetic"] if embeddings == "synthetic" else []
    settings = compose([*overrides, f"embeddings={embeddings}", *GIVEN.get(("embeddings", embeddings), [])])
    for node, name in chosen.items():
        model, written = getattr(settings, node).model, yaml.safe_load((CONF / "model" / f"{name}.yaml").read_text())["name"]
        assert model.name == {"???": "mine"}.get(written, written.replace("${artifacts.root}", settings.artifacts.root))
        assert isinstance(model, schema.OpenAIModel) == (name in ("openai", "gpt_4o_mini"))
    assert isinstance(settings.embeddings, schema.OnnxEmbeddings) == (embeddings in ("minilm", "onnx"))


def test_an_endpoint_s_model_needs_a_name() -> None:
    with pytest.raises(BadConfig, match=r"^reranker\.model\.name='\?\?\?': expected a value"):
        compose(["reranker=listwise", "model@reranker.model=openai"])


def test_the_paper_s_experiment() -> None:
    settings = compose(["experiment=paper"])
    reranker, navigator, summaries, embeddings = settings.reranker, settings.navigator, settings.summaries, settings.embeddings
    assert isinstance(reranker, schema.ListwiseReranker) and reranker.model.name.startswith("Qwen/Qwen3-Next-80B-A3B")
    assert isinstance(navigator, schema.PointwiseJudge) and navigator.model.name == "Qwen/Qwen3-Reranker-4B"
    assert isinstance(summaries, schema.LlmSummaries) and summaries.model == reranker.model
    assert isinstance(embeddings, schema.ModelEmbeddings) and embeddings.model.name == "Qwen/Qwen3-Embedding-4B"
    reasoning = compose(["experiment=paper", "reranker=listwise_reasoning", "loop.p=0.5", "run_seed=3"])
    assert isinstance(reasoning.reranker, schema.ListwiseReranker) and isinstance(reasoning.loop, schema.GarenLoop)
    assert (reasoning.reranker.least, reasoning.reranker.seed, reasoning.loop.p) == (10, 3, 0.5)
    assert "[Reasoning Trace]" in reasoning.reranker.prompt["system"]


def test_a_prompt_is_loaded_into_its_node_by_name_and_by_path(tmp_path: Path) -> None:
    own = []
    for node, (file, _, text) in PROMPT_OF.items():
        (tmp_path / f"{node}.txt").write_text(f"A note.\r\n--- user\r\n\r\n{text}\r\n")
        own += [f"{node}={file}", f"{node}.prompt={tmp_path}/{node}.txt"]
    named, by_path = compose(own[::2]), compose(own)
    for node, (_, name, text) in PROMPT_OF.items():
        (form,) = (f.metadata["prompt"] for f in dataclasses.fields(getattr(named, node)) if f.name == "prompt")
        assert getattr(named, node).prompt == templates.parse((CONF / "prompts" / f"{name}.txt").read_text(), form)
        assert getattr(by_path, node).prompt == {"user": text}
        assert schema.identity(getattr(by_path, node))["prompt"] == {"user": text}, "what it says counts, not where it lies"


BROKEN = {
    b"--- user\nRank {documents}.": r"the field \{query\} is missing: a listwise template shows the model documents, query",
    b"--- user\n{documents} {query} {colour}": r"the field \{colour\} is not known",
    b"--- users\n{documents} {query}": "the line '--- users': expected one of system, user, instruct",
    b"{documents} {query}": r"the parts \[\]: a listwise template has a user part",
    b"--- system\n\n--- user\n{documents} {query}": "the part 'system' is empty",
    b"--- user\n{documents} {query} \xff": "can't decode byte 0xff",
}


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: str(len(text)))
def test_a_broken_template_is_named_with_its_key_and_file(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(text)
    said = rf"^reranker\.prompt='{path}': expected a template that can be used; {path}: .*{BROKEN[text]}.* Mend the file\.$"
    with pytest.raises(BadConfig, match=said):
        load_prompt(str(path), "reranker.prompt", "listwise")


@pytest.mark.parametrize("name", ["no_such_prompt", "prompts/reranker_plain.txt", "/no/such/file.txt"])
def test_a_prompt_that_is_not_there_lists_those_that_are(name: str) -> None:
    with pytest.raises(BadConfig, match=rf"^summaries\.parts_prompt='{name}': expected a file of conf/prompts \(.*summarizer_p"):
        compose(["summaries=llm", f"summaries.parts_prompt={name}"])


def test_a_broken_template_ends_a_job_with_that_message(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("--- user\nOnly {query}.")
    with pytest.raises(BadConfig, match=rf"^navigator\.prompt='{tmp_path}/mine\.txt': .*the field \{{document\}} is missing"):
        compose(["navigator=pointwise", f"navigator.prompt={tmp_path}/mine.txt"])
