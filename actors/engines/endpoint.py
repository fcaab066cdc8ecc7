"""Calling an endpoint: so many requests at once, so many tokens a minute, and again, later each time, when it is busy or broken.

The key is read from the environment variable that the configuration names and from nowhere else, and goes into a header of
the requests and nowhere else. What an endpoint writes beside an error decides what is done, is logged, and is never an answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from actors.corpora.records import BadInput
from actors.engines.engine import EngineError
from actors.engines.limits import Timing, TokensPerMinute, back_off, retry_after
from conf import schema

Payload = dict[str, Any]

LONGEST_ASKED_WAIT = 600.0  # who asks for more (the quota of a day is used up) is not waited for
BUSY = frozenset((408, 425, 429))
TOO_LONG = ("context length", "context_length", "context window", "maximum model length", "max_model_len", "too long")
UNPAID = ("insufficient_quota", "insufficient quota", "insufficient balance")
# What an endpoint may not take -> the word in its refusal, and what is sent instead, "" for nothing. Hosted endpoints do not
# know vLLM's chat_template_kwargs and not all know a seed; OpenAI's reasoning models want max_tokens under another name and
# have a temperature of their own.
REPLACEABLE = {
    "chat_template_kwargs": ("chat_template_kwargs", ""),
    "seed": ("seed", ""),
    "temperature": ("temperature", ""),
    "max_tokens": ("max_completion_tokens", "max_completion_tokens"),
}


class Failure(NamedTuple):
    """An attempt without an answer. again: another may succeed, after `wait` seconds where the endpoint said so.

    said: how its error begins; for decisions and the log only.
    """

    reason: str
    again: bool = False
    wait: float = 0.0
    status: int = 0
    said: str = ""


class EndpointClient:
    """Requests to the endpoint of a model. It belongs to the event loop of its first request."""

    def __init__(self, node: schema.OpenAIModel, endpoint: schema.Endpoint, timing: Timing) -> None:
        """Raises BadInput when the URL is none or the key's variable is not set. Sends nothing."""
        self._node, self._endpoint, self._timing = node, endpoint, timing
        self._url, self._proxy = _checked_url(node.url), _proxy(node.url)
        self._key = _key(node) if node.key else ""
        self._minute = TokensPerMinute(endpoint.tokens_per_minute, timing)
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._refused: set[str] = set()  # of REPLACEABLE
        self._complained: set[int] = set()
        self._http: tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession] | None = None

    async def post(self, path: str, payload: Payload, tokens: int) -> tuple[Payload, int]:
        """The answer, a JSON object, and how often the request was made again. tokens: an estimate of what it will use.

        A request keeps its place while it waits to be made again, so a busy endpoint gets fewer.
        Raises EngineError; BadInput when no request can succeed until the configuration is mended.
        """
        retries, tried = -1, 0
        async with self._slots:
            while True:
                retries += 1
                sent = self._acceptable(payload)
                answer = await self._attempt(path, sent, tokens)
                if not isinstance(answer, Failure):
                    return answer, retries
                if self._learned(sent, answer):
                    continue
                tried += 1
                if tried >= self._endpoint.attempts or not answer.again or answer.wait > LONGEST_ASKED_WAIT:
                    break
                pause = back_off(tried, answer.wait, self._timing.jitter())
                logging.getLogger(__name__).info("%s: %s, attempt %d, again in %.1f s", self._url, answer.reason, tried, pause)
                await self._timing.sleep(pause)
        raise self._error(path, answer)

    async def close(self) -> None:
        if self._http:
            await self._http[1].close()

    async def _attempt(self, path: str, payload: Payload, tokens: int) -> Payload | Failure:
        spent = await self._minute.reserve(tokens)
        session = self._session()
        try:
            async with (
                asyncio.timeout(self._endpoint.timeout_seconds),
                session.post(f"{self._url}/{path}", json=payload, allow_redirects=False, proxy=self._proxy) as response,
            ):
                body = await response.read()
        except TimeoutError:
            return Failure("timeout", again=True)
        except (aiohttp.ClientError, OSError):
            return Failure("connection failed", again=True)
        answer = _answer(response.status, response.headers, body, self._key)
        if not isinstance(answer, Failure):
            spent.tokens = tokens_used(answer) or tokens
        elif 300 <= answer.status < 500:  # refused before any token was used
            spent.tokens = 0
        return answer

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._http is None:
            # Servers of vLLM close a connection that was idle for 5 seconds: it must not be taken up again just then.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0)
            jar, no_limit = aiohttp.DummyCookieJar(), aiohttp.ClientTimeout(total=None)
            headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
            session = aiohttp.ClientSession(connector=connector, headers=headers, cookie_jar=jar, timeout=no_limit)
            self._http = (loop, session)
        if self._http[0] is not loop:
            raise RuntimeError("an engine belongs to the event loop of its first request: make one for each loop")
        return self._http[1]

    def _acceptable(self, payload: Payload) -> Payload:
        renamed = {REPLACEABLE[name][1] if name in self._refused else name: value for name, value in payload.items()}
        return {name: value for name, value in renamed.items() if name}

    def _learned(self, sent: Payload, failure: Failure) -> bool:
        """Whether the request was refused for what can be left out, or named otherwise, from now on."""
        refused = {name for name, (word, _) in REPLACEABLE.items() if name in sent and re.search(rf"\b{word}\b", failure.said)}
        for name in refused - self._refused:
            instead = REPLACEABLE[name][1] or "nothing"
            logging.getLogger(__name__).warning("%s does not take %s: %s is sent instead", self._url, name, instead)
        self._refused |= refused
        return bool(refused)

    def _error(self, path: str, failure: Failure) -> Exception:
        node, status = self._node, failure.status
        remedies = {
            401: f"set the environment variable {node.key} to a valid key where the models' actors run"
            if node.key
            else "it wants a key: name the environment variable that holds it in the model's `key`",
            402: "pay for more, or use another endpoint",
            403: f"allow the key in {node.key or '`key` (none is named)'} to use this model, or choose another model",
            429: "its quota is used up: pay for more, or use another endpoint",
        }
        if failure.reason == "stop":
            wrong_url = "`url` must end as the endpoint documents it, mostly in /v1, and `name` must be a model that it serves"
            return BadInput(f"{self._url}/{path}, model {node.name}: status {status}; {remedies.get(status, wrong_url)}")
        if failure.reason == "refused" and status not in self._complained:
            self._complained.add(status)
            logging.getLogger(__name__).warning("%s/%s: status %d (told once): %r", self._url, path, status, failure.said)
        return EngineError(failure.reason)


def tokens_used(answer: Payload) -> int:
    """Prompt and answer tokens by the endpoint's own count; 0 where it does not say."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return 0
    parts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    total = sum(part for part in parts if isinstance(part, int))
    return total or (usage["total_tokens"] if isinstance(usage.get("total_tokens"), int) else 0)


def _answer(status: int, headers: Mapping[str, str], body: bytes, key: str) -> Payload | Failure:
    if not 200 <= status < 300:
        said = body.replace(key.encode(), b"***") if key else body  # before it is cut: half a key is a secret too
        return _failure(status, headers, said[:500].decode("utf-8", "replace").lower())
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return Failure("malformed answer", again=True)
    if not isinstance(answer, dict):
        return Failure("malformed answer")
    return Failure("server error", again=True) if answer.get("error") else answer  # some gateways send errors with status 200


def _failure(status: int, headers: Mapping[str, str], said: str) -> Failure:
    if status == 413 or (status in (400, 422) and any(words in said for words in TOO_LONG)):
        return Failure("too long", status=status)
    unpaid = status == 429 and any(words in said for words in UNPAID)
    if unpaid or status in (401, 402, 403, 404, 405) or status < 400:
        return Failure("stop", status=status)
    if status in BUSY or status >= 500:
        reason = "rate limit" if status == 429 else "server error"
        return Failure(reason, again=True, wait=retry_after(headers), status=status)
    return Failure("refused", status=status, said=said)


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"url = {url!r}: expected the base URL of an endpoint, such as http://localhost:8000/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadInput(
            f"url: the one at {parts.hostname} holds a password or a query; the key belongs in the variable that `key` names"
        )
    return url.rstrip("/")


def _key(node: schema.OpenAIModel) -> str:
    key = os.environ.get(node.key, "").strip()
    if not key:
        shown = node.key if re.fullmatch(r"[A-Z_][A-Z0-9_]*", node.key) else "named there (not shown: it may be the key itself)"
        raise BadInput(
            f"key: the environment variable {shown}, for the model {node.name}, is not set or empty; set it where the models' "
            "actors run, or leave `key` empty if the endpoint wants none"
        )
    if not (key.isascii() and key.isprintable()):
        raise BadInput(f"key: the environment variable {node.key} holds characters that no key has; set it again")
    return key


def _proxy(url: str) -> str | None:
    """What http_proxy, https_proxy and no_proxy say. The client's own look-up would read passwords from ~/.netrc as well."""
    parts = urlsplit(url)
    bypassed = urllib.request.proxy_bypass(parts.hostname or "")
    return None if bypassed else urllib.request.getproxies().get(parts.scheme)
