"""How many groups may have a stand-in for a model's description."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actors.artifacts import summaries as summary_files
from actors.artifacts.summaries import Summary
from jobs.build_summaries import STAND_IN, _check_stand_ins


def part(folder: Path, first: int, *outcomes: str) -> None:
    summaries = [Summary(first + i, "concept", "summary", (0,), outcome) for i, outcome in enumerate(outcomes)]
    summary_files.write_part(folder, summaries, np.ones((len(outcomes), 2), np.float32))


def test_more_stand_ins_than_allowed_stop_the_job_and_only_their_parts_are_made_again(tmp_path: Path) -> None:
    part(tmp_path, 0, "ok", "repaired")
    part(tmp_path, 2, "ok", STAND_IN)
    part(tmp_path, 4, STAND_IN, "ok")
    _check_stand_ins(tmp_path, 2.0)
    assert summary_files.missing_parts(tmp_path, 6, 2) == []
    with pytest.raises(ValueError, match=r"2 groups got no answer that can be used, expected at most 1 .*run the job again"):
        _check_stand_ins(tmp_path, 1.9)
    assert summary_files.missing_parts(tmp_path, 6, 2) == [(2, 4), (4, 6)]
