"""A comparison of methods: its table in three formats, every query's values, and where the runs lie.

`table.csv` (one line per collection, method and measure), `table.md`, `table.tex`, `per_query.parquet` (collection, method, seed,
query_id, measure, value), `runs.json` (collection, method, seed, and the folders of run, metrics, index and queries below the
artifacts' root).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from actors.artifacts.store import write_text

PER_QUERY = pa.schema(
    [("collection", pa.string()), ("method", pa.string()), ("seed", pa.int64()), ("query_id", pa.string())]
    + [("measure", pa.string()), ("value", pa.float64())]
)
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]  # title, head, lines


def write(
    folder: Path,
    lines: Sequence[Mapping[str, Any]],
    tables: Iterable[Table],
    per_query: Sequence[Mapping[str, Any]],
    runs: Sequence[Mapping[str, Any]],
) -> None:
    """lines: the long table, equal keys in all. tables: the same for reading. per_query, runs: see the module."""
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    tables = list(tables)
    write_text(folder / "table.md", "\n".join(map(markdown, tables)))
    write_text(folder / "table.tex", "\n".join(map(latex, tables)))
    pq.write_table(pa.Table.from_pylist(list(per_query), schema=PER_QUERY), folder / "per_query.parquet")
    write_text(folder / "runs.json", json.dumps(list(runs), indent=1) + "\n")


def open_runs(folder: Path) -> list[dict[str, Any]]:
    """One mapping per run."""
    runs: list[dict[str, Any]] = json.loads((folder / "runs.json").read_text())
    return runs


def open_per_query(folder: Path) -> list[dict[str, Any]]:
    """One mapping per run, query and measure."""
    values: list[dict[str, Any]] = pq.read_table(folder / "per_query.parquet").to_pylist()
    return values


def markdown(table: Table) -> str:
    """A pipe table under its title."""
    title, head, lines = table
    rule = ["---", *["---:"] * (len(head) - 1)]
    rows = [[cell.replace("|", "\\|") for cell in row] for row in (head, rule, *lines)]
    return f"### {title}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def latex(table: Table) -> str:
    """A booktabs table with its title as the caption."""
    title, head, lines = table
    body = "".join(" & ".join(map(_escaped, line)) + r" \\" + "\n" for line in lines)
    return (
        "\\begin{table}\n\\caption{" + _escaped(title) + "}\n\\begin{tabular}{l" + "r" * (len(head) - 1) + "}\n\\toprule\n"
        + " & ".join(map(_escaped, head)) + " \\\\\n\\midrule\n" + body + "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )  # fmt: skip


def _escaped(text: str) -> str:
    named = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "|": "bar", "<": "less", ">": "greater"}
    special = {c: f"\\{c}" for c in "&%$#_{}"} | {c: f"\\text{name}{{}}" for c, name in named.items()} | {"±": r"$\pm$"}
    return "".join(special.get(c, c) for c in text)
