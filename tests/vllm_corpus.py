"""A hundred short documents for tests with real models, and three questions about them."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

MODULES = ("statistics", "textwrap", "shutil", "bisect", "heapq", "random", "fnmatch", "glob", "calendar", "colorsys", "copy")
QUESTIONS = {
    "q1": ("find the middle value of some numbers", ["statistics.median"]),
    "q2": ("wrap a paragraph so that its lines fit a width", ["textwrap.wrap", "textwrap.fill"]),
    "q3": ("how much room is left on a disk", ["shutil.disk_usage"]),
}


def write(folder: Path, documents: int = 100) -> list[str]:
    """Write documents, questions and judgements below `folder`; returns the overrides that read them."""
    found: dict[str, str] = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for member, thing in sorted(vars(module).items()):
            text = inspect.getdoc(thing) if callable(thing) and not member.startswith("_") else None
            if text and getattr(thing, "__module__", "") == name:
                found[f"{name}.{member}"] = f"{member}: {text}"
    kept = list(found.items())[:documents]
    assert len(kept) == documents, f"this Python has {len(kept)} such docstrings"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in kept))
    (folder / "queries.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, (t, _) in QUESTIONS.items()))
    judged = "".join(f"{query}\t{doc}\t1\n" for query, (_, docs) in QUESTIONS.items() for doc in docs)
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    paths = [f"corpus.path={folder}/corpus.jsonl", f"queries.path={folder}/queries.jsonl", f"queries.qrels={folder}/qrels.tsv"]
    return ["corpus=jsonl", "corpus.name=docstrings", "queries=jsonl", *paths]
