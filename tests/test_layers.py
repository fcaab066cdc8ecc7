"""The rules that keep the house in order: who may import whom, what stays pure, and that importing does nothing."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for top in ("conf", "jobs", "actors")
    for path in sorted((ROOT / top).rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}

# What each part of the house may import of the house. A module belongs to the longest prefix of its name.
MAY_IMPORT = {
    "conf": ("conf",),
    "conf.schema": ("conf.schema",),
    "actors": ("conf.schema", "actors"),
    "actors.algorithms": ("actors.algorithms",),
    "actors.artifacts": ("actors.artifacts",),
    "actors.corpora": ("conf.schema", "actors.corpora", "actors.algorithms"),
    "actors.engines": ("conf.schema", "actors.engines", "actors.algorithms", "actors.corpora.records", "actors.corpora.brought"),
    "actors.judges": (
        "conf.schema",
        "actors.judges",
        "actors.engines",
        "actors.algorithms",
        "actors.artifacts",
        "actors.corpora.records",  # BadInput
        "actors.index",
    ),
    "jobs": ("conf", "jobs", "actors"),
}
CONFIGURATION = {"hydra", "omegaconf"}
NEVER = {
    "conf": {"ray", "torch"},
    "conf.schema": CONFIGURATION | {"ray", "torch", "numpy"},
    "actors": CONFIGURATION,
    "actors.algorithms": CONFIGURATION
    | {"ray", "torch", "os", "io", "pathlib", "shutil", "tempfile", "time", "datetime", "secrets"},
    "actors.artifacts": CONFIGURATION | {"ray", "torch"},
    "actors.corpora": CONFIGURATION | {"ray", "torch"},
    "jobs": {"torch"},
}
NOT_PURE = {"open", "input", "print", "exec", "eval"}
SEEDED = {
    "Random",
    "Generator",
    "SeedSequence",
    "default_rng",
    "PCG64",
    "Philox",
}  # random numbers of which the seed is an argument

JOBS = {
    name for name, tree in TREES.items() if name.startswith("jobs.") and "main = session.job(run)" in map(ast.unparse, tree.body)
}
MAY_COMPOSE = {  # job -> the jobs whose `run` it may call; None: any
    "jobs.build_index": None,
    "jobs.quickstart": None,
    "jobs.compare_methods": None,
    "jobs.run_queries": {"jobs.build_queries"},
    "jobs.build_graph": {"jobs.build_lists"},  # for a corpus that is large
}
LONG = {"jobs.session"}  # how every job starts and ends
LINES = 140


def part(table: dict, module: str):
    """The entry of a module's longest prefix."""
    return table[max((p for p in table if f"{module}.".startswith(f"{p}.")), key=len)]


def imports(tree: ast.AST) -> Iterator[str]:
    """Full names of everything that is imported, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_below(name: str, places: tuple[str, ...] | set[str]) -> bool:
    return any(f"{name}.".startswith(f"{place}.") for place in places)


def dotted(node: ast.AST) -> str:
    """`a.b.c` of an attribute; empty for anything else."""
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""


@pytest.mark.parametrize("module", TREES)
def test_imports_run_one_way(module: str) -> None:
    ours = [name for name in imports(TREES[module]) if name.split(".")[0] in ("conf", "jobs", "actors")]
    assert [name for name in ours if not is_below(name, part(MAY_IMPORT, module))] == []
    assert [name for name in imports(TREES[module]) if name.split(".")[0] in part(NEVER, module)] == []


@pytest.mark.parametrize("module", [name for name in TREES if name.startswith("actors.algorithms")])
def test_algorithms_are_pure(module: str) -> None:
    """No files, no clock, no environment, and no random number but from a seed that is an argument."""
    calls = [dotted(node.func) for node in ast.walk(TREES[module]) if isinstance(node, ast.Call)]
    assert [call for call in calls if call in NOT_PURE] == []
    random = [call for call in calls if call.startswith(("random.", "np.random.", "numpy.random."))]
    assert [call for call in random if call.split(".")[-1] not in SEEDED] == []
    unseeded = [
        n for n in ast.walk(TREES[module]) if isinstance(n, ast.Call) and dotted(n.func).split(".")[-1] in SEEDED and not n.args
    ]
    assert unseeded == [], "a generator without a seed"


def test_what_counts_as_a_job() -> None:
    assert {name for name in TREES if name.startswith("jobs.") and '"__main__"' in FILES[name].read_text()} == JOBS
    assert {"jobs.build_index", "jobs.run_queries", "jobs.score_run", "jobs.search"} <= JOBS
    scripts = (ROOT / "pyproject.toml").read_text()
    assert [job for job in JOBS if f'"{job}:main"' not in scripts and "bench" not in job] == [], "[project.scripts] lacks a job"


@pytest.mark.parametrize("module", [name for name in TREES if name.startswith("jobs.")])
def test_jobs_meet_on_disk(module: str) -> None:
    """Only the composing jobs call others, and only their `run`."""
    others = {name for name in imports(TREES[module]) if is_below(name, JOBS)}
    allowed = MAY_COMPOSE.get(module, set())
    assert others <= (JOBS if allowed is None else allowed)
    own = {name.split(".")[-1] for name in others}
    used = {dotted(n) for n in ast.walk(TREES[module]) if isinstance(n, ast.Attribute) and dotted(n).split(".")[0] in own}
    assert {name for name in used if name.split(".")[1] != "run"} == set()


@pytest.mark.parametrize("job", sorted(JOBS))
def test_a_job_is_short_and_says_what_it_reads_writes_and_costs(job: str) -> None:
    text = ast.get_docstring(TREES[job]) or ""
    assert "Reads:" in text and "Writes:" in text and "Cost:" in text
    assert f"python -m {job}" in text


@pytest.mark.parametrize("module", sorted(name for name in TREES if name.startswith("jobs.") and name not in LONG))
def test_jobs_are_thin(module: str) -> None:
    assert len(FILES[module].read_text().splitlines()) <= LINES


@pytest.mark.parametrize("module", TREES)
def test_a_module_only_defines(module: str) -> None:
    """Nothing at the top of a module but definitions, constants and the guarded call of a job's main."""
    allowed = (
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Assign,
        ast.AnnAssign,
    )
    for node in TREES[module].body:
        text = ast.unparse(node)
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        guarded = text.startswith(("if __name__ == '__main__':", "if TYPE_CHECKING:"))
        assert isinstance(node, allowed) or docstring or guarded, text


def test_importing_starts_nothing() -> None:
    """All modules in one fresh process: no thread, no file, no Ray session; and actors, on their own, do not even import Ray."""
    script = """
import importlib, json, sys, threading
heavy = ("ray", "torch", "hydra", "omegaconf", "onnxruntime", "vllm")
actors, others = json.loads(sys.argv[1])
for name in actors:
    importlib.import_module(name)
early = [name for name in heavy if name in sys.modules]
for name in others:
    importlib.import_module(name)
started = "ray" in sys.modules and sys.modules["ray"].is_initialized()
print(json.dumps([early, started, threading.active_count()]))
"""
    actors = [name for name in TREES if name.startswith("actors")]
    others = [name for name in TREES if not name.startswith("actors")]
    command = [sys.executable, "-c", script, json.dumps([actors, others])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[], False, 1]
