"""Waits that keep their places, at a Sluice whose answers the test makes, in a time that only passes in pauses."""

import asyncio
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY
from uuid import UUID

import httpx
import pytest
from sluice_client import (
    Approval,
    AsyncLimitedTransport,
    AsyncSluiceClient,
    LimitedTransport,
    SluiceClient,
    SluiceError,
    SluiceTimeoutError,
    SluiceUnavailableError,
    WaitProgress,
)
from sluice_client import _core, _kept_retries, _kept_wait, _permit
from sluice_client._client import BlockingCore
from sluice_client._errors import SluiceDeniedError

Answer = httpx.Response | Exception

APPROVED = httpx.Response(200, json={"request_id": "id"})
RELEASED = httpx.Response(200, json={"request_id": "id"})
NOT_FOUND = httpx.Response(404, json={"error": "request not found", "key": "a"})
DENIED = httpx.Response(429, json={"error": "rate limit exceeded", "key": "a"}, headers={"retry-after": "7"})
LOST = httpx.ReadError("reset")
REFUSED = httpx.ConnectError("refused")
SILENT = httpx.ReadTimeout("silent")


def waiting(position: int = 1) -> httpx.Response:
    return httpx.Response(202, json={"request_id": "id", "position": position, "waitMillis": position * 1000})


def error(status: int, message: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"error": message, "key": "a"}, headers=named)


UNKNOWN = error(400, "unknown parameter keepMillis; did you mean canWait?")
TAKEN_OVER = error(409, _kept_wait.TAKEN_OVER)
USED = error(409, _kept_wait.USED)
HANDED_OVER = error(503, _kept_retries.HANDED_OVER, retry_after="0", connection="close")
STORE_DOWN = error(503, "store unavailable", retry_after="1")


class Sluice:
    """Gives the answers of the test one after the other, and notes the requests and the pauses between them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, is_async: bool) -> None:
        self.is_async = is_async
        self.now = 1000.0
        # How long a request takes, until its time limit.
        self.seconds = 0.0
        self.answers: list[Answer | Callable[[], Answer]] = []
        self.requests: list[httpx.Request] = []
        self.sent_at: list[float] = []
        self.pauses: list[float] = []

        async def sleep(_: object, seconds: float) -> None:
            self.pauses.append(seconds)
            self.now += seconds

        monkeypatch.setattr(BlockingCore, "_sleep", sleep)
        monkeypatch.setattr(AsyncSluiceClient, "_sleep", sleep)
        for module in (_core, _kept_retries, _kept_wait, _permit):
            monkeypatch.setattr(module, "monotonic", lambda: self.now)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self.sent_at.append(self.now)
        answer = self.answers.pop(0)
        limit = request.extensions["timeout"]["read"]
        self.now += self.seconds if limit is None else min(self.seconds, limit)
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def ask(self, *answers: Answer | Callable[[], Answer], url: Any = "http://a", calls: Any = None, **options: Any) -> Any:
        """Waits with these answers. `calls` does several calls instead."""
        self.answers += answers
        keep = {name: options.pop(name) for name in ("keep_millis", "long_poll_millis", "retries") if name in options}
        call = calls or (lambda sluice: sluice.wait("a", **options))
        if not self.is_async:
            with SluiceClient(url, http=httpx.Client(transport=httpx.MockTransport(self._handle)), **keep) as sluice:
                return call(sluice)

        async def main() -> Any:
            http = httpx.AsyncClient(transport=httpx.MockTransport(self._handle))
            async with AsyncSluiceClient(url, http=http, **keep) as sluice:
                return await call(sluice)

        return asyncio.run(main())

    @property
    def asked(self) -> list[dict[str, str]]:
        """The parameters of the checks."""
        return [dict(one.url.params) for one in self.requests if one.method == "POST"]

    @property
    def released(self) -> list[str]:
        return [one.url.path for one in self.requests if one.method == "DELETE"]

    @property
    def preferences(self) -> list[str | None]:
        return [one.headers.get("prefer") for one in self.requests]

    @property
    def hosts(self) -> list[str]:
        return [one.url.host for one in self.requests]

    @property
    def ids(self) -> list[str]:
        return [one["requestId"] for one in self.asked]


@pytest.fixture(params=["threads", "tasks"])
def sluice(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Sluice:
    return Sluice(monkeypatch, request.param == "tasks")


class TestChain:
    def test_a_wait_is_a_chain_of_short_requests_with_one_id(self, sluice: Sluice) -> None:
        sluice.seconds = 25.0
        decision = sluice.ask(waiting(), waiting(), APPROVED, hits=2)

        assert decision.approved
        assert len(set(sluice.ids)) == 1
        assert UUID(sluice.ids[0]).version == 4
        assert sluice.asked[0] | {"requestId": ""} == {
            "hits": "2",
            "canWait": "true",
            "keepMillis": "30000",
            "requestId": "",
        }
        assert sluice.preferences == ["wait=25"] * 3
        assert sluice.pauses == []

    def test_each_wait_has_an_id_of_its_own(self, sluice: Sluice) -> None:
        for _ in range(2):
            sluice.ask(APPROVED)

        assert len(set(sluice.ids)) == 2

    def test_its_requests_and_its_keeping_have_the_length_that_the_client_is_given(self, sluice: Sluice) -> None:
        sluice.ask(APPROVED, keep_millis=5000, long_poll_millis=9001)

        assert (sluice.asked[0]["keepMillis"], sluice.preferences) == ("5000", ["wait=10"])

    def test_a_wait_that_keeps_no_place_is_one_request_without_an_id(self, sluice: Sluice) -> None:
        sluice.ask(APPROVED, keep_millis=0, max_wait_millis=2000)

        assert sluice.asked == [{"canWait": "true", "maxWaitMillis": "2000"}]
        assert sluice.preferences == [None]
        assert sluice.requests[0].extensions["timeout"]["read"] is None

    def test_a_denial_ends_it(self, sluice: Sluice) -> None:
        decision = sluice.ask(waiting(), DENIED)

        assert (decision.approved, decision.retry_after) == (False, 7)
        assert sluice.released == []

    def test_requests_that_end_at_once_are_a_second_apart(self, sluice: Sluice) -> None:
        sluice.ask(waiting(), waiting(), APPROVED)

        assert sluice.pauses == [1.0, 1.0]


@pytest.mark.parametrize("client", [SluiceClient, AsyncSluiceClient])
def test_times_of_waits_that_are_none_are_named(client: type[SluiceClient | AsyncSluiceClient]) -> None:
    with pytest.raises(ValueError, match="keep_millis must be at least 0, not -1"):
        client("http://a", keep_millis=-1)
    with pytest.raises(ValueError, match="long_poll_millis must be above 0, not 0"):
        client("http://a", long_poll_millis=0)


class TestFailures:
    @pytest.mark.parametrize("failure", [LOST, REFUSED, SILENT])
    def test_an_address_that_fails_is_followed_by_the_next_at_once(self, sluice: Sluice, failure: Exception) -> None:
        decision = sluice.ask(failure, failure, APPROVED, url=["http://a", "http://b", "http://c"])

        assert decision.approved
        assert (sluice.hosts, sluice.pauses) == (["a", "b", "c"], [])
        assert len(set(sluice.ids)) == 1

    @pytest.mark.parametrize("failure", [LOST, SILENT, error(502, "status 502"), error(504, "status 504")])
    def test_one_address_is_asked_again_after_growing_pauses(self, sluice: Sluice, failure: Answer) -> None:
        decision = sluice.ask(*[failure] * 5, APPROVED)

        assert decision.approved
        assert len(set(sluice.ids)) == 1
        for pause, least in zip(sluice.pauses, [0.1, 0.3, 0.9, 2.7, 2.7], strict=True):
            assert least <= pause <= least * 1.2

    def test_a_replica_that_hands_its_places_over_is_followed_by_another_at_once(self, sluice: Sluice) -> None:
        assert sluice.ask(HANDED_OVER, APPROVED).approved
        assert sluice.ask(HANDED_OVER, APPROVED, url=["http://a", "http://b"]).approved

        assert (sluice.hosts, sluice.pauses) == (["a", "a", "a", "b"], [])

    def test_a_replica_that_hands_its_places_over_again_and_again_is_not_asked_in_a_row(self, sluice: Sluice) -> None:
        assert sluice.ask(*[HANDED_OVER] * 4, APPROVED).approved

        assert len(sluice.pauses) == 2

    def test_it_is_never_asked_before_retry_after(self, sluice: Sluice) -> None:
        assert sluice.ask(STORE_DOWN, STORE_DOWN, APPROVED).approved

        assert all(1.0 <= pause <= 1.2 for pause in sluice.pauses)
        assert len(set(sluice.ids)) == 1

    def test_it_ends_once_its_place_can_no_longer_be_kept(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceUnavailableError, match="Sluice is unreachable") as raised:
            sluice.ask(waiting(), LOST, *[REFUSED] * 100, keep_millis=10_000)

        assert raised.value.may_have_counted
        lost_at, *_, last_at = [at for at, one in zip(sluice.sent_at, sluice.requests) if one.method == "POST"][1:]
        # The next pause would have ended later.
        assert 6 < last_at - lost_at < 10
        # It may still be there.
        assert sluice.released[0].startswith("/rate/a/")

    def test_without_a_place_it_ends_after_the_retries(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceUnavailableError, match="Sluice is unreachable") as raised:
            sluice.ask(*[REFUSED] * 3, retries=2)

        assert not raised.value.may_have_counted
        assert (len(sluice.pauses), sluice.released) == (2, [])

    def test_a_place_that_is_found_again_may_be_lost_again(self, sluice: Sluice) -> None:
        losses: list[Answer] = [LOST, REFUSED, REFUSED, REFUSED, REFUSED, waiting()]
        assert sluice.ask(*losses * 4, APPROVED, keep_millis=10_000).approved

    def test_something_that_cuts_its_requests_gets_shorter_ones(self, sluice: Sluice) -> None:
        sluice.seconds = 10.0
        sluice.ask(LOST, LOST, APPROVED)

        assert sluice.preferences == ["wait=25", "wait=25", "wait=5"]

    def test_an_accepted_request_without_a_place_is_not_an_answer_from_sluice(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceUnavailableError, match="not an answer from Sluice"):
            sluice.ask(*[httpx.Response(202, text="accepted")] * 30, *[RELEASED] * 5, keep_millis=10_000)

    def test_a_rejection_ends_it(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceError, match="hits must be") as raised:
            sluice.ask(error(400, "hits must be 1 to 10"))

        assert raised.value.status == 400
        assert sluice.released == []

    def test_a_rejection_of_a_later_request_gives_the_place_up(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceError, match="token"):
            sluice.ask(waiting(), error(401, "token is unknown"), RELEASED)

        assert sluice.released == [f"/rate/a/{sluice.ids[0]}"]


class TestConflicts:
    def test_a_place_that_was_taken_over_is_asked_for_at_most_once_a_second(self, sluice: Sluice) -> None:
        assert sluice.ask(TAKEN_OVER, TAKEN_OVER, APPROVED).approved

        assert len(set(sluice.ids)) == 1
        assert sluice.pauses == [1.0, 1.0]

    def test_a_wait_whose_hold_has_lapsed_unnoticed_begins_again_with_another_id(self, sluice: Sluice) -> None:
        assert sluice.ask(LOST, USED, APPROVED).approved

        first, second, third = sluice.ids
        assert first == second != third

    def test_another_conflict_ends_it(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceError) as raised:
            sluice.ask(waiting(), error(409, "a DELETE has withdrawn this request"), NOT_FOUND, NOT_FOUND)

        assert raised.value.status == 409


class TestTimes:
    def test_the_longest_wait_counts_from_the_first_request(self, sluice: Sluice) -> None:
        sluice.seconds = 20.0
        decision = sluice.ask(waiting(), LOST, waiting(), DENIED, max_wait_millis=50_000)

        assert not decision.approved
        # Sluice measures the wait from the first ticket, so that it gets the same number, until the time is over.
        assert [one["maxWaitMillis"] for one in sluice.asked] == ["50000"] * 3 + ["0"]
        assert sluice.preferences == ["wait=25", "wait=25", "wait=10", "wait=1"]

    def test_a_longest_wait_that_is_no_wait_is_sent_as_it_is(self, sluice: Sluice) -> None:
        sluice.ask(DENIED, max_wait_millis=0)
        with pytest.raises(SluiceError):
            sluice.ask(error(400, "maxWaitMillis must be 0 or more"), max_wait_millis=-5)

        assert [one["maxWaitMillis"] for one in sluice.asked] == ["0", "-5"]

    def test_a_timeout_bounds_all_requests_and_gives_the_place_up(self, sluice: Sluice) -> None:
        sluice.seconds = 25.0
        with pytest.raises(SluiceTimeoutError) as raised:
            sluice.ask(waiting(), waiting(), SILENT, RELEASED, timeout=60)

        assert raised.value.may_have_counted
        assert sluice.requests[2].extensions["timeout"]["read"] == 10.0
        assert sluice.released == [f"/rate/a/{sluice.ids[0]}"]

    def test_a_timeout_ends_a_pause(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceTimeoutError):
            sluice.ask(waiting(), RELEASED, timeout=0.5)

        assert sluice.pauses == [0.5]

    def test_a_failure_whose_pause_would_last_longer_than_the_timeout_ends_it(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceUnavailableError, match="store unavailable"):
            sluice.ask(STORE_DOWN, RELEASED, timeout=0.5)

        assert sluice.pauses == []


class TestLeaving:
    def test_what_is_not_found_is_released_again_after_a_second(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceTimeoutError):
            sluice.ask(SILENT, NOT_FOUND, RELEASED, timeout=0.001)

        assert sluice.released == [f"/rate/a/{sluice.ids[0]}"] * 2
        assert sluice.pauses == [1.0]

    def test_a_release_that_fails_is_ignored(self, sluice: Sluice) -> None:
        with pytest.raises(SluiceTimeoutError):
            sluice.ask(SILENT, error(403, "the token may not release"), timeout=0.001)

        assert len(sluice.released) == 1

    def test_an_interrupt_gives_the_place_up(self, sluice: Sluice) -> None:
        class GoneError(BaseException):
            """As KeyboardInterrupt, which pytest would take for its own."""

        def interrupt() -> Answer:
            raise GoneError

        with pytest.raises(GoneError):
            sluice.ask(interrupt, RELEASED)

        assert sluice.released == [f"/rate/a/{sluice.ids[0]}"]


class TestProgress:
    def test_it_is_told_at_once_and_after_each_request(self, sluice: Sluice) -> None:
        told: list[WaitProgress] = []
        sluice.ask(waiting(3), waiting(2), waiting(1), APPROVED, on_progress=told.append)

        assert told == [WaitProgress(3, 3000), WaitProgress(2, 2000), WaitProgress(1, 1000)]
        assert sluice.preferences == ["wait=0", "wait=25", "wait=25", "wait=25"]
        # Not after the first.
        assert sluice.pauses == [1.0, 1.0]

    def test_an_error_of_the_callback_ends_the_wait(self, sluice: Sluice) -> None:
        def fail(_: WaitProgress) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            sluice.ask(waiting(), RELEASED, on_progress=fail)

        assert sluice.released == [f"/rate/a/{sluice.ids[0]}"]

    def test_a_permit_and_a_limited_transport_pass_it_on(self, sluice: Sluice) -> None:
        told: list[WaitProgress] = []
        vendor = httpx.MockTransport(lambda _: httpx.Response(200))

        def permit(client: SluiceClient) -> None:
            with client.permit("a", on_progress=told.append):
                pass
            transport = LimitedTransport(client, "a", vendor, on_progress=told.append)
            httpx.Client(transport=transport).get("http://vendor")

        async def permit_async(client: AsyncSluiceClient) -> None:
            async with client.permit("a", on_progress=told.append):
                pass
            transport = AsyncLimitedTransport(client, "a", vendor, on_progress=told.append)
            await httpx.AsyncClient(transport=transport).get("http://vendor")

        answers = [waiting(2), APPROVED, RELEASED, waiting(1), APPROVED]
        sluice.ask(*answers, calls=permit_async if sluice.is_async else permit)

        assert [one.position for one in told] == [2, 1]

    def test_a_check_that_does_not_wait_has_none(self, sluice: Sluice) -> None:
        def permit(client: SluiceClient) -> None:
            with client.permit("a", wait=False, on_progress=print):
                pass

        async def permit_async(client: AsyncSluiceClient) -> None:
            async with client.permit("a", wait=False, on_progress=print):
                pass

        with pytest.raises(SluiceDeniedError):
            sluice.ask(DENIED, calls=permit_async if sluice.is_async else permit)
        assert sluice.asked == [{"holdMillis": "30000", "holder": ANY}]


class TestServiceOfBefore:
    def test_waits_are_plain_after_one_rejection(self, sluice: Sluice) -> None:
        def wait(client: SluiceClient) -> list[Any]:
            return [client.wait("a", hits=2, max_wait_millis=9000, timeout=10) for _ in range(3)]

        async def wait_async(client: AsyncSluiceClient) -> list[Any]:
            return [await client.wait("a", hits=2, max_wait_millis=9000, timeout=10) for _ in range(3)]

        decisions = sluice.ask(UNKNOWN, *[APPROVED] * 3, calls=wait_async if sluice.is_async else wait)

        assert all(isinstance(decision, Approval) for decision in decisions)
        assert sluice.asked[1:] == [{"hits": "2", "canWait": "true", "maxWaitMillis": "9000"}] * 3
        assert sluice.preferences[1:] == [None] * 3
        assert [one.extensions["timeout"]["read"] for one in sluice.requests[1:]] == [10.0] * 3

    def test_the_rejection_is_forgotten_after_ten_minutes(self, sluice: Sluice) -> None:
        def later() -> Answer:
            sluice.now += 601
            return APPROVED

        def wait(client: SluiceClient) -> list[Any]:
            return [client.wait("a"), client.wait("a")]

        async def wait_async(client: AsyncSluiceClient) -> list[Any]:
            return [await client.wait("a"), await client.wait("a")]

        sluice.ask(UNKNOWN, later, APPROVED, calls=wait_async if sluice.is_async else wait)

        assert ["requestId" in one for one in sluice.asked] == [True, False, True]

    def test_a_wait_that_is_rejected_goes_on_with_what_is_left_of_its_times(self, sluice: Sluice) -> None:
        sluice.seconds = 20.0
        sluice.ask(UNKNOWN, APPROVED, max_wait_millis=90_000, timeout=100)

        assert sluice.asked[-1] == {"canWait": "true", "maxWaitMillis": "70000"}
        assert sluice.requests[-1].extensions["timeout"]["read"] == 80.0

    def test_a_place_that_meets_it_later_is_given_up(self, sluice: Sluice) -> None:
        assert sluice.ask(waiting(), UNKNOWN, RELEASED, APPROVED).approved

        assert sluice.released == [f"/rate/a/{sluice.asked[0]['requestId']}"]

    def test_a_service_that_keeps_places_for_less_time_keeps_them_for_that(self, sluice: Sluice) -> None:
        too_long = error(400, "keepMillis must be at most 10000 for this key")
        assert sluice.ask(too_long, APPROVED).approved

        assert [one["keepMillis"] for one in sluice.asked] == ["30000", "10000"]

    def test_a_service_that_keeps_none_gets_plain_waits(self, sluice: Sluice) -> None:
        assert sluice.ask(error(400, "keepMillis must be at most 0 for this key"), APPROVED).approved

        assert sluice.asked[-1] == {"canWait": "true"}

