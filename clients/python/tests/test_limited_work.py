"""Requests that are at work through both limited transports: their holds, their retries, and what they have cost."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import httpx
import pytest
from sluice_client import (
    AsyncLimitedTransport,
    AsyncSluiceClient,
    LimitedOptions,
    LimitedTransport,
    SluiceClient,
    SluicePermitLostError,
)

from .conftest import GONE, Service, Vendor, meanwhile

T = TypeVar("T")
Handler = Callable[[httpx.Request], httpx.Response]
HELD: LimitedOptions = {"hold_millis": 60_000}
# It does not lapse before a renewal on a machine that stands still for a while.
RENEWED: LimitedOptions = {"hold_millis": 4000}
ESTIMATE = 100
CORRECTED: LimitedOptions = {"hold_millis": 60_000, "hits": ESTIMATE, "corrects_hits": True}


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body in chunks. A function is called for its chunk."""

    def __init__(self, chunks: Iterable[bytes | Callable[[], bytes]]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            yield chunk() if callable(chunk) else chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield await asyncio.to_thread(chunk) if callable(chunk) else chunk
            # Others have their turn, as during any read of a connection.
            await asyncio.sleep(0)


class Caller:
    """Calls a vendor through one of the limited transports."""

    def __init__(self, is_async: bool, stack: ExitStack) -> None:
        self._stack = stack
        self._runner = stack.enter_context(asyncio.Runner()) if is_async else None

    def open(
        self, url: str, key: str, options: LimitedOptions, vendor: Handler | None, sluice: Handler | None = None
    ) -> "Caller":
        to_vendor = None if vendor is None else httpx.MockTransport(vendor)
        to_sluice = httpx.MockTransport(sluice) if sluice else None
        if self._runner is None:
            client = SluiceClient(url, http=httpx.Client(transport=to_sluice), retries=0, keep_millis=0)
            http = httpx.Client(transport=LimitedTransport(client, key, to_vendor, **options))
            self._send: Callable[[httpx.Request], httpx.Response] = lambda sent: http.send(sent, stream=True)
            self._stack.callback(client.close)
            self._stack.callback(http.close)
            return self
        runner = self._runner
        async_client = AsyncSluiceClient(url, http=httpx.AsyncClient(transport=to_sluice), retries=0, keep_millis=0)
        async_http = httpx.AsyncClient(transport=AsyncLimitedTransport(async_client, key, to_vendor, **options))
        self._send = lambda sent: runner.run(async_http.send(sent, stream=True))
        self._stack.callback(lambda: runner.run(async_client.close()))
        self._stack.callback(lambda: runner.run(async_http.aclose()))
        return self

    def send(self, url: str = "http://vendor", method: str = "POST", **how: Any) -> httpx.Response:
        """Sends a request, and returns its answer before its body is read."""
        return self._send(httpx.Request(method, url, **how))

    def read(self, response: httpx.Response) -> bytes:
        """Reads the rest of a body, or all of it, and closes the response."""
        return response.read() if self._runner is None else self._runner.run(response.aread())

    def chunks(self, response: httpx.Response) -> Iterator[bytes]:
        if self._runner is None:
            yield from response.iter_raw()
            return
        chunks = response.aiter_raw()
        while (chunk := self._runner.run(_next(chunks))) is not None:
            yield chunk

    def close(self, response: httpx.Response) -> None:
        if self._runner is None:
            response.close()
        else:
            self._runner.run(response.aclose())

    def meanwhile(self, wait: Callable[..., T], *args: object) -> T:
        """Waits for something while tasks go on."""
        return meanwhile(self._runner, wait, *args)


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


@pytest.fixture(params=["threads", "tasks"])
def caller(request: pytest.FixtureRequest) -> Iterator[Caller]:
    with ExitStack() as stack:
        yield Caller(request.param == "tasks", stack)


def held(service: Service, key: str) -> int:
    return service.state(key).get("NumHeld", 0)


def streaming(*chunks: bytes | Callable[[], bytes], **headers: str) -> Handler:
    return lambda _: httpx.Response(200, headers=headers, stream=Body(chunks))


def cut() -> bytes:
    raise httpx.ReadError("the connection broke")


def end_hold(service: Service, key: str) -> bytes:
    """As a person ends a hold."""
    [holder] = service.http.get(f"{service.url}/debug/{key}").json()["Holders"]
    assert service.http.delete(f"{service.url}/rate/{key}/holders/{holder['Handle']}").status_code == 200
    return b"2"


class TestHolds:
    def test_is_released_once_a_body_is_read(self, caller: Caller, service: Service, key: str) -> None:
        response = caller.open(service.url, key, HELD, streaming(b"1", b"2")).send()
        assert held(service, key) == 1

        assert caller.read(response) == b"12"

        assert held(service, key) == 0

    def test_is_released_if_a_response_is_closed(self, caller: Caller, service: Service, key: str) -> None:
        response = caller.open(service.url, key, HELD, streaming(b"1", b"2")).send()
        assert next(caller.chunks(response)) == b"1"
        assert held(service, key) == 1

        caller.close(response)

        assert held(service, key) == 0

    def test_is_released_if_a_body_is_cut(self, caller: Caller, service: Service, key: str) -> None:
        response = caller.open(service.url, key, HELD, streaming(b"1", cut)).send()

        with pytest.raises(httpx.ReadError):
            caller.read(response)
        caller.close(response)

        assert held(service, key) == 0

    def test_is_released_if_the_request_fails_although_it_may_have_arrived(
        self, caller: Caller, service: Service, vendor: Vendor, key: str
    ) -> None:
        vendor.loses = True
        opened = caller.open(service.url, key, HELD, None)
        for url, error in ((vendor.url, httpx.RemoteProtocolError), (GONE, httpx.ConnectError)):
            with pytest.raises(error):
                opened.send(url, "GET")
            assert held(service, key) == 0

    def test_is_renewed_while_a_body_is_read(self, caller: Caller, service: Service, key: str) -> None:
        def renewed() -> bytes:
            service.wait_for_renewal(key)
            return b"2"

        response = caller.open(service.url, key, RENEWED, streaming(b"1", renewed)).send()

        assert caller.read(response) == b"12"

    def test_ends_if_nobody_reads_the_body_for_its_length(self, caller: Caller, service: Service, key: str) -> None:
        response = caller.open(service.url, key, {"hold_millis": 1000}, streaming(b"1")).send()

        caller.meanwhile(service.wait_for, key, "NumHeld", None)

        with pytest.raises(SluicePermitLostError) as raised:
            caller.read(response)
        assert str(raised.value.__cause__) == "nobody has read the body for 1000 ms"

    def test_that_is_lost_ends_the_reading_of_a_body(self, caller: Caller, service: Service, key: str) -> None:
        endless = Body(_endless(lambda: end_hold(service, key)))
        response = caller.open(service.url, key, RENEWED, lambda _: httpx.Response(200, stream=endless)).send()

        with pytest.raises(SluicePermitLostError):
            for _ in caller.chunks(response):
                pass

        caller.close(response)

    def test_of_a_body_that_is_there_already_is_released(self, caller: Caller, service: Service, key: str) -> None:
        caller.open(service.url, key, HELD, lambda _: httpx.Response(204)).send()

        assert held(service, key) == 0

    def test_is_not_renewed_or_released_if_nothing_counts_it(self, caller: Caller, key: str) -> None:
        asked: list[str] = []

        def shadow(sent: httpx.Request) -> httpx.Response:
            asked.append(sent.method)
            return httpx.Response(200, headers={"x-sluice-shadow": "denied"}, json={"request_id": "id"})

        response = caller.open("http://sluice", key, CORRECTED, streaming(b"1"), shadow).send()

        assert caller.read(response) == b"1"
        assert asked == ["POST"]


def _endless(first: Callable[[], bytes]) -> Iterator[bytes | Callable[[], bytes]]:
    yield first
    while True:
        yield b"2"


class TestTasks:
    def test_a_hold_that_is_lost_ends_a_request_without_an_answer_and_a_read_without_bytes(
        self, service: Service, vendor: Vendor, key: str
    ) -> None:
        async def never() -> AsyncIterator[bytes]:
            yield b"1"
            await asyncio.Future()

        vendor.answers.clear()

        async def main() -> None:
            async with AsyncSluiceClient(service.url) as sluice:
                for transport in (None, httpx.MockTransport(lambda _: httpx.Response(200, content=never()))):
                    limited = AsyncLimitedTransport(sluice, key, transport, **RENEWED)
                    async with httpx.AsyncClient(transport=limited, timeout=None) as http:
                        called = asyncio.create_task(http.get(vendor.url))
                        await asyncio.to_thread(service.wait_for, key, "NumHeld", 1)
                        await asyncio.to_thread(end_hold, service, key)
                        with pytest.raises(SluicePermitLostError):
                            await called

        asyncio.run(main())

    def test_a_hold_is_released_if_its_task_is_cancelled(self, service: Service, vendor: Vendor, key: str) -> None:
        vendor.answers.clear()

        async def main() -> None:
            async with AsyncSluiceClient(service.url) as sluice:
                async with httpx.AsyncClient(transport=AsyncLimitedTransport(sluice, key, **HELD)) as http:
                    called = asyncio.create_task(http.get(vendor.url))
                    await asyncio.to_thread(vendor.called.wait)
                    called.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await called

        asyncio.run(main())
        assert held(service, key) == 0


def refusing(times: int, status: int, headers: dict[str, str], bodies: list[bytes]) -> Handler:
    """A vendor whose first answers have a status and headers, and whose later ones are 200."""

    def answer(sent: httpx.Request) -> httpx.Response:
        bodies.append(sent.content)
        if len(bodies) > times:
            return httpx.Response(200, text="OK")
        return httpx.Response(status, headers=headers, stream=Body([b"refused"]))

    return answer


SOON = {"retry-after-ms": "20"}


class TestRetries:
    @pytest.mark.parametrize("status, headers, times", [(429, SOON, 2), (503, SOON, 2), (429, {}, 1)])
    def test_a_refused_request_is_sent_again_and_asks_again(
        self, caller: Caller, service: Service, key: str, status: int, headers: dict[str, str], times: int
    ) -> None:
        bodies: list[bytes] = []
        options: LimitedOptions = {"retries": 2, "max_requests": 9}
        vendor = refusing(times, status, headers, bodies)

        response = caller.open(service.url, key, options, vendor).send(data={"a": "b"})

        assert caller.read(response) == b"OK"
        assert bodies == [b"a=b"] * (times + 1)
        assert service.state(key)["NumApprovedThisWindow"] == times + 1

    @pytest.mark.parametrize(
        "status, headers, options, times",
        [
            (429, SOON, {}, 1),
            (429, SOON, {"retries": 2}, 3),
            (429, {"retry-after": "2"}, {"retries": 2, "max_wait_millis": 1999}, 1),
            (503, {}, {"retries": 2}, 1),
            (500, SOON, {"retries": 2}, 1),
        ],
        ids=["none by default", "no more", "no time for it", "a 503 without a time", "another status"],
    )
    def test_the_last_answer_is_returned(
        self,
        caller: Caller,
        service: Service,
        key: str,
        status: int,
        headers: dict[str, str],
        options: LimitedOptions,
        times: int,
    ) -> None:
        bodies: list[bytes] = []
        opened = caller.open(service.url, key, {**options, "max_requests": 9}, refusing(9, status, headers, bodies))

        response = opened.send()

        assert (response.status_code, caller.read(response)) == (status, b"refused")
        assert len(bodies) == times

    def test_a_request_whose_body_is_a_stream_is_sent_once(self, caller: Caller, service: Service, key: str) -> None:
        calls = []

        def refuse(sent: httpx.Request) -> httpx.Response:
            calls.append(sent)
            return httpx.Response(429, headers=SOON)

        opened = caller.open(service.url, key, {"retries": 2, "max_requests": 9}, refuse)

        assert opened.send(stream=Body([b"a"])).status_code == 429
        assert len(calls) == 1

    def test_the_hold_of_a_refused_request_is_released_before_the_next_one(
        self, caller: Caller, service: Service, key: str
    ) -> None:
        # One at a time.
        opened = caller.open(service.url, key, {**HELD, "retries": 1, "wait": False}, refusing(1, 429, SOON, []))

        assert caller.read(opened.send()) == b"OK"


def events(*data: object) -> bytes:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in data]
    return "".join(f"event: any\r\ndata: {text}\r\n\r\n" for text in texts).encode()


JSON = "application/json; charset=utf-8"
STREAM = "text/event-stream"
OPENAI = b'{"usage":{"total_tokens":12}}'
OPENAI_STREAM = events({"usage": None}, {"choices": [], "usage": {"total_tokens": 7}}, "[DONE]")
ANTHROPIC_STREAM = events(
    {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
    {"type": "message_delta", "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
)
RESPONSES_STREAM = events({"response": {"usage": None}}, {"response": {"usage": {"total_tokens": 12}}})
LARGE = json.dumps({"filler": "x" * 5 * 1024 * 1024, "usage": {"total_tokens": 12}}).encode()


def divided(body: bytes) -> Sequence[bytes]:
    return [body[i : i + 1] for i in range(len(body))]


class TestCorrections:
    @pytest.mark.parametrize(
        "kind, chunks, encoding, used",
        [
            (JSON, [OPENAI], "identity", 12),
            (JSON, [b'{"usage":{"input_tokens":3,"output_tokens":20}}'], "identity", 23),
            (STREAM, divided(OPENAI_STREAM), "identity", 7),
            (STREAM, [ANTHROPIC_STREAM], "identity", 23),
            (STREAM, [RESPONSES_STREAM], "identity", 12),
            (JSON, [gzip.compress(OPENAI)], "gzip", 12),
            (STREAM, divided(gzip.compress(OPENAI_STREAM)), "gzip", 7),
            (JSON, [zlib.compress(OPENAI)], "deflate", 12),
            (JSON, [b"not it"], "gzip", ESTIMATE),
            (JSON, [b'{"usage":'], "identity", ESTIMATE),
            (JSON, [b"[]"], "identity", ESTIMATE),
            ("text/plain", [OPENAI], "identity", ESTIMATE),
            (STREAM, [ANTHROPIC_STREAM[:150]], "identity", ESTIMATE),
            (JSON, [LARGE], "identity", ESTIMATE),
            (STREAM, [b"data: ", LARGE], "identity", ESTIMATE),
            (JSON, [gzip.compress(LARGE)], "gzip", ESTIMATE),
        ],
        ids=[
            *["OpenAI", "Anthropic", "a stream of OpenAI in bytes", "a stream of Anthropic", "a stream of Responses"],
            *["gzip", "a stream in gzip", "deflate", "no gzip", "no JSON", "no usage", "another type", "a cut stream"],
            *["a large body", "a large event", "a body that grows large"],
        ],
    )
    def test_hits_are_those_that_the_answer_says_were_used(
        self, caller: Caller, service: Service, key: str, kind: str, chunks: Sequence[bytes], encoding: str, used: int
    ) -> None:
        key = f"worked-{key}"
        headers = {"content-type": kind, "content-encoding": encoding}
        response = caller.open(service.url, key, CORRECTED, streaming(*chunks, **headers)).send()

        assert b"".join(caller.chunks(response)) == b"".join(chunks)

        # The correction comes before the release, after which only `tokens` counts the approval.
        assert (service.state(key)["NumApprovedThisWindow"], service.used(key, "tokens")) == (0, used)

    @pytest.mark.parametrize("content, used", [(OPENAI_STREAM, 7), (events("1"), ESTIMATE)])
    def test_hits_are_corrected_if_a_stream_is_closed_after_its_last_usage(
        self, caller: Caller, service: Service, key: str, content: bytes, used: int
    ) -> None:
        key = f"worked-{key}"
        vendor = streaming(content, b"more", **{"content-type": STREAM})
        response = caller.open(service.url, key, CORRECTED, vendor).send()
        next(caller.chunks(response))

        caller.close(response)

        assert service.used(key, "tokens") == used

    def test_hits_are_corrected_without_a_hold(self, caller: Caller, service: Service, key: str) -> None:
        key = f"worked-{key}"
        vendor = lambda _: httpx.Response(200, json={"usage": {"total_tokens": 12}})  # noqa: E731
        caller.open(service.url, key, {"hits": ESTIMATE, "corrects_hits": True}, vendor).send()

        assert service.state(key)["NumApprovedThisWindow"] == 12

    @pytest.mark.parametrize(
        "hits_of, used",
        [
            (lambda answer: answer["used"] + 0.1, 4),
            (lambda answer: None, ESTIMATE),
            (lambda answer: -1, ESTIMATE),
            (lambda answer: answer["other"], ESTIMATE),
        ],
        ids=["rounded up", "none", "below 0", "an error"],
    )
    def test_hits_are_those_that_a_function_returns(
        self,
        caller: Caller,
        service: Service,
        key: str,
        hits_of: Callable[[dict[str, Any]], float | None],
        used: int,
    ) -> None:
        key = f"worked-{key}"
        vendor = streaming(b'{"used":3}', **{"content-type": "application/vnd.any+json"})
        response = caller.open(service.url, key, {**CORRECTED, "corrects_hits": hits_of}, vendor).send()

        caller.read(response)

        assert service.used(key, "tokens") == used

    def test_no_encoding_is_asked_for_that_can_not_be_read(self, caller: Caller, service: Service, key: str) -> None:
        asked = []

        def answer(sent: httpx.Request) -> httpx.Response:
            asked.append(sent.headers["accept-encoding"])
            return httpx.Response(204)

        opened = caller.open(service.url, key, {"corrects_hits": True, "max_requests": 9}, answer)
        for accepted in ("gzip, deflate, br, zstd", "br", "gzip;q=0.5"):
            opened.send(headers={"accept-encoding": accepted})

        assert asked == ["gzip, deflate", "identity", "gzip;q=0.5"]

    def test_a_correction_that_fails_does_not_keep_the_hold(self, caller: Caller, key: str) -> None:
        asked: list[str] = []

        def fail(sent: httpx.Request) -> httpx.Response:
            asked.append(sent.method)
            return httpx.Response(500 if sent.method == "PUT" else 200, json={"request_id": "id"})

        vendor = streaming(OPENAI, **{"content-type": JSON})
        response = caller.open("http://sluice", key, CORRECTED, vendor, fail).send()

        assert caller.read(response) == OPENAI
        assert asked == ["POST", "PUT", "DELETE"]
