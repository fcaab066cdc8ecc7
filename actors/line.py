"""The line to a role that is served elsewhere: requests that wait together share a call, and a failing call never fails a query."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from actors.judges.judge import FAILED, failed


class Line:
    """Carries the requests of several queries to one role. Those that wait together share a call, at most `batch_size` of them."""

    def __init__(
        self,
        call: Callable[[list[Any]], Awaitable[list[Any]]],
        batch_size: int,
        calls: int,
        stand_in: Callable[[Any, str], Any] | None = failed,
    ) -> None:
        """call: answers a list of requests. calls: how many are under way at once.

        stand_in: makes the answer to a request whose calls keep failing of what went wrong. None: there are no other attempts and
        whoever waits gets the error, as for a call that stays in this process.
        """
        self._call, self._batch_size, self._stand_in = call, batch_size, stand_in
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._free = calls
        self._retries = (0.5, 2.0)  # seconds before the second and the third attempt
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, ask: Any) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((ask, future))
        loop.call_soon(self._depart)  # after the queries that are ready in this turn have joined
        return await future

    def _depart(self) -> None:
        while self._free and self._waiting:
            batch, self._waiting = self._waiting[: self._batch_size], self._waiting[self._batch_size :]
            self._free -= 1
            task = asyncio.ensure_future(self._deliver(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _deliver(self, batch: list[tuple[Any, asyncio.Future[Any]]]) -> None:
        asks = [ask for ask, _ in batch]
        try:
            replies = await (self._attempt(asks, self._stand_in) if self._stand_in else self._call(asks))
            for (_, future), reply in zip(batch, replies, strict=True):
                if not future.done():  # whoever waited may have been cancelled
                    future.set_result(reply)
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
        finally:
            self._free += 1
            self._depart()

    async def _attempt(self, asks: list[Any], stand_in: Callable[[Any, str], Any]) -> list[Any]:
        """The replies; when the call keeps failing, each request by itself: a bad one does not take others with it."""
        error = ""
        for pause in (*self._retries, None):
            try:
                replies = await self._call(asks)
                if len(replies) == len(asks):
                    return replies
                error = f"{FAILED}: {len(replies)} replies to {len(asks)} requests"
            except Exception as problem:  # whatever the other side raised: the query must end with an answer and the ledger say why
                error = f"{FAILED}: {type(problem).__name__}"
            if pause is not None:
                await asyncio.sleep(pause)
        if len(asks) == 1:
            return [stand_in(asks[0], error)]
        alone = await asyncio.gather(*(self._attempt([ask], stand_in) for ask in asks))
        return [reply for (reply,) in alone]
