"""Calls of a vendor through both limited transports, with a Sluice of its own process."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from email.utils import formatdate
from functools import partial

import httpx
import pytest
from sluice_client import (
    Approval,
    AsyncLimitedTransport,
    AsyncSluiceClient,
    LimitedOptions,
    LimitedTransport,
    ReportedLimits,
    SluiceClient,
    SluiceDeniedError,
    SluiceTimeoutError,
    SluiceUnavailableError,
)
from sluice_client._remaining_reports import RemainingReports

from .conftest import GONE, Service, Vendor, hour_left, meanwhile

Key = str | Callable[[httpx.Request], str | None]
Get = Callable[..., httpx.Response]
LIMITS: ReportedLimits = {"requests": "requests", "tokens": "default"}


class GoneError(Exception):
    """What a signal handler raises, as Celery's at a soft time limit."""


class Limited:
    """Makes functions that call vendors through one of the limited transports."""

    def __init__(self, is_async: bool, stack: ExitStack) -> None:
        self._stack = stack
        self.runner = stack.enter_context(asyncio.Runner()) if is_async else None
        # By what requests to Sluice the keys were changed.
        self.told: list[str] = []

    def __call__(
        self,
        url: str,
        key: Key,
        options: LimitedOptions | None = None,
        vendor: httpx.MockTransport | None = None,
        sluice: httpx.MockTransport | None = None,
    ) -> Get:
        if runner := self.runner:
            to_sluice = httpx.AsyncClient(transport=sluice, verify=False, event_hooks={"request": [self._note_async]})
            async_client = AsyncSluiceClient(url, http=to_sluice, retries=0)
            async_http = httpx.AsyncClient(
                transport=AsyncLimitedTransport(async_client, key, vendor, **(options or {}))
            )
            self._stack.callback(lambda: runner.run(async_client.close()))
            self._stack.callback(lambda: runner.run(async_http.aclose()))
            return lambda target, **how: runner.run(async_http.get(target, **how))
        to_sync = httpx.Client(transport=sluice, verify=False, event_hooks={"request": [self._note]})
        client = self._stack.enter_context(SluiceClient(url, http=to_sync, retries=0))
        http = httpx.Client(transport=LimitedTransport(client, key, vendor, **(options or {})))
        return self._stack.enter_context(http).get

    def _note(self, sent: httpx.Request) -> None:
        if sent.method == "PUT":
            self.told.append(sent.url.raw_path.decode())

    async def _note_async(self, sent: httpx.Request) -> None:
        self._note(sent)


@pytest.fixture(params=["threads", "tasks"])
def limited(request: pytest.FixtureRequest) -> Iterator[Limited]:
    with ExitStack() as stack:
        yield Limited(request.param == "tasks", stack)


@pytest.fixture
def near(service: Service) -> Iterator[SluiceClient]:
    """Another caller."""
    with SluiceClient(service.url) as client:
        yield client


def answering(sent: httpx.Request) -> httpx.Response:
    return httpx.Response(200, text="OK")


def saying(requests: int, tokens: int) -> dict[str, str]:
    """The headers of a vendor that answers like OpenAI."""
    return {
        "openai-processing-ms": "12",
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-requests": str(requests),
        "x-ratelimit-remaining-tokens": str(tokens),
        "x-ratelimit-reset-requests": "51s",
        "x-ratelimit-reset-tokens": "6m0s",
    }


class TestAsking:
    def test_a_request_is_sent_only_if_it_is_approved(
        self, limited: Limited, service: Service, vendor: Vendor, key: str
    ) -> None:
        get = limited(service.url, lambda request: request.url.params["key"], {"wait": False})
        url, begun_at = f"{vendor.url}/?key={key}", time.monotonic()

        assert get(url).text == "OK"
        with pytest.raises(SluiceDeniedError) as raised:
            get(url)

        assert raised.value.key == key
        assert raised.value.retry_after in hour_left(begun_at)
        assert vendor.calls == [f"GET /?key={key}"]

    def test_a_request_waits_for_its_turn(
        self, limited: Limited, service: Service, near: SluiceClient, vendor: Vendor, key: str
    ) -> None:
        get = limited(service.url, key)
        held = near.check(key)
        assert isinstance(held, Approval)
        with ThreadPoolExecutor() as threads:
            called = threads.submit(get, vendor.url)
            service.wait_for(key, "NumWaiting", 1)
            assert vendor.calls == []

            near.release(key, held.request_id)

            assert called.result().status_code == 200
        assert vendor.calls == ["GET /"]

    def test_a_wait_ends_by_its_own_time_limits_and_not_by_those_of_httpx(
        self, limited: Limited, service: Service, near: SluiceClient, vendor: Vendor, key: str
    ) -> None:
        near.check(key)
        get, begun_at = limited(service.url, key, {"timeout": 0.2}), time.monotonic()
        with pytest.raises(SluiceTimeoutError):
            get(vendor.url, timeout=0.1)
        assert time.monotonic() - begun_at >= 0.2
        meanwhile(limited.runner, service.wait_for, key, "NumWaiting", 0)
        with pytest.raises(SluiceDeniedError):
            limited(service.url, key, {"max_wait_millis": 100})(vendor.url)
        assert vendor.calls == []

    def test_the_options_of_a_check_are_sent(
        self, limited: Limited, service: Service, near: SluiceClient, key: str
    ) -> None:
        held = []

        def answer(sent: httpx.Request) -> httpx.Response:
            held.append(service.state(key)["NumHeld"])
            return httpx.Response(200)

        options: LimitedOptions = {"hits": 2, "max_requests": 3, "hold_millis": 60_000}
        limited(service.url, key, options, httpx.MockTransport(answer))("http://vendor")
        assert held == [2]

        limited(service.url, key, {"hits": 2}, httpx.MockTransport(answering))("http://vendor")
        [left] = near.check(key).quota
        assert (left.limit, left.remaining) == (3, 0)

    # A request of a wait is answered after 25 s, and its answer has 5 s.
    @pytest.mark.parametrize("options, seconds", [({}, 30), ({"wait": False}, 5), ({"timeout": 7.0}, 7)])
    def test_a_request_to_sluice_is_as_long_as_its_answer_may_take(
        self, limited: Limited, key: str, options: LimitedOptions, seconds: float | None
    ) -> None:
        asked: list[int] = []

        def approve(sent: httpx.Request) -> httpx.Response:
            asked.append(round(sent.extensions["timeout"]["read"]))
            return httpx.Response(200, json={"request_id": "id"})

        limited("http://sluice", key, options, httpx.MockTransport(answering), httpx.MockTransport(approve))(
            "http://vendor"
        )

        assert asked == [seconds]

    def test_a_redirect_is_a_request_of_its_own(
        self, limited: Limited, service: Service, vendor: Vendor, key: str
    ) -> None:
        vendor.status, vendor.headers = 302, {"location": "/there"}
        get = limited(service.url, key, {"wait": False})

        with pytest.raises(SluiceDeniedError):
            get(vendor.url, follow_redirects=True)

        assert vendor.calls == ["GET /"]

    def test_a_request_without_a_key_is_not_limited(self, limited: Limited, vendor: Vendor) -> None:
        assert limited(GONE, lambda _: None)(vendor.url).text == "OK"

    def test_a_request_is_not_sent_without_a_decision(self, limited: Limited, vendor: Vendor, key: str) -> None:
        with pytest.raises(SluiceUnavailableError):
            limited(GONE, key)(vendor.url)
        assert vendor.calls == []

    def test_requests_use_the_transport_that_is_given(self, limited: Limited, service: Service, key: str) -> None:
        assert limited(service.url, key, vendor=httpx.MockTransport(answering))("http://vendor").text == "OK"


class TestFailing:
    def test_an_approval_is_released_if_there_was_no_connection(
        self, limited: Limited, service: Service, key: str
    ) -> None:
        # It is bound, and does not listen.
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            with pytest.raises(httpx.ConnectError):
                limited(service.url, key)(f"http://127.0.0.1:{bound.getsockname()[1]}")

        assert service.state(key)["NumApprovedThisWindow"] == 0

    def test_an_approval_stays_if_the_answer_is_lost(
        self, limited: Limited, service: Service, vendor: Vendor, key: str
    ) -> None:
        vendor.loses = True
        with pytest.raises(httpx.RemoteProtocolError):
            limited(service.url, key)(vendor.url)

        assert service.state(key)["NumApprovedThisWindow"] == 1

    def test_an_answer_is_closed_if_its_caller_leaves_during_a_report(self, limited: Limited, key: str) -> None:
        closed = []

        class Body(httpx.ByteStream):
            def close(self) -> None:
                closed.append(True)

            async def aclose(self) -> None:
                closed.append(True)

        def vendor(sent: httpx.Request) -> httpx.Response:
            return httpx.Response(200, headers=saying(0, 0), stream=Body(b""))

        def leave(sent: httpx.Request) -> httpx.Response:
            if sent.method == "POST":
                return httpx.Response(200, json={"request_id": "id"})
            raise GoneError

        options: LimitedOptions = {"reports_remaining": True}
        get = limited("http://sluice", key, options, httpx.MockTransport(vendor), httpx.MockTransport(leave))
        with pytest.raises(GoneError):
            get("http://vendor")

        assert closed == [True]


class TestCancelling:
    def test_a_wait_that_is_cancelled_frees_its_place(
        self, service: Service, near: SluiceClient, vendor: Vendor, key: str
    ) -> None:
        near.check(key)

        async def main() -> None:
            async with AsyncSluiceClient(service.url) as sluice:
                async with httpx.AsyncClient(transport=AsyncLimitedTransport(sluice, key)) as http:
                    called = asyncio.create_task(http.get(vendor.url))
                    await asyncio.to_thread(service.wait_for, key, "NumWaiting", 1)
                    called.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await called
                    await asyncio.to_thread(service.wait_for, key, "NumWaiting", 0)

        asyncio.run(main())
        assert vendor.calls == []

    def test_an_approval_stays_if_its_request_is_cancelled_on_its_way(
        self, service: Service, vendor: Vendor, key: str
    ) -> None:
        vendor.answers.clear()

        async def main() -> None:
            async with AsyncSluiceClient(service.url) as sluice:
                async with httpx.AsyncClient(transport=AsyncLimitedTransport(sluice, key)) as http:
                    called = asyncio.create_task(http.get(vendor.url))
                    await asyncio.to_thread(vendor.called.wait)
                    called.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await called

        asyncio.run(main())
        assert service.state(key)["NumApprovedThisWindow"] == 1


class TestPausing:
    @pytest.mark.parametrize(
        "status, retry_after, millis",
        [
            (429, "30", 30_000),
            (503, "30", 30_000),
            (429, "in an hour", 3_600_000),
            (429, "99999999", 86_400_000),
        ],
    )
    def test_an_answer_that_asks_to_wait_pauses_its_key(
        self, limited: Limited, service: Service, vendor: Vendor, key: str, status: int, retry_after: str, millis: int
    ) -> None:
        date = formatdate(time.time() + 3600, usegmt=True)
        vendor.status, vendor.headers = status, {"retry-after": date if retry_after == "in an hour" else retry_after}

        assert limited(service.url, key, {"pauses_key": True})(vendor.url).status_code == status

        assert millis - 20_000 < service.state(key)["PausedMillis"] <= millis

    @pytest.mark.parametrize(
        "options, status, retry_after",
        [
            ({}, 429, "30"),
            ({"pauses_key": True}, 500, "30"),
            ({"pauses_key": True}, 429, "soon"),
            ({"pauses_key": True}, 429, "Thu, 01 Jan 1970 00:00:00 GMT"),
            ({"pauses_key": True}, 429, None),
        ],
        ids=["not told to", "another status", "no time", "a time that is over", "no header"],
    )
    def test_other_answers_pause_nothing(
        self,
        limited: Limited,
        service: Service,
        vendor: Vendor,
        key: str,
        options: LimitedOptions,
        status: int,
        retry_after: str | None,
    ) -> None:
        vendor.status, vendor.headers = status, {} if retry_after is None else {"retry-after": retry_after}

        assert limited(service.url, key, options)(vendor.url).status_code == status

        assert limited.told == []


    def test_does_not_shorten_a_longer_pause(
        self, limited: Limited, service: Service, near: SluiceClient, vendor: Vendor, key: str
    ) -> None:
        def refuse(sent: httpx.Request) -> httpx.Response:
            # Another answer asks for more while this one is on its way.
            near.pause(key, 3_600_000)
            return httpx.Response(429, headers={"retry-after": "1"})

        limited(service.url, key, {"pauses_key": True}, httpx.MockTransport(refuse))("http://vendor")

        assert service.state(key)["PausedMillis"] > 3_000_000


class TestReporting:
    def test_what_remains_of_requests_and_tokens_is_reported_each_to_its_limit(
        self, limited: Limited, service: Service, near: SluiceClient, vendor: Vendor, key: str
    ) -> None:
        key = f"llm-{key}"
        vendor.headers = saying(12, 345)

        limited(service.url, key, {"reports_remaining": LIMITS})(vendor.url)

        path = f"/rate/{key}?remaining="
        assert limited.told == [f"{path}12&resetMillis=51000&limit=requests", f"{path}345&resetMillis=360000"]
        # Any caller finds less from now on.
        left = near.check(key).quota
        assert [(quota.name, quota.remaining) for quota in left] == [("default", 344), ("requests", 11)]

    @pytest.mark.parametrize("options, same, less", [({"hits": 10}, 990, 979), ({"wait": False}, 999, 997)])
    def test_nothing_is_reported_but_less_than_sluice_believes(
        self,
        limited: Limited,
        service: Service,
        vendor: Vendor,
        key: str,
        options: LimitedOptions,
        same: int,
        less: int,
    ) -> None:
        key = f"llm-{key}"
        get = limited(service.url, key, {"reports_remaining": LIMITS, **options})
        vendor.headers = saying(99, same)
        get(vendor.url)
        assert limited.told == []

        vendor.headers = saying(99, less)
        get(vendor.url)
        assert limited.told == [f"/rate/{key}?remaining={less}&resetMillis=360000"]

    def test_requests_are_reported_to_the_own_limit_by_default_and_tokens_to_none(
        self, limited: Limited, service: Service, vendor: Vendor, key: str
    ) -> None:
        vendor.headers = saying(0, 0)

        limited(service.url, key, {"max_requests": 20, "reports_remaining": True})(vendor.url)

        assert limited.told == [f"/rate/{key}?remaining=0&resetMillis=51000"]

    def test_the_least_of_a_second_is_reported_at_its_end(
        self, limited: Limited, service: Service, vendor: Vendor, key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = f"llm-{key}"
        now, begun_at = 0, time.monotonic()
        # However long the calls take, they are in one second for the transport.
        reports = partial(RemainingReports, now=lambda: now)
        monkeypatch.setattr("sluice_client._limited_calls.RemainingReports", reports)
        get = limited(
            service.url,
            lambda sent: key if sent.url.query == b"" else None,
            {"reports_remaining": {"requests": "requests"}},
        )
        for remaining in (12, 5, 8):
            vendor.headers = saying(remaining, 999)
            get(vendor.url)
        now = 1
        # A report that was due during the calls is due again a second later.
        put_off = range(int(time.monotonic() - begun_at) + 1)

        while len(limited.told) == 1:
            # The event loop runs during a request.
            get(f"{vendor.url}?unlimited")

        path = f"/rate/{key}?remaining="
        assert limited.told[0] == f"{path}12&resetMillis=51000&limit=requests"
        assert limited.told[1] in [f"{path}5&resetMillis={50_000 - 1000 * times}&limit=requests" for times in put_off]

    @pytest.mark.parametrize("options", [{}, {"reports_remaining": False}, {"reports_remaining": {}}])
    def test_nothing_is_reported_unless_told_to(
        self,
        limited: Limited,
        service: Service,
        vendor: Vendor,
        key: str,
        options: LimitedOptions,
    ) -> None:
        vendor.headers = saying(0, 0)

        limited(service.url, key, {"max_requests": 20, **options})(vendor.url)

        assert limited.told == []

    def test_the_answer_is_returned_although_sluice_fails(self, limited: Limited, key: str) -> None:
        def fail(sent: httpx.Request) -> httpx.Response:
            if sent.method == "POST":
                return httpx.Response(200, json={"request_id": "id"})
            return httpx.Response(503, json={"error": "store unavailable"})

        def refuse(sent: httpx.Request) -> httpx.Response:
            return httpx.Response(429, headers={**saying(0, 0), "retry-after": "1"}, text="refused")

        options: LimitedOptions = {"reports_remaining": LIMITS, "pauses_key": True}
        get = limited("http://sluice", key, options, httpx.MockTransport(refuse), httpx.MockTransport(fail))

        assert get("http://vendor").text == "refused"
        assert len(limited.told) == 3


class TestReportsToATokenBucket:
    def test_pause_the_key_if_nothing_remains_until_that_resets(
        self, limited: Limited, service: Service, vendor: Vendor, key: str
    ) -> None:
        key = f"bucket-{key}"
        vendor.headers = saying(5, 0)

        limited(service.url, key, {"reports_remaining": LIMITS})(vendor.url)

        assert limited.told[1:] == [f"/rate/{key}?remaining=0&resetMillis=360000", f"/rate/{key}?pauseMillis=360000&canShorten=false"]
        assert 240_000 < service.state(key)["PausedMillis"] <= 360_000

    def test_pause_nothing_if_something_remains(
        self, limited: Limited, service: Service, vendor: Vendor, key: str
    ) -> None:
        key = f"bucket-{key}"
        vendor.headers = saying(5, 1)

        limited(service.url, key, {"reports_remaining": {"tokens": "default"}})(vendor.url)

        assert limited.told == [f"/rate/{key}?remaining=1&resetMillis=360000"]

    @pytest.mark.parametrize("retry_after, millis", [("30", 360_000), ("3600", 3_600_000)])
    def test_pause_it_once_with_retry_after_for_the_longer_time(
        self,
        limited: Limited,
        service: Service,
        vendor: Vendor,
        key: str,
        retry_after: str,
        millis: int,
    ) -> None:
        key = f"bucket-{key}"
        vendor.status, vendor.headers = 429, {**saying(5, 0), "retry-after": retry_after}

        options: LimitedOptions = {"reports_remaining": {"tokens": "default"}, "pauses_key": True}
        limited(service.url, key, options)(vendor.url)

        assert limited.told[1:] == [f"/rate/{key}?pauseMillis={millis}&canShorten=false"]


class TestGroups:
    @pytest.mark.parametrize(
        "options, told",
        [
            ({"pauses_key": "group", "group": "a"}, ["pauseMillis=30000&canShorten=false&group=a"]),
            ({"pauses_key": "group"}, ["pauseMillis=30000&canShorten=false"]),
            (
                {"reports_remaining": {"requests": "tenant", "per_group": True}, "group": "a"},
                ["remaining=5&resetMillis=51000&limit=tenant&group=a"],
            ),
            # All groups share the own limit, so that it takes no report of one.
            (
                {"reports_remaining": {"tokens": "default", "per_group": True}, "pauses_key": True, "group": "a"},
                [
                    "remaining=0&resetMillis=360000&group=a",
                    "pauseMillis=30000&canShorten=false",
                    "pauseMillis=360000&canShorten=false&group=a",
                ],
            ),
        ],
        ids=["a pause", "a pause without a group", "a report", "a pause instead of a report"],
    )
    def test_pauses_and_reports_are_of_the_group_of_the_call_if_told_so(
        self, limited: Limited, service: Service, vendor: Vendor, key: str, options: LimitedOptions, told: list[str]
    ) -> None:
        key = f"tenants-{key}"
        vendor.status, vendor.headers = 429, {**saying(5, 0), "retry-after": "30"}

        limited(service.url, key, options)(vendor.url)

        assert limited.told == [f"/rate/{key}?{query}" for query in told]


class TestMistakes:
    @pytest.mark.parametrize(
        "options, message",
        [
            ({"pause_key": True}, "unknown option pause_key; did you mean pauses_key?"),
            ({"hold": True}, "unknown option hold; did you mean hold_millis?"),
            ({"reports_remaining": {"token": "default"}}, "unknown unit token; did you mean tokens?"),
            ({"correct_hits": True}, "unknown option correct_hits; did you mean corrects_hits?"),
            ({"corrects_hits": "yes"}, "corrects_hits must be True, False or a function, not 'yes'"),
        ],
    )
    def test_an_unknown_name_is_told(self, options: LimitedOptions, message: str) -> None:
        with SluiceClient(GONE) as sluice, pytest.raises(TypeError) as raised:
            LimitedTransport(sluice, "key", **options)
        assert str(raised.value) == message

    def test_another_value_of_pauses_key_is_told(self) -> None:
        with SluiceClient(GONE) as sluice, pytest.raises(ValueError, match="pauses_key must be .*, not 'groups'"):
            LimitedTransport(sluice, "key", pauses_key="groups")  # type: ignore[arg-type]

    def test_retries_below_0_are_told(self) -> None:
        with SluiceClient(GONE) as sluice, pytest.raises(ValueError, match="retries must be at least 0, not -1"):
            LimitedTransport(sluice, "key", retries=-1)

    def test_a_key_of_another_type_is_told(self) -> None:
        with SluiceClient(GONE) as sluice, pytest.raises(TypeError, match="key must be a str or a function .*, not 5"):
            LimitedTransport(sluice, 5)  # type: ignore[arg-type]

    def test_a_client_of_the_other_kind_is_told(self) -> None:
        with SluiceClient(GONE) as sluice:
            with pytest.raises(TypeError, match="sluice must be an AsyncSluiceClient, not <.*SluiceClient"):
                AsyncLimitedTransport(sluice, "key")  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="sluice must be a SluiceClient, not <.*AsyncSluiceClient"):
                LimitedTransport(AsyncSluiceClient(GONE), "key")  # type: ignore[arg-type]


def test_a_transport_is_closed_with_the_limited_one() -> None:
    closed = []

    class Inner(httpx.MockTransport):
        def close(self) -> None:
            closed.append("close")

        async def aclose(self) -> None:
            closed.append("aclose")

    with SluiceClient(GONE) as sluice:
        LimitedTransport(sluice, "key", Inner(answering)).close()
    asyncio.run(AsyncLimitedTransport(AsyncSluiceClient(GONE), "key", Inner(answering)).aclose())

    assert closed == ["close", "aclose"]
