"""When an endpoint may be asked: within so many tokens a minute, and how much later after it failed."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds of back-off, doubled with every attempt


class Timing(NamedTuple):
    """Where time and chance come from. jitter: uniform in [0, 1)."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


@dataclass
class Spent:
    at: float
    tokens: int


class TokensPerMinute:
    """At most `limit` tokens in any 60 seconds, first come, first served; 0: no limit. What is larger than the limit goes alone."""

    def __init__(self, limit: int, timing: Timing) -> None:
        self._limit, self._timing = limit, timing
        self._spent: deque[Spent] = deque()
        self._turn = asyncio.Lock()

    async def reserve(self, tokens: int) -> Spent:
        """Wait until `tokens`, an estimate, can be spent. Put what was really used into the result's `tokens`."""
        if not self._limit:
            return Spent(0.0, tokens)
        async with self._turn:
            while (wait := self._wait(tokens)) > 0:
                await self._timing.sleep(min(wait, 1.0))  # estimates that turn out to be too high make room earlier
            self._spent.append(Spent(self._timing.clock(), tokens))
            return self._spent[-1]

    def _wait(self, tokens: int) -> float:
        now, wait = self._timing.clock(), 0.0
        while self._spent and self._spent[0].at + 60 <= now:
            self._spent.popleft()
        over = sum(spent.tokens for spent in self._spent) + tokens - self._limit
        for spent in self._spent:
            if over <= 0:
                break
            over, wait = over - spent.tokens, spent.at + 60 - now
        return wait


def back_off(tried: int, asked: float, chance: float) -> float:
    """Seconds before a request is made again that failed `tried` times. asked: what the endpoint asked for; chance: in [0, 1).

    Half of the wait is chance, of one that was asked for a tenth on top: not all come back at once.
    """
    own = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(tried - 1, 10)) * (1 + chance) / 2
    return max(own, asked * (1 + chance / 10))


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that an answer's Retry-After asks for, given as such or as a date; 0 where there is none that can be read."""
    value = headers.get("Retry-After", "")
    try:
        seconds = float(value)
    except ValueError:
        until, now = _date(value), _date(headers.get("Date", "")) or datetime.now(UTC)  # the endpoint's own clock, if it tells
        seconds = (until - now).total_seconds() if until else 0.0
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
