"""A small comparison as CSV, Markdown and LaTeX, with every character that means something there, and back from disk."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from actors.artifacts import comparison
from actors.artifacts.comparison import latex, markdown

TABLE = (
    "ndcg_cut_10 (100% of it)",
    ["method", "sci|fact", "mean"],
    [["retrieve_and_rerank", "0.661 ±0.010*", "0.661"], ["a|b", "0.600", "0.600"]],
)
LINES = [
    {"collection": "sci|fact", "measure": "ndcg_cut_10", "method": "retrieve_and_rerank", "mean": 0.661, "significant": True},
    {"collection": "sci|fact", "measure": "ndcg_cut_10", "method": 'a, "b"', "mean": 0.1 + 0.2, "significant": False},
]
PER_QUERY = [
    {"collection": "c", "method": method, "seed": seed, "query_id": "Über 1", "measure": "map", "value": 0.1 + seed}
    for method in ("garen", "gar")
    for seed in (0, 2**40)
]
RUNS = [{"collection": "c", "method": "garen", "seed": 0, "run": "c/run-é", "metrics": "c/metrics-1"}]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    comparison.write(tmp_path, LINES, iter([TABLE, ("cost", ["method"], [["gar"]])]), PER_QUERY, RUNS)
    return tmp_path


def test_markdown() -> None:
    assert markdown(TABLE) == (
        "### ndcg_cut_10 (100% of it)\n"
        "\n"
        "| method | sci\\|fact | mean |\n"
        "| --- | ---: | ---: |\n"
        "| retrieve_and_rerank | 0.661 ±0.010* | 0.661 |\n"
        "| a\\|b | 0.600 | 0.600 |\n"
    )


def test_latex() -> None:
    assert latex(TABLE) == (
        "\\begin{table}\n"
        "\\caption{ndcg\\_cut\\_10 (100\\% of it)}\n"
        "\\begin{tabular}{lrr}\n"
        "\\toprule\n"
        "method & sci\\textbar{}fact & mean \\\\\n"
        "\\midrule\n"
        "retrieve\\_and\\_rerank & 0.661 $\\pm$0.010* & 0.661 \\\\\n"
        "a\\textbar{}b & 0.600 & 0.600 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
        "\\end{table}\n"
    )


def test_every_character_that_latex_reads_is_written_out() -> None:
    body = latex(("t", ["m"], [[r"a_b & 5% #1 {x} \y ~ ^ $ < > |"]])).splitlines()[6]
    assert body == (
        r"a\_b \& 5\% \#1 \{x\} \textbackslash{}y \textasciitilde{} \textasciicircum{} \$ \textless{} \textgreater{} \textbar{} \\"
    )


def test_the_long_table_is_read_back_by_a_csv_reader(written: Path) -> None:
    found = list(csv.DictReader((written / "table.csv").open(encoding="utf-8", newline="")))
    assert list(found[0]) == list(LINES[0])
    assert found == [{name: str(value) for name, value in line.items()} for line in LINES]
    assert float(found[1]["mean"]) == 0.1 + 0.2, "no digit is lost"


def test_tables_for_reading_follow_each_other(written: Path) -> None:
    assert (written / "table.md").read_text(encoding="utf-8") == markdown(TABLE) + "\n### cost\n\n| method |\n| --- |\n| gar |\n"
    assert (written / "table.tex").read_text(encoding="utf-8").count("\\begin{tabular}") == 2


def test_runs_and_values_of_queries_come_back(written: Path) -> None:
    assert comparison.open_runs(written) == RUNS
    assert comparison.open_per_query(written) == PER_QUERY
    files = ["per_query.parquet", "runs.json", "table.csv", "table.md", "table.tex"]
    assert sorted(p.name for p in written.iterdir()) == files
