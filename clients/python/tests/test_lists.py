"""Lanes and groups in what the clients send."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest
from sluice_client import AsyncLimitedTransport, AsyncSluiceClient, LimitedTransport, SluiceClient

BOTH: dict[str, Any] = {"lane": "batch", "group": "tenant 7"}

Answer = Callable[[httpx.Request], httpx.Response]


def approve(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"request_id": "id", "waitMillis": 0})


class Recorded:
    """Both clients, and what they have asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, str | None]] = []
        self.answers: Iterator[Answer] = iter(())

    def _handle(self, request: httpx.Request) -> httpx.Response:
        if request.method in ("POST", "GET"):
            params = request.url.params
            self.asked.append((params.get("lane"), params.get("group")))
        return next(self.answers, approve)(request)

    def __call__(self, ask: Callable[[SluiceClient], object], **options: Any) -> None:
        http = httpx.Client(transport=httpx.MockTransport(self._handle))
        with SluiceClient("http://a", http=http, **options) as sluice:
            ask(sluice)

    def do_async(self, ask: Callable[[AsyncSluiceClient], Awaitable[object]]) -> None:
        async def main() -> None:
            http = httpx.AsyncClient(transport=httpx.MockTransport(self._handle))
            async with AsyncSluiceClient("http://a", http=http) as sluice:
                await ask(sluice)

        asyncio.run(main())


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


def permit(sluice: SluiceClient) -> None:
    with sluice.permit("a", **BOTH, hold=False):
        pass


async def permit_async(sluice: AsyncSluiceClient) -> None:
    async with sluice.permit("a", **BOTH, hold=False):
        pass


# Both clients have these methods, and the async one returns what can be awaited.
ONE_REQUEST: list[Callable[[Any], Any]] = [
    lambda sluice: sluice.check("a", **BOTH),
    lambda sluice: sluice.wait("a", **BOTH),
    lambda sluice: sluice.peek("a", **BOTH),
]
CALLS = ["check", "wait", "peek", "permit"]


@pytest.mark.parametrize("ask", [*ONE_REQUEST, permit], ids=CALLS)
def test_a_call_names_its_lane_and_its_group(recorded: Recorded, ask: Callable[[SluiceClient], object]) -> None:
    recorded(ask)
    assert recorded.asked == [("batch", "tenant 7")]


@pytest.mark.parametrize("ask", [*ONE_REQUEST, permit_async], ids=CALLS)
def test_an_async_call_names_its_lane_and_its_group(
    recorded: Recorded, ask: Callable[[AsyncSluiceClient], Awaitable[object]]
) -> None:
    recorded.do_async(ask)
    assert recorded.asked == [("batch", "tenant 7")]


def test_each_request_of_a_wait_names_its_lane_and_its_group(recorded: Recorded) -> None:
    waits = httpx.Response(202, json={"request_id": "id", "position": 1, "waitMillis": 1000})
    recorded.answers = iter([lambda _: waits])
    recorded(lambda sluice: sluice.wait("a", **BOTH, on_progress=lambda _: None))
    assert recorded.asked == [("batch", "tenant 7")] * 2


def test_a_wait_of_one_request_names_its_lane_and_its_group(recorded: Recorded) -> None:
    recorded(lambda sluice: sluice.wait("a", **BOTH), keep_millis=0)
    assert recorded.asked == [("batch", "tenant 7")]


def test_a_limited_transport_names_its_lane_and_its_group(recorded: Recorded) -> None:
    def call(sluice: SluiceClient) -> None:
        limited = LimitedTransport(sluice, "a", httpx.MockTransport(approve), **BOTH)
        with httpx.Client(transport=limited) as http:
            http.get("http://vendor")

    recorded(call)
    assert recorded.asked == [("batch", "tenant 7")]


def test_an_async_limited_transport_names_its_lane_and_its_group(recorded: Recorded) -> None:
    async def call(sluice: AsyncSluiceClient) -> None:
        limited = AsyncLimitedTransport(sluice, "a", httpx.MockTransport(approve), **BOTH)
        async with httpx.AsyncClient(transport=limited) as http:
            await http.get("http://vendor")

    recorded.do_async(call)
    assert recorded.asked == [("batch", "tenant 7")]


def test_a_call_without_a_lane_and_a_group_names_none(recorded: Recorded) -> None:
    recorded(lambda sluice: sluice.check("a", lane=None, group=None))
    assert recorded.asked == [(None, None)]


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("", "group must be 1 to 64 bytes of UTF-8, not 0"),
        ("ä" * 33, "group must be 1 to 64 bytes of UTF-8, not 66"),
        ("\ud800", "group is not valid Unicode"),
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda sluice, group: sluice.check("a", group=group),
        lambda sluice, group: sluice.wait("a", group=group),
        lambda sluice, group: sluice.peek("a", group=group),
        lambda sluice, group: sluice.permit("a", group=group).__enter__(),
    ],
    ids=CALLS,
)
def test_a_group_that_is_empty_or_too_long_is_an_error_before_anything_is_sent(
    recorded: Recorded, ask: Callable[[SluiceClient, str], object], group: str, message: str
) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise AssertionError(f"{request.method} {request.url} was sent")

    recorded.answers = iter([refuse])
    with pytest.raises(ValueError, match=message):
        recorded(lambda sluice: ask(sluice, group))
