"""Figures as PNG files, by matplotlib, which is imported only when one is drawn; no display is needed.

Each function writes one file and returns its figure. `styles` comes from one `styles_of` for all figures that belong together,
so that a method looks the same in each of them. `suffix` ends the title in brackets: "simulated" where judgements are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.algorithms.analysis import HitByDistance, Point, Setting
from actors.algorithms.distances import UNREACHABLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito 2008, without its yellow
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", ":", "-.")
HATCHES = ("", "//", "xx", "..")
FRONT = "0.35"  # a grey


@dataclass(frozen=True)
class Style:
    """How one method looks: told apart without colours too."""

    colour: str
    marker: str
    line: str
    hatch: str


def styles_of(names: Sequence[str]) -> dict[str, Style]:
    """A style for each of up to 28 methods, in their order. Raises ValueError on more."""
    lines, colours = zip(LINES, HATCHES, strict=True), list(zip(COLOURS, MARKERS, strict=True))
    kinds = [Style(colour, marker, line, hatch) for line, hatch in lines for colour, marker in colours]
    distinct = list(dict.fromkeys(names))
    if len(distinct) > len(kinds):
        raise ValueError(f"{len(distinct)} methods, expected at most {len(kinds)} in one figure; draw fewer")
    return dict(zip(distinct, kinds, strict=False))


def recall_by_iteration(path: Path, recall: Mapping[str, Sequence[float]], styles: Mapping[str, Style], suffix: str = "") -> Figure:
    """Figure 3: a line per method over the iterations, which count from 1."""
    figure, axes = _axes("Recall by iteration", suffix, "iteration", "Recall of the observed documents")
    for name, values in recall.items():
        axes.plot(range(1, len(values) + 1), values, label=name, **_line(styles[name]))
    axes.locator_params(axis="x", integer=True)
    return _save(path, figure, axes)


def hit_by_distance(path: Path, hits: Mapping[str, HitByDistance], styles: Mapping[str, Style], suffix: str = "") -> Figure:
    """Figures 4 and 8: at each distance a bar per method, and below it the number of queries."""
    figure, axes = _axes("Gold documents found, by distance", suffix, "hops from the seeds to the nearest gold document", "Hit@100")
    lines = {name: {line.distance: line for line in found.by_distance} for name, found in hits.items()}
    queries = {hop: line.queries for found in lines.values() for hop, line in found.items()}
    shares = {name: {hop: line.share for hop, line in found.items()} for name, found in lines.items()}
    _bars(axes, shares, styles, lambda hop: f"\nn={queries[hop]:,}")
    axes.set_ylim(0, 1)
    return _save(path, figure, axes)


def distances(path: Path, counts: Mapping[str, Mapping[int, int]], styles: Mapping[str, Style], suffix: str = "") -> Figure:
    """Figure 9: at each distance a bar per graph."""
    figure, axes = _axes("Distance of gold that the seeds miss", suffix, "hops from the seeds to the nearest of it", "queries")
    _bars(axes, counts, styles, lambda hop: "")
    return _save(path, figure, axes)


def frontier(path: Path, points: Sequence[Point], styles: Mapping[str, Style], value: str, cost: str, suffix: str = "") -> Figure:
    """Figure 6: methods by what they cost (from 0) and how good they are; filled and joined where none is better in both."""
    figure, axes = _axes(f"{value} against {cost}", suffix, cost, value)
    best = sorted((point.cost, point.value) for point in points if point.optimal)
    axes.plot([c for c, _ in best], [v for _, v in best], color=FRONT, linestyle="--", linewidth=1, label="Pareto front", zorder=1)
    for point in points:
        style = styles[point.name]
        face = style.colour if point.optimal else "none"
        axes.scatter(point.cost, point.value, s=70, marker=style.marker, edgecolors=style.colour, facecolors=face, label=point.name)
    axes.set_xlim(left=0)
    return _save(path, figure, axes)


def sensitivity(
    path: Path,
    settings: Mapping[str, Sequence[Setting]],
    styles: Mapping[str, Style],
    parameter: str,
    measure: str,
    suffix: str = "",
) -> Figure:
    """Figures 10 and 11: the measure at each value of one parameter, a line per method or collection; no line between names."""
    figure, axes = _axes(f"{measure} by {parameter}", suffix, parameter, measure)
    values = list(dict.fromkeys(setting.value for line in settings.values() for setting in line))
    numbers = all(isinstance(value, int | float) for value in values)
    for name, line in settings.items():
        look = _line(styles[name]) | ({} if numbers else {"linestyle": "none"})
        at = [setting.value if numbers else values.index(setting.value) for setting in line]
        axes.plot(at, [setting.measure for setting in line], label=name, **look)
    axes.set_xticks(values if numbers else range(len(values)), [str(value) for value in values])
    return _save(path, figure, axes)


def _axes(title: str, suffix: str, x: str, y: str) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set(title=f"{title} ({suffix})" if suffix else title, xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    return figure, axes


def _line(style: Style) -> dict[str, Any]:
    return {"color": style.colour, "marker": style.marker, "linestyle": style.line}


def _bars(axes: Axes, bars: Mapping[str, Mapping[int, float]], styles: Mapping[str, Style], note: Callable[[int], str]) -> None:
    hops = sorted({hop for heights in bars.values() for hop in heights}, key=lambda hop: (hop == UNREACHABLE, hop))
    width = 0.8 / max(len(bars), 1)
    for i, (name, heights) in enumerate(bars.items()):
        at = [x + (i + 0.5) * width - 0.4 for x in range(len(hops))]
        high, style = [heights.get(hop, 0) for hop in hops], styles[name]
        axes.bar(at, high, width, label=name, color=style.colour, hatch=style.hatch, edgecolor="white")
    axes.set_xticks(range(len(hops)), [("no path" if hop == UNREACHABLE else str(hop)) + note(hop) for hop in hops])


def _save(path: Path, figure: Figure, axes: Axes) -> Figure:
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    figure.savefig(path, dpi=150, format="png")
    return figure
