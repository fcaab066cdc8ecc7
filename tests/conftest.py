"""What all tests share."""

from __future__ import annotations

from pathlib import Path

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
