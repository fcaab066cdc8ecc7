"""What is drawn, read from the axes; and that a PNG lies there."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.algorithms.analysis import DistanceHits, HitByDistance, Setting, frontier as front
from jobs import plots

pytest.importorskip("matplotlib", reason="figures need matplotlib")

STYLES = plots.styles_of(["garen", "slidegar", "bm25"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "figure.png"


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def names(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_styles_differ_and_are_the_same_for_a_name() -> None:
    many = [f"method {i}" for i in range(28)]
    assert len(set(plots.styles_of(many).values())) == 28
    assert (
        len({(style.colour, style.line) for style in plots.styles_of(many).values()}) == 28
    )  # a line; with markers, without colour
    assert len({(style.marker, style.line) for style in plots.styles_of(many).values()}) == 28
    assert list(plots.styles_of(["b", "a", "b"])) == ["b", "a"]
    with pytest.raises(ValueError, match="29 methods, expected at most 28"):
        plots.styles_of([*many, "one more"])


def test_recall_is_a_line_per_method(path: Path) -> None:
    axes = plots.recall_by_iteration(path, {"slidegar": [0.25, 0.5], "garen": [0.25, 0.5, 0.75]}, STYLES, "simulated").axes[0]
    assert is_png(path)
    assert [line.get_xydata().tolist() for line in axes.lines] == [
        [[1, 0.25], [2, 0.5]],
        [[1, 0.25], [2, 0.5], [3, 0.75]],
    ]
    assert all(tick == int(tick) for tick in axes.get_xticks())
    assert [line.get_color() for line in axes.lines] == [STYLES["slidegar"].colour, STYLES["garen"].colour]
    assert (axes.get_title(), names(axes)) == ("Recall by iteration (simulated)", ["slidegar", "garen"])


def test_hits_are_a_bar_per_method_and_distance(path: Path) -> None:
    hits = {
        "garen": HitByDistance([DistanceHits(1, 4, 3), DistanceHits(2, 1, 1), DistanceHits(-1, 2, 1)], 5),
        "slidegar": HitByDistance([DistanceHits(1, 4, 1), DistanceHits(2, 1, 0), DistanceHits(-1, 2, 0)], 5),
    }
    axes = plots.hit_by_distance(path, hits, STYLES).axes[0]
    assert is_png(path)
    assert [[bar.get_height() for bar in bars] for bars in axes.containers] == [[0.75, 1, 0.5], [0.25, 0, 0]]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1\nn=4", "2\nn=1", "no path\nn=2"]
    left, right = (bars[0] for bars in axes.containers)
    assert left.get_x() + left.get_width() == pytest.approx(right.get_x()) == pytest.approx(0)  # side by side around the tick
    assert (axes.get_title(), names(axes)) == ("Gold documents found, by distance", ["garen", "slidegar"])


def test_distances_are_a_bar_per_graph_and_distance(path: Path) -> None:
    counts = {"documents": {1: 2, 4: 1, -1: 1}, "groups": {0: 1, 1: 3}}
    axes = plots.distances(path, counts, plots.styles_of(["documents", "groups"])).axes[0]
    assert is_png(path)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "4", "no path"]
    assert [[bar.get_height() for bar in bars] for bars in axes.containers] == [[0, 2, 1, 1], [1, 3, 0, 0]]


def test_the_front_is_joined_and_filled(path: Path) -> None:
    points = front([("garen", 0.5, 9.0), ("slidegar", 0.4, 10.0), ("bm25", 0.2, 1.0)])
    axes = plots.frontier(path, points, STYLES, "nDCG@10", "seconds").axes[0]
    assert is_png(path)
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[1, 0.2], [9, 0.5]]]
    drawn = {dots.get_label(): (dots.get_offsets().tolist(), len(dots.get_facecolors())) for dots in axes.collections}
    assert drawn == {"garen": ([[9, 0.5]], 1), "slidegar": ([[10, 0.4]], 0), "bm25": ([[1, 0.2]], 1)}
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xlim()[0]) == ("seconds", "nDCG@10", 0)


def test_sensitivity_is_a_line_per_method_over_numbers_and_dots_over_names(path: Path) -> None:
    lines = {"garen": [Setting(0, 0.25, 1), Setting(4, 0.5, 1)], "slidegar": [Setting(4, 0.125, 1)]}
    axes = plots.sensitivity(path, lines, STYLES, "tau_switch", "nDCG@10").axes[0]
    assert is_png(path)
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[0, 0.25], [4, 0.5]], [[4, 0.125]]]
    assert axes.get_xticks().tolist() == [0, 4]
    named = {"garen": [Setting("candidates", 0.25, 1)], "bm25": [Setting("all_scored", 0.5, 1)]}
    axes = plots.sensitivity(path, named, STYLES, "eligible", "nDCG@10").axes[0]
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[0, 0.25]], [[1, 0.5]]]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["candidates", "all_scored"]
    assert {line.get_linestyle() for line in axes.lines} == {"None"}
