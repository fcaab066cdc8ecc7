"""What an approximate graph is made of on the way, in the folder `work` of its draft: arrays by position of the lists, made in
blocks that resume and joined so that the next step reads them memory-mapped; and `recall.json`, which stays: the steps and the
recall after each.

`places`: int32 [N] the position of every row. `equals`: leaders and following int32 [N]. `probes-<p>`: positions int32 and scores
float32 [N, K] after the join with p lists, probed int32 [N, p]. `probes-<p>-pass-<n>`: backward int32 [N, hubs], positions and
scores after that pass. `sample`: exact int32 [S, k], the true neighbours of sampled rows.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors.artifacts.blocks import blocks_of, forget_torn, join_blocks, missing_spans, open_array, save_block, write_bytes

WORK = "work"
RECALL = "recall.json"
Spans = list[tuple[int, int]]


@dataclass(frozen=True)
class Arrays:
    """Arrays of as many rows that are made together. The last name marks a block, and all of them, as done."""

    folder: Path
    names: tuple[str, ...]

    def save(self, first: int, *blocks: NDArray[Any]) -> None:
        """Keep the rows that begin at `first`, of every array."""
        for name, block in zip(self.names, blocks, strict=True):
            save_block(self.folder / "blocks", name, first, block)

    def missing(self, rows: int) -> Spans:
        """The spans of rows that are not on disk yet, as long as they are."""
        return [] if self._whole(self.names[-1]).exists() else missing_spans(self.folder / "blocks", self.names[-1], rows, rows)

    def join(self, rows: int) -> None:
        """Make one file of each array's blocks and remove them. May be killed and called again at any moment."""
        blocks = self.folder / "blocks"
        if not self._whole(self.names[-1]).exists():
            forget_torn(blocks, self.names)
            for name in self.names:
                one = next((np.load(path, mmap_mode="r") for path in blocks_of(blocks, name).values()), np.empty(0))
                join_blocks(blocks, name, self._whole(name), (rows, *one.shape[1:]), one.dtype.str)
        shutil.rmtree(blocks, ignore_errors=True)

    def open(self, *names: str) -> list[NDArray[Any]]:
        """Some of them, memory-mapped, once they are joined."""
        return [open_array(self._whole(name)) for name in names]

    def remove(self, *names: str) -> None:
        """Remove some of them."""
        for name in names:
            self._whole(name).unlink(missing_ok=True)

    def _whole(self, name: str) -> Path:
        return self.folder / f"{name}.npy"


@dataclass(frozen=True)
class Step:
    """One step of the making: a join with so many probes, or (passes > 0) that pass after it. recall: of the sample, after it."""

    probes: int
    passes: int
    recall: float


class Candidates:
    """The arrays of one draft."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def equals(self) -> Arrays:
        return Arrays(self._folder / WORK / "equals", ("leaders", "following"))

    @property
    def places(self) -> Arrays:
        return Arrays(self._folder / WORK / "places", ("places",))

    @property
    def sample(self) -> Arrays:
        return Arrays(self._folder / WORK / "sample", ("exact",))

    def near(self, probes: int, passes: int) -> Arrays:
        """What a step makes."""
        names = ("positions", "scores") if passes else ("probed", "positions", "scores")
        return Arrays(self._step(probes, passes) / "near", names)

    def backward(self, probes: int, passes: int) -> Arrays:
        """What is made for a pass."""
        return Arrays(self._step(probes, passes) / "backward", ("backward",))

    def steps(self) -> list[Step]:
        """The steps that are finished and measured."""
        path = self._folder / RECALL
        return [Step(**step) for step in json.loads(path.read_text())] if path.exists() else []

    def add(self, step: Step) -> None:
        """Count a step as finished, and remove what only the step before it needed."""
        steps = self.steps()
        write_bytes(self._folder / RECALL, json.dumps([vars(s) for s in [*steps, step]], indent=1).encode() + b"\n")
        shutil.rmtree(self.backward(step.probes, step.passes).folder, ignore_errors=True)
        for last in steps[-1:]:
            self.near(last.probes, last.passes).remove("positions", "scores")
            if step.passes == 0:
                self.near(last.probes, 0).remove("probed")

    def remove(self) -> None:
        """Remove all but the recall."""
        shutil.rmtree(self._folder / WORK, ignore_errors=True)

    def _step(self, probes: int, passes: int) -> Path:
        return self._folder / WORK / (f"probes-{probes}" + (f"-pass-{passes}" if passes else ""))
