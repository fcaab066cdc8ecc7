"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from actors.index import Index
from tests import toy

settings.register_profile("garen", deadline=None, derandomize=True)  # one code, one verdict
settings.load_profile("garen")


@pytest.fixture(scope="session")
def toy_index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """The toy of tests/toy.py on disk; never written to."""
    return toy.write_index(tmp_path_factory.mktemp("toy"))


class Killed(BaseException):
    """Not an Exception: nothing may catch it."""


@pytest.fixture
def killed_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Path], Any]], list[dict[str, bytes]]]:
    """Runs a function on folders of its own: killed before its first, second, ... rename and then run again; the last not killed.

    Returns the files of every folder. Folder n lies at tmp_path / str(n).
    """

    def attempts(make: Callable[[Path], Any]) -> list[dict[str, bytes]]:
        found = []
        for kill_at in range(1, 100):
            folder = tmp_path / str(kill_at)
            folder.mkdir()
            killed = _is_killed(make, folder, kill_at, monkeypatch)
            if killed:
                make(folder)
            found.append({p.name: p.read_bytes() for p in sorted(folder.iterdir())})
            if not killed:
                return found
        raise AssertionError("never came to an end")

    return attempts


def _is_killed(make: Callable[[Path], Any], folder: Path, kill_at: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    renames = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def rename(*arguments: Any, **named: Any) -> Any:
            nonlocal renames
            renames += 1
            if renames == kill_at:
                raise Killed
            return real(*arguments, **named)

        return rename

    with monkeypatch.context() as patch:
        for name in ("rename", "replace"):
            patch.setattr(os, name, counted(getattr(os, name)))
        try:
            make(folder)
        except Killed:
            return True
    return False
