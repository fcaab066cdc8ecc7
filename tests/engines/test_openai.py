"""The engine against a server on this machine that answers by script; time is faked, so that nobody waits."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from hypothesis import given, settings, strategies as st

from actors.algorithms.prompts import Message, Prompt
from actors.corpora.records import BadInput
from actors.engines.endpoint import LONGEST_ASKED_WAIT
from actors.engines.endpoint_tokens import EstimatedTokens, load_tokens
from actors.engines.engine import EngineError, Sampling
from actors.engines.limits import Timing, TokensPerMinute, back_off, retry_after
from actors.engines.openai import OpenAIEngine, probability_of_yes
from conf import schema

KEY = "sk-secret-0123456789"
CHAT = Prompt([Message(role="system", content="Rank."), Message(role="user", content="naïve question")], 0)
RAW = Prompt("<|im_start|>user\nIs it?", 0)
SAMPLING = Sampling(max_tokens=7)
USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}
RANKING = "[1] > [2] > [3]"


class Time:
    """A clock that stands still but for sleeping, which takes no time."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    @property
    def timing(self) -> Timing:
        return Timing(clock=lambda: self.now, sleep=self.sleep, jitter=lambda: 0.0)


class Server:
    """Gives its answers one after the other, the last of them for ever, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked, self.headers = list(answers), [], []
        self.under_way = self.most = self.gone = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append((request.path, body))
        self.headers.append(dict(request.headers))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await reply(answer, body)
        except asyncio.CancelledError:
            self.gone += 1
            raise
        finally:
            self.under_way -= 1


async def reply(answer: Any, body: dict[str, Any]) -> web.Response:
    """answer: a JSON body; (status, body[, headers]); seconds to be silent; or a function of the request's body."""
    if callable(answer):
        answer = await answer(body)
    if isinstance(answer, float):
        await asyncio.sleep(answer)
        answer = chat("late")
    status, content, headers = ((*answer, {}) if isinstance(answer, tuple) else (200, answer, {}))[:3]
    text = content if isinstance(content, str) else json.dumps(content)
    return web.Response(status=status, text=text, headers=headers)


def serving(server: Server, use: Callable[[str], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", server.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            return await use(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        finally:
            await runner.cleanup()

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def engine(url: str, time: Time | None = None, **changed: Any) -> OpenAIEngine:
    node = {"engine": "openai", "name": "m", "url": url, "key": "", "max_model_len": 4096, "thinking": False, "tokenizer": ""}
    calls = {"concurrency": 4, "timeout_seconds": 5.0, "attempts": 3, "tokens_per_minute": 0}
    node |= {name: value for name, value in changed.items() if name in node}
    calls |= {name: value for name, value in changed.items() if name in calls}
    return OpenAIEngine(schema.OpenAIModel(**node), schema.Endpoint(**calls), (time or Time()).timing)


def asking(server: Server, use: Callable[[OpenAIEngine], Awaitable[Any]], time: Time | None = None, **changed: Any) -> Any:
    """What `use` returns of an engine in front of `server`; or the exception that it raises."""

    async def main(url: str) -> Any:
        model = engine(url, time, **changed)
        try:
            return await use(model)
        except (EngineError, BadInput) as error:
            return error
        finally:
            await model.close()

    return serving(server, main)


def chat(text: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": finish, **more}], "usage": USAGE}


def generate(model: OpenAIEngine) -> Awaitable[Any]:
    return model.generate(CHAT, SAMPLING)


def failed(error: Any, message: str) -> None:
    assert type(error) is EngineError and str(error) == message
    assert error.__cause__ is None and error.__context__ is None


# --- what is sent, and what comes back --------------------------------------------------------------------------------


def test_messages_go_to_chat_completions() -> None:
    server = Server(chat(RANKING))
    made = asking(server, lambda model: model.generate(CHAT, Sampling(7, temperature=0.5, seed=3)))
    assert made == (RANKING, True, {"prompt_tokens": 11, "generated_tokens": 5, "cached_tokens": 8, "retries": 0})
    assert server.asked == [
        (
            "/v1/chat/completions",
            {
                "model": "m",
                "messages": CHAT.text,
                "max_tokens": 7,
                "temperature": 0.5,
                "seed": 3,
                "chat_template_kwargs": {"enable_thinking": False},
            },
        )
    ]
    assert "Authorization" not in server.headers[0]


def test_a_string_goes_to_completions_untouched() -> None:
    server = Server({"choices": [{"text": "yes", "finish_reason": "length"}]})
    made = asking(server, lambda model: model.generate(RAW, SAMPLING))
    assert made.text == "yes" and not made.finished and set(made.usage.values()) == {0}
    [(path, body)] = server.asked
    assert path == "/v1/completions" and body["prompt"] == RAW.text
    assert "messages" not in body and "chat_template_kwargs" not in body


def test_a_schema_becomes_a_response_format() -> None:
    server, wanted = Server(chat("{}")), {"type": "object", "properties": {}}
    asking(server, lambda model: model.generate(CHAT, Sampling(7, schema=json.dumps(wanted))))
    form = server.asked[0][1]["response_format"]
    assert form["type"] == "json_schema" and form["json_schema"]["schema"] == wanted and form["json_schema"]["strict"] is True


def test_cut_off_before_the_answer_began() -> None:
    made = asking(Server(chat(None, "length")), generate)
    assert (made.text, made.finished) == ("", False)


@pytest.mark.parametrize("said", [None, {}, "much", {"prompt_tokens": "x", "prompt_tokens_details": None}])
def test_usage_that_is_not_said_is_zero(said: Any) -> None:
    made = asking(Server({**chat("a"), "usage": said}), generate)
    assert made.usage == {"prompt_tokens": 0, "generated_tokens": 0, "cached_tokens": 0, "retries": 0}


@pytest.mark.parametrize(
    ("name", "says", "instead"),
    [
        ("chat_template_kwargs", "Unrecognized request argument supplied: chat_template_kwargs", None),
        ("seed", '{"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"]}]}', None),
        ("temperature", "Unsupported value: 'temperature' does not support 0 with this model.", None),
        ("max_tokens", "'max_tokens' is not supported with this model. Use 'max_completion_tokens'.", "max_completion_tokens"),
    ],
)
def test_what_an_endpoint_does_not_take_is_left_out_from_then_on(
    name: str, says: str, instead: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def twice(model: OpenAIEngine) -> Any:
        first = await generate(model)
        return first, await generate(model)

    server, time = Server((400, says), chat("a")), Time()
    first, second = asking(server, twice, time, attempts=1, thinking=True)
    before, after, later = (body for _, body in server.asked)
    assert name in before and after == later and set(before) - {name} == set(after) - {instead}
    if instead:
        assert after[instead] == before[name]
    assert (first.usage["retries"], second.usage["retries"], time.slept) == (1, 0, [])
    assert [record.levelname for record in caplog.records] == ["WARNING"] and name in caplog.text


def test_what_is_refused_one_after_the_other() -> None:
    server = Server((400, "seed"), (422, "temperature"), chat("a"))
    assert asking(server, generate, attempts=1).usage["retries"] == 2
    assert not {"seed", "temperature"} & set(server.asked[-1][1])


def test_seeded_is_not_seed() -> None:
    failed(asking(server := Server((400, "a reseeded thing")), generate), "refused")
    assert len(server.asked) == 1


def test_thinking_is_asked_for_when_it_may() -> None:
    server = Server(chat("a"))
    asking(server, generate, thinking=True)
    assert server.asked[0][1]["chat_template_kwargs"] == {"enable_thinking": True}


# --- yes or no --------------------------------------------------------------------------------------------------------


def test_yes_no_sums_spellings_of_the_first_token() -> None:
    p = {"Yes": 0.3, " yes": 0.2, "YES": 0.1, "no": 0.15, "No": 0.05, "yesterday": 0.2}
    top = [{"token": token, "logprob": math.log(share)} for token, share in p.items()]
    server = Server(chat("Yes", "length", logprobs={"content": [{"token": "Yes", "logprob": 0.0, "top_logprobs": top}]}))
    judged = asking(server, lambda model: model.yes_no(CHAT), thinking=True)
    assert judged.yes == pytest.approx(0.6 / 0.8) and judged.usage["generated_tokens"] == 5
    body = server.asked[0][1]
    assert (body["max_tokens"], body["temperature"], body["logprobs"], body["top_logprobs"]) == (1, 0.0, True, 20)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}, "the first token would be a thought's"


def test_yes_no_of_a_string() -> None:
    server = Server({"choices": [{"text": "no", "logprobs": {"top_logprobs": [{"no": -0.5, " yes": -1.5}]}}]})
    assert asking(server, lambda model: model.yes_no(RAW)).yes == pytest.approx(1 / (1 + math.e))
    assert server.asked[0][1]["logprobs"] == 20 and "top_logprobs" not in server.asked[0][1]


def test_a_side_that_is_missing_counts_as_minus_ten() -> None:
    assert probability_of_yes({"yes": -0.5}) == pytest.approx(1 / (1 + math.exp(-9.5)))
    assert probability_of_yes({"No": -0.5}) == pytest.approx(1 / (1 + math.exp(9.5)))
    assert probability_of_yes({"yes": -9999.0, "no": 0.0}) == 0.0
    with pytest.raises(EngineError, match="^no yes or no$"):
        probability_of_yes({"maybe": -0.1})


@pytest.mark.parametrize(
    ("logprobs", "message"),
    [
        (None, "no log-probabilities"),
        ({"content": []}, "malformed answer"),
        ({"content": [{"top_logprobs": [{"token": "yes", "logprob": math.nan}]}]}, "malformed answer"),
        ({"content": [{"top_logprobs": [{"token": None, "logprob": -1.0}]}]}, "no yes or no"),
    ],
)
def test_first_tokens_that_cannot_be_read(logprobs: Any, message: str) -> None:
    failed(asking(Server(chat("1", logprobs=logprobs)), lambda model: model.yes_no(CHAT)), message)


# --- vectors and /rerank ----------------------------------------------------------------------------------------------


async def embedded(body: dict[str, Any]) -> dict[str, Any]:
    """The vector of "7" is (7, 1); the last comes first."""
    data = [{"index": i, "embedding": [int(text), 1]} for i, text in enumerate(body["input"])]
    return {"data": data[::-1], "usage": {"prompt_tokens": len(data), "total_tokens": len(data)}}


def test_embed_keeps_order_over_batches_and_normalises() -> None:
    server = Server(embedded)
    vectors, usage = asking(server, lambda model: model.embed([str(n) for n in range(70)]))
    rows = np.array([[n, 1] for n in range(70)])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, rows / np.linalg.norm(rows, axis=1, keepdims=True), rtol=1e-6)
    assert sorted(len(body["input"]) for _, body in server.asked) == [6, 32, 32]
    assert usage == {"prompt_tokens": 70, "generated_tokens": 0, "cached_tokens": 0, "retries": 0}
    assert asking(server, lambda model: model.embed([]))[0].shape == (0, 0)


@pytest.mark.parametrize(
    "data",
    [
        [{"index": 0, "embedding": [1, 2]}],
        [{"index": 0, "embedding": [1, 2]}, {"index": 0, "embedding": [1, 2]}],
        [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [0, 0]}],
        [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}],
        [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": None}],
    ],
)
def test_vectors_that_cannot_be_used(data: Any) -> None:
    failed(asking(Server({"data": data}), lambda model: model.embed(["a", "b"])), "malformed answer")


def test_one_failed_batch_stops_the_others() -> None:
    server = Server((401, "no"), 3.0)
    error = asking(server, lambda model: model.embed(["1"] * 100))
    assert isinstance(error, BadInput) and server.gone >= 1


def test_rerank_gives_scores_in_the_documents_order() -> None:
    results = [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.5}, {"index": 1, "relevance_score": 0.1}]
    server = Server({"results": results})
    assert asking(server, lambda model: model.rerank("q", ["a", "b", "c"])) == [0.5, 0.1, 0.9]
    assert server.asked == [("/v1/rerank", {"model": "m", "query": "q", "documents": ["a", "b", "c"]})]
    failed(asking(Server({"results": results[:2]}), lambda model: model.rerank("q", ["a", "b", "c"])), "malformed answer")
    assert asking(server, lambda model: model.rerank("q", [])) == []


# --- failures ---------------------------------------------------------------------------------------------------------


def test_it_is_asked_again_later_each_time() -> None:
    server, time = Server((429, RANKING), (503, RANKING), (500, "", {"Retry-After": "17"}), chat("a")), Time()
    made = asking(server, generate, time, attempts=4)
    assert made.usage["retries"] == 3 and time.slept == [0.25, 0.5, 17.0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((429, RANKING), "rate limit"),
        ((503, RANKING), "server error"),
        ((500, {"choices": [{"message": {"content": RANKING}}]}), "server error"),
        ((200, RANKING), "malformed answer"),
        ({"error": {"message": RANKING}, **chat(RANKING)}, "server error"),
    ],
)
def test_an_error_is_never_an_answer(answer: Any, message: str) -> None:
    server, time = Server(answer), Time()
    failed(asking(server, generate, time), message)
    assert len(server.asked) == 3 and len(time.slept) == 2, "attempts: 3"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((400, "This model's maximum context length is 40 tokens. 'max_completion_tokens'"), "too long"),
        ((400, {"error": {"code": "context_length_exceeded"}}), "too long"),
        ((400, "The decoder prompt is longer than the maximum model length of 40"), "too long"),
        ((413, RANKING), "too long"),
        ((422, RANKING), "refused"),
        ((200, "[" * 100_000), "malformed answer"),
        ((200, [RANKING]), "malformed answer"),
        ({}, "malformed answer"),
        ({"choices": []}, "malformed answer"),
        (chat([RANKING]), "malformed answer"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused_or_malformed(answer: Any, message: str) -> None:
    server = Server(answer)
    failed(asking(server, generate, attempts=1), message)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, "", "GAREN_TEST_KEY to a valid key"),
        (403, "", "GAREN_TEST_KEY"),
        (404, "", "`url`.*`name`"),
        (302, "", "`url`"),
        (402, "", "pay"),
        (429, {"error": {"code": "insufficient_quota"}}, "quota"),
    ],
)
def test_what_no_retry_mends_says_what_to_do(status: int, body: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAREN_TEST_KEY", KEY)
    server, time = Server((status, body, {"Location": "/elsewhere"})), Time()
    error = asking(server, generate, time, key="GAREN_TEST_KEY")
    assert isinstance(error, BadInput) and len(server.asked) == 1 and time.slept == []
    assert error.__context__ is None
    with pytest.raises(BadInput, match=says):
        raise error


def test_without_a_key_401_says_that_one_is_wanted() -> None:
    assert "name the environment variable" in str(asking(Server((401, "")), generate))


def test_a_silent_endpoint_is_left_after_the_timeout() -> None:
    server = Server(3.0, chat("a"))
    made = asking(server, generate, timeout_seconds=0.1)
    assert made.text == "a" and made.usage["retries"] == 1 and server.gone == 1
    failed(asking(Server(3.0), generate, timeout_seconds=0.1, attempts=1), "timeout")


def test_nobody_listens() -> None:
    async def main(url: str) -> Any:
        model = engine("http://127.0.0.1:1/v1", time)
        with pytest.raises(EngineError) as error:
            await generate(model)
        await model.close()
        return error.value

    time = Time()
    failed(serving(Server({}), main), "connection failed")
    assert len(time.slept) == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2.5"}, 2.5),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "nan"}, 0.0),
        ({"Retry-After": "soon"}, 0.0),
        ({}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers) == seconds


def test_a_date_of_tomorrow_is_not_waited_for() -> None:
    headers = {"Retry-After": "Thu, 22 Oct 2026 07:28:00 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    server, time = Server((429, "", headers)), Time()
    failed(asking(server, generate, time), "rate limit")
    assert (len(server.asked), time.slept) == (1, [])
    asking(Server((429, "", {"Retry-After": str(LONGEST_ASKED_WAIT)}), chat("a")), generate, time)
    assert time.slept == [LONGEST_ASKED_WAIT]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 2000), st.floats(0, 600), st.floats(0, 1, exclude_max=True))
def test_back_off_is_bounded_and_never_earlier_than_asked(tried: int, asked: float, chance: float) -> None:
    pause = back_off(tried, asked, chance)
    assert max(asked, 0.25) <= pause <= max(60.0, asked * 1.1)
    assert pause <= back_off(tried + 1, asked, chance) + 1e-9


# --- the key ----------------------------------------------------------------------------------------------------------


def everything_in(error: BaseException | None) -> str:
    """An exception with all that hangs on it."""
    return f"{error!s} {error!r} {vars(error)} {everything_in(error.__cause__ or error.__context__)}" if error else ""


@pytest.mark.parametrize("answer", [(401, f"bad key {KEY}"), (400, f"{'x' * 490}{KEY}"), (500, KEY), KEY, 3.0])
def test_the_key_is_sent_and_never_shown(answer: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("GAREN_TEST_KEY", KEY + "\n")
    server, shown = Server(answer), []

    async def use(model: OpenAIEngine) -> Any:
        shown.append(repr(model))
        return await generate(model)

    with caplog.at_level(logging.DEBUG):
        error = asking(server, use, key="GAREN_TEST_KEY", timeout_seconds=0.1)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert isinstance(error, EngineError | BadInput)
    assert "sk-secret" not in everything_in(error) + caplog.text + "".join(shown)


def test_a_key_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("GAREN_TEST_KEY", raising=False)
    with pytest.raises(BadInput, match="variable GAREN_TEST_KEY.*not set"):
        engine("http://localhost/v1", key="GAREN_TEST_KEY")
    with pytest.raises(BadInput) as error:
        engine("http://localhost/v1", key=KEY)  # the key itself instead of a variable's name
    assert KEY not in str(error.value)
    monkeypatch.setenv("GAREN_TEST_KEY", "sk-\x07é")
    with pytest.raises(BadInput, match="characters that no key has") as error:
        engine("http://localhost/v1", key="GAREN_TEST_KEY")
    assert "sk-" not in str(error.value)


@pytest.mark.parametrize("url", ["", "localhost:8000/v1", "ftp://a/v1", f"http://me:{KEY}@a/v1", f"http://a/v1?key={KEY}"])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(BadInput, match="url") as error:
        engine(url)
    assert KEY not in str(error.value)


def test_a_proxy_is_used_where_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(chat("a"))

    async def main(url: str) -> Any:
        monkeypatch.setenv("http_proxy", url.removesuffix("/v1"))
        model = engine("http://model.invalid/v1")
        try:
            return await generate(model)
        finally:
            await model.close()

    assert serving(server, main).text == "a"
    assert server.headers[0]["Host"] == "model.invalid"


# --- limits -----------------------------------------------------------------------------------------------------------


def test_no_more_at_once_than_allowed() -> None:
    async def slowly(body: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return chat("a")

    async def many(model: OpenAIEngine) -> Any:
        return await asyncio.gather(*(generate(model) for _ in range(12)))

    server = Server(slowly)
    assert len(asking(server, many, concurrency=3)) == 12
    assert server.most == 3


def test_who_is_cancelled_frees_its_place() -> None:
    async def use(model: OpenAIEngine) -> Any:
        waiting = [asyncio.ensure_future(generate(model)) for _ in range(2)]
        await asyncio.sleep(0.1)
        for task in waiting:  # one is answered by nobody, the other waits for its place
            task.cancel()
        await asyncio.wait(waiting)
        return await asyncio.wait_for(generate(model), 2)

    server = Server(4.0, chat("a"))
    assert asking(server, use, concurrency=1).text == "a"
    assert len(server.asked) == 2


def limited(limit: int, *requests: tuple[int, int]) -> list[float]:
    """When each request (estimate, tokens that it used) may go, in seconds from the first."""

    async def main() -> list[float]:
        minute, starts = TokensPerMinute(limit, time.timing), []
        for estimate, used in requests:
            spent = await minute.reserve(estimate)
            starts.append(time.now - 1000.0)
            spent.tokens = used
        return starts

    time = Time()
    return asyncio.run(main())


def test_tokens_per_minute_by_hand() -> None:
    assert limited(100, (60, 60), (40, 40), (1, 1)) == [0, 0, 60]
    assert limited(100, (60, 10), (90, 90)) == [0, 0], "the first used less than was thought"
    assert limited(100, (10, 100), (1, 1)) == [0, 60], "the first used more"
    assert limited(100, (500, 500), (500, 500)) == [0, 60], "what exceeds the limit goes alone, and does not hang"
    assert limited(0, (500, 500), (500, 500)) == [0, 0], "no limit"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=12), st.integers(100, 250))
def test_no_minute_exceeds_the_limit(tokens: list[int], limit: int) -> None:
    starts = limited(limit, *((n, n) for n in tokens))
    assert starts == sorted(starts)
    for start in starts:
        assert sum(n for n, at in zip(tokens, starts, strict=True) if start <= at < start + 60) <= limit


def test_room_that_a_smaller_usage_makes_is_taken_at_once() -> None:
    async def main() -> float:
        minute = TokensPerMinute(100, time.timing)
        first = await minute.reserve(100)
        second = asyncio.ensure_future(minute.reserve(50))
        await asyncio.sleep(0)
        first.tokens = 20
        await second
        return time.now - 1000.0

    time = Time()
    assert asyncio.run(main()) == 1.0


def test_the_engine_estimates_and_corrects() -> None:
    """5 and 15 bytes of prompt make 2 and 5 tokens, 7 may be answered: 14; the usage says 16."""

    async def twice(model: OpenAIEngine) -> float:
        await generate(model)
        await generate(model)
        return time.now - 1000.0

    time = Time()
    assert asking(Server(chat("a")), twice, time, tokens_per_minute=29) == 60.0
    time = Time()
    assert asking(Server(chat("a")), twice, time, tokens_per_minute=30) == 0.0
    assert asking(Server((429, ""), chat("a")), generate, time, tokens_per_minute=20).text == "a"
    assert sum(time.slept) == 0.25, "what was refused has cost nothing"


def test_another_event_loop_is_told_so() -> None:
    model = engine("http://127.0.0.1:1/v1", attempts=1)
    with pytest.raises(EngineError):
        asyncio.run(generate(model))
    with pytest.raises(RuntimeError, match="event loop"):
        asyncio.run(generate(model))
    model._client._http = None


# --- tokens -----------------------------------------------------------------------------------------------------------


def test_estimated_tokens() -> None:
    tokens = EstimatedTokens()
    assert [tokens.count(text) for text in ("", "abc", "abcd", "中文", "\ud800")] == [0, 1, 2, 2, 1]
    assert tokens.cut("abcdefg", 2) == "abcdef" and tokens.cut("é" * 4, 1) == "é" and tokens.cut("a", 0) == ""


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 20))
def test_a_cut_is_a_beginning_that_fits(text: str, n: int) -> None:
    tokens = EstimatedTokens()
    cut = tokens.cut(text, n)
    assert text.startswith(cut) and tokens.count(cut) <= n
    assert cut == text or tokens.count(text[: len(cut) + 1]) > n, "and no longer one does"


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    package = pytest.importorskip("tokenizers")
    made = package.Tokenizer(package.models.BPE())
    made.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = ["the heart pumps blood through arteries and veins", "naïve 中文 question of the heart"] * 3
    trainer = package.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|im_end|>"],
        initial_alphabet=package.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    made.enable_truncation(3)
    folder = tmp_path_factory.mktemp("model")
    made.save(str(folder / "tokenizer.json"))
    return str(folder)


def test_tokens_of_a_file(tokenizer_file: str) -> None:
    tokens = load_tokens(tokenizer_file)
    assert engine("http://a/v1", tokenizer=f"{tokenizer_file}/tokenizer.json").tokens.count("the heart") == tokens.count(
        "the heart"
    )
    assert tokens.count("<|im_end|>") == 1 and tokens.count("") == 0
    text = "the heart of 中文, naïve 🫀 pumps"
    assert tokens.count(text) > 3, "the file's own truncation is off"
    for n in range(tokens.count(text) + 2):
        cut = tokens.cut(text, n)
        assert text.startswith(cut) and tokens.count(cut) <= n
        assert cut == text or tokens.count(text[: len(cut) + 1]) > n


def test_a_tokenizer_that_is_none(tmp_path: Any) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    for tokenizer in ("relative.json", "/nowhere/tokenizer.json", str(tmp_path)):
        with pytest.raises(BadInput, match="tokenizer = "):
            engine("http://a/v1", tokenizer=tokenizer)
