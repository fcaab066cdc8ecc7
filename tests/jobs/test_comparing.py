"""Which runs of a comparison tell of one parameter."""

from __future__ import annotations

from pathlib import Path

from actors.artifacts.store import Address, Recipe
from conf.load import compose
from jobs.comparing import Made, varied


def made(index: str, *overrides: str) -> Made:
    settings = compose(["corpus=folder", "corpus.path=/x", "reranker=simulated", "navigator=simulated", *overrides])
    return Made(settings, {"index": Address(Path("/"), Recipe("index", {"of": index}, {}))}, {}, {})


def test_only_runs_that_differ_in_nothing_else() -> None:
    runs = {
        ("c", "slidegar", 0): made("a", "loop=slidegar"),
        ("c", "garen", 0): made("a", "run_seed=0"),
        ("c", "garen", 1): made("a", "run_seed=1"),
        ("c", "tau_0", 0): made("a", "loop.tau_switch=0"),
        ("c", "K_g_5", 0): made("a", "loop.K_g=5"),
        ("c", "votes", 0): made("a", "loop.group_score=votes"),
        ("c", "kmeans", 0): made("b"),
        ("c", "noisy", 0): made("a", "navigator.noise=0.9"),
    }
    assert [key[1:] for key in varied(runs, "tau_switch")] == [("garen", 0), ("garen", 1), ("tau_0", 0)]
    assert [key[1:] for key in varied(runs, "K_g")] == [("garen", 0), ("garen", 1), ("K_g_5", 0)]
    assert varied({key: one for key, one in runs.items() if key[1] == "slidegar"}, "K_g") == []
