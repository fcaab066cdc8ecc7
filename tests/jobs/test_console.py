"""What a job prints, and how it ends when it is told to."""

from __future__ import annotations

import signal

import pytest

from jobs import console


class Stubborn:
    """Its destructor is where the signal arrives: Python prints and drops what is raised there."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_swallowed_ends_the_job_at_its_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_interrupted", False)
    before = signal.signal(signal.SIGINT, console.interrupt)
    try:
        progress = console.Progress("stage", 10, "documents")
        progress.advance(1)
        Stubborn()
        with pytest.raises(KeyboardInterrupt):
            progress.advance(1)
    finally:
        signal.signal(signal.SIGINT, before)
