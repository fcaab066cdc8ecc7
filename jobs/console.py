"""What a job prints: what it will do, progress with rate and time left, and a short table at the end."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

EVERY = 2.0  # seconds between two lines of progress: a submitted job's log is a file, not a terminal


_hushed = False
_interrupted = False


def interrupt(number: int, frame: object) -> None:
    """A signal's handler: ends the job, at its next step where Python swallows the exception (in a destructor, in a callback)."""
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt


def end_if_interrupted() -> None:
    """Raise KeyboardInterrupt once more if the job was told to end and did not."""
    if _interrupted:
        raise KeyboardInterrupt


def say(text: str = "") -> None:
    """One line, now: the log of a job that is killed ends where the job did."""
    if not _hushed:
        print(text, flush=True)


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Say nothing for a while: a job of a thousand runs tells one line of each."""
    global _hushed
    before, _hushed = _hushed, True
    try:
        yield
    finally:
        _hushed = before


class Progress:
    """Lines such as `embeddings 1,024 of 5,600 documents, 61 per second, 1:15 left`."""

    def __init__(self, what: str, total: int, unit: str, done: int = 0) -> None:
        self._what, self._total, self._unit = what, total, unit
        self._done = self._first = done
        self._start = self._last = time.monotonic()
        if done:
            say(f"  {what}: {done:,} of {total:,} {unit} were done before; going on from there")

    def advance(self, count: int) -> None:
        """Count finished work, and say so when a line is due. Raises KeyboardInterrupt when the job was told to end."""
        end_if_interrupted()
        self._done += count
        now = time.monotonic()
        if now - self._last >= EVERY or self._done >= self._total:
            self._last = now
            rate = (self._done - self._first) / max(now - self._start, 1e-9)
            left = (self._total - self._done) / rate if rate else 0.0
            if _hushed and self._done >= self._total:
                return
            done = f"{self._done:,} of {self._total:,} {self._unit}"
            print(f"  {self._what}: {done}, {rate:,.0f} per second, {duration(left)} left", flush=True)


def duration(seconds: float) -> str:
    """Seconds as minutes:seconds, or hours:minutes:seconds."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Columns under their names; numbers to the right, text to the left."""
    rows = [[_cell(cell) for cell in line] for line in lines]
    widths = [max(len(row[i]) for row in [list(head), *rows]) for i in range(len(head))]
    right = [
        bool(rows) and all(row[i].replace(",", "").replace(".", "").lstrip("-").isdigit() or row[i] == "-" for row in rows)
        for i in range(len(head))
    ]
    aligned = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        for row in [list(head), *rows]
    ]
    return "\n".join("  " + line.rstrip() for line in aligned)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def fail(message: str) -> None:
    """A job's last line when it cannot go on."""
    print(f"\ngaren: {message}", file=sys.stderr, flush=True)
