"""What a run is worth: `metrics.json` holds the mean and every query's value of each measure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actors.artifacts.store import write_text


def write(folder: Path, mean: Mapping[str, float], per_query: Mapping[str, Mapping[str, float]]) -> None:
    """mean: measure -> value. per_query: query_id -> measure -> value."""
    write_text(folder / "metrics.json", json.dumps({"mean": mean, "per_query": per_query}, indent=1, sort_keys=True) + "\n")


def open_metrics(folder: Path) -> dict[str, Any]:
    """The two mappings, under "mean" and "per_query"."""
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return metrics
