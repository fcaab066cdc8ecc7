"""What `--help` prints: what the job does, the values that enter it with their meaning, the nodes and files, three commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import conf
from conf import schema
from conf.load import compose
from jobs.stages import STAGES

CONF = Path(conf.__file__).parent
KINDS = {"run_queries": "run", "score_run": "metrics"}  # jobs whose artifact is not named by their last word
ROOT = {
    "artifacts.root": "where everything is kept; the environment variable GAREN_HOME sets it",
    "artifacts.collections": "where the named collections lie; GAREN_COLLECTIONS sets it",
    "seed": "of everything random",
    "plan": "true: say what would be built, and where, and stop",
    "ask": "jobs.search: the file that holds the question; -: standard input",
    "query_id": "jobs.show_trace: the query whose path is shown",
    "do": "jobs.artifacts: list or prune",
}
END = """
A file of a node is chosen with node=file, a value set with node.key=value. The nodes and their files:

{nodes}

Three commands:
  python -m jobs.build_index corpus=folder corpus.path=/home/me/notes
  echo "why does my nested list change" | python -m jobs.search
  python -m jobs.run_queries corpus=beir corpus.path=/data/nfcorpus loop=garen loop.budget=50

--cfg job prints the whole composed configuration. A job that is started again goes on from what is finished."""


def text(job: str, what: str, overrides: Sequence[str]) -> str:
    """The help of a job: `what` is its docstring; the values are those that these overrides give."""
    settings = compose(overrides)
    kind = KINDS.get(job, job.rpartition("_")[2])
    nodes = STAGES[kind].nodes if kind in STAGES and STAGES[kind].nodes else tuple(n for s in STAGES.values() for n in s.nodes)
    lines = [line for name in dict.fromkeys((*nodes, "cluster")) for line in _values(name, getattr(settings, name))]
    lines += [(f"{key} = {_at(settings, key)}", meaning) for key, meaning in ROOT.items()]
    width = max(len(value) for value, _ in lines if len(value) < 48)
    table = "\n".join(f"  {value:<{width}}  {meaning}" for value, meaning in lines)
    return f"{what.strip()}\n\nValues that enter it, as they are now:\n\n{table}\n{END.format(nodes=_nodes())}"


def _values(key: str, node: Any) -> list[tuple[str, str]]:
    lines = []
    for field in dataclasses.fields(node):
        value, name = getattr(node, field.name), f"{key}.{field.name}"
        if dataclasses.is_dataclass(value):
            lines += _values(name, value)
        else:
            lines.append((f"{name} = {value}", field.metadata["help"] + _range(field.metadata)))
    return lines


def _range(limits: Any) -> str:
    low, high, choices = limits["minimum"], limits["maximum"], limits["choices"]
    if len(choices) > 1:
        return f" ({' | '.join(c or 'empty' for c in choices)})"
    return "" if low is None else f" ({low:g} or more)" if high is None else f" ({low:g} to {high:g})"


def _at(settings: schema.Settings, key: str) -> object:
    value: object = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _nodes() -> str:
    folders = sorted(p for p in CONF.iterdir() if any(p.glob("*.yaml")))
    return "\n".join(f"  {folder.name:<13} {', '.join(sorted(p.stem for p in folder.glob('*.yaml')))}" for folder in folders)
