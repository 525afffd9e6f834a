import signal
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from sluice_client import (
    Approval,
    Approved,
    AsyncSluiceClient,
    Denial,
    Peek,
    Quota,
    SluiceClient,
    SluiceDeniedError,
    SluiceError,
    SluicePermitLostError,
    SluiceTimeoutError,
    SluiceUnavailableError,
    Waiting,
)

from .conftest import Service, hour_left


def approval(client: SluiceClient, key: str) -> str:
    decision = client.check(key)
    assert isinstance(decision, Approval)
    return decision.request_id


def one_of_three(reset_seconds: int) -> Quota:
    return Quota("default", limit=3, remaining=1, reset_seconds=reset_seconds, window_seconds=3600)


def test_a_check_is_approved_and_then_denied_with_what_is_left(sluice: SluiceClient, key: str) -> None:
    begun_at = time.monotonic()
    first, second = sluice.check(key, max_requests=3, hits=2), sluice.check(key, hits=2)
    left = hour_left(begun_at)

    assert isinstance(first, Approval)
    assert (first.uncounted, first.quota) == (False, (one_of_three(3600),))
    assert second in [Denial(retry_after=one, limit=None, quota=(one_of_three(one),)) for one in left]


def test_a_peek_says_what_a_check_would_get_and_counts_nothing(service: Service, sluice: SluiceClient, key: str) -> None:
    assert sluice.peek(key) == Peek(True, 0, None, (Quota("default", 1, 1, 3600, 3600),))
    assert service.state(key)["Found"] is False
    begun_at = time.monotonic()
    sluice.check(key, max_requests=3, hits=2)
    assert sluice.peek(key).allowed
    peek = sluice.peek(key, hits=2)
    assert (peek.allowed, peek.limit) == (False, None)
    assert peek.quota in [(one_of_three(left),) for left in hour_left(begun_at)]
    assert 3_500_000 < peek.wait_millis <= 3_600_000
    with pytest.raises(SluiceError) as raised:
        sluice.peek(key, hits=4)
    assert raised.value.status == 400


def test_a_permit_tells_of_a_release_that_fails(ending_service: Service, key: str) -> None:
    errors: list[SluiceError] = []
    with SluiceClient(ending_service.url, retries=0) as sluice:
        with sluice.permit(key, on_release_error=errors.append):
            ending_service.process.kill()
            ending_service.process.wait()
    assert [str(error) for error in errors] == ["Sluice is unreachable"]


def test_the_status_of_a_request_says_whether_it_waits_or_is_approved(
    service: Service, sluice: SluiceClient, key: str
) -> None:
    plain, waiting_id = approval(sluice, key), str(uuid.uuid4())
    assert sluice.request_status(key, plain) == Approved(hold_millis=None)
    with ThreadPoolExecutor() as threads:
        query = f"?canWait=true&requestId={waiting_id}"
        waiting = threads.submit(httpx.post, f"{service.url}/rate/{key}{query}", timeout=60)
        service.wait_for(key, "NumWaiting", 1)
        status = sluice.request_status(key, waiting_id)
        assert isinstance(status, Waiting)
        assert status.position == 1
        assert 3_500_000 < status.wait_millis <= 3_600_000
        sluice.release(key, plain)
        assert waiting.result().status_code == 200
    assert sluice.request_status(key, waiting_id) == Approved(hold_millis=None)
    assert sluice.request_status(key, plain) is None
    with pytest.raises(SluiceError) as raised:
        sluice.request_status(key, "no-uuid")
    assert raised.value.status == 405


def test_the_status_of_a_held_request_says_until_when(sluice: SluiceClient, key: str) -> None:
    decision = sluice.check(key, hold_millis=60_000)
    assert isinstance(decision, Approval)
    status = sluice.request_status(key, decision.request_id)
    assert isinstance(status, Approved)
    assert status.hold_millis is not None
    assert 0 < status.hold_millis <= 60_000


def test_a_wait_ends_with_a_release(service: Service, sluice: SluiceClient, key: str) -> None:
    request_id = approval(sluice, key)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(sluice.wait, key)
        service.wait_for(key, "NumWaiting", 1)
        assert sluice.release(key, request_id) is True

        assert waiting.result().approved
    assert sluice.release(key, request_id) is False


def test_no_timeout_of_httpx_cuts_a_wait(service: Service, sluice: SluiceClient, key: str) -> None:
    # The timeout of the client is shorter than the wait, as those 5 s of httpx are.
    with SluiceClient(service.url, timeout=0.3) as client, ThreadPoolExecutor() as threads:
        request_id = approval(sluice, key)
        waiting = threads.submit(client.wait, key)
        service.wait_for(key, "NumWaiting", 1)
        limited = client.wait(f"{key} full", max_requests=1)
        assert limited.approved
        assert not client.wait(f"{key} full", max_wait_millis=600).approved
        with pytest.raises(SluiceTimeoutError):
            client.wait(key, timeout=0.6)

        assert not waiting.done()
        sluice.release(key, request_id)
        assert waiting.result().approved


def test_a_wait_that_is_too_long_is_denied_or_times_out(service: Service, sluice: SluiceClient, key: str) -> None:
    begun_at = time.monotonic()
    approval(sluice, key)

    denied = sluice.wait(key, max_wait_millis=1000)
    assert isinstance(denied, Denial)
    assert denied.retry_after in hour_left(begun_at)
    with pytest.raises(SluiceTimeoutError) as raised:
        sluice.wait(key, timeout=0.2)
    assert raised.value.may_have_counted
    service.wait_for(key, "NumWaiting", 0)


def test_many_waits_leave_connections_for_a_release(service: Service, sluice: SluiceClient, key: str) -> None:
    request_id = approval(sluice, key)
    with ThreadPoolExecutor(max_workers=120) as threads:
        waits = [threads.submit(sluice.wait, key) for _ in range(120)]
        service.wait_for(key, "NumWaiting", 120)
        sluice.check(key, max_requests=121)

        sluice.release(key, request_id)
        assert sum(wait.result().approved for wait in waits) == 120


def test_hits_are_corrected_holds_renewed_and_keys_paused(service: Service, sluice: SluiceClient, key: str) -> None:
    held = sluice.check(key, max_requests=10, hits=3, hold_millis=60_000)
    assert isinstance(held, Approval)

    assert sluice.correct(key, held.request_id, 7)
    assert sluice.renew(key, held.request_id, hold_millis=30_000)
    sluice.pause(key, 60_000)

    state = service.state(key)
    assert (state["NumHeld"], state["PausedMillis"] > 0) == (7, True)
    assert not sluice.check(key).approved
    sluice.pause(key, 1, can_shorten=False)
    assert service.state(key)["PausedMillis"] > 1000
    sluice.pause(key, 0)
    assert sluice.check(key).approved


@pytest.mark.parametrize("name", ["a/b c?d#e", "ü %2F", "..", "."])
def test_a_key_may_have_any_sign(sluice: SluiceClient, key: str, name: str) -> None:
    whole = name if name.startswith(".") else f"{key} {name}"
    request_id = approval(sluice, whole)

    assert sluice.release(whole, request_id)


def test_sluice_rejects_a_wrong_request(sluice: SluiceClient, key: str) -> None:
    with pytest.raises(SluiceError, match="maxRequests must be") as raised:
        sluice.check(key, max_requests=0)
    assert raised.value.status == 400


@pytest.mark.parametrize("url", ["localhost:8080", "", "http://", "ftp://localhost"])
@pytest.mark.parametrize("client", [SluiceClient, AsyncSluiceClient])
def test_an_address_without_http_is_named(client: type[SluiceClient | AsyncSluiceClient], url: str) -> None:
    with pytest.raises(ValueError, match="url must begin with http:// or https://.*, not") as raised:
        client(url)
    assert repr(url) in str(raised.value)


def test_a_key_that_is_not_unicode_is_named(sluice: SluiceClient) -> None:
    with pytest.raises(ValueError, match=r"'\\ud800' is not valid Unicode"):
        sluice.wait("\ud800")


class TestPermit:
    def test_it_is_held_while_its_block_runs_and_then_released(
        self, service: Service, sluice: SluiceClient, key: str
    ) -> None:
        with pytest.raises(ZeroDivisionError):
            with sluice.permit(key, max_requests=2, hits=2) as permit:
                assert service.state(key)["NumHeld"] == 2
                assert sluice.correct(key, permit.request_id, 1)
                raise ZeroDivisionError

        assert service.state(key)["NumApprovedThisWindow"] == 0

    def test_without_a_hold_it_is_released(self, service: Service, sluice: SluiceClient, key: str) -> None:
        with sluice.permit(key, hold=False):
            state = service.state(key)
            assert (state.get("NumHeld"), state["NumApprovedThisWindow"]) == (None, 1)

        assert service.state(key)["NumApprovedThisWindow"] == 0

    def test_its_hold_is_renewed(self, service: Service, sluice: SluiceClient, key: str) -> None:
        with sluice.permit(key, hold_millis=4000) as permit, ThreadPoolExecutor() as threads:
            service.wait_for_renewal(key)
            assert not sluice.check(key).approved
            assert not permit.is_lost
            waiting = threads.submit(sluice.wait, key)
            service.wait_for(key, "NumWaiting", 1)
            sluice.release(key, permit.request_id)
            assert waiting.result().approved

    def test_one_that_waits_for_longer_than_its_hold_begins(
        self, service: Service, sluice: SluiceClient, key: str
    ) -> None:
        held = sluice.check(key, hold_millis=60_000)
        assert isinstance(held, Approval)

        def work() -> bool:
            with sluice.permit(key, hold_millis=3000) as permit:
                return permit.is_lost

        with ThreadPoolExecutor() as threads:
            working = threads.submit(work)
            service.wait_for(key, "NumWaiting", 1)
            # Its turn comes after a whole hold.
            assert not sluice.wait(key, max_wait_millis=3100).approved
            sluice.release(key, held.request_id)
            assert working.result() is False

    def test_a_lost_one_says_so(self, sluice: SluiceClient, key: str) -> None:
        with sluice.permit(key, hold_millis=1000) as permit:
            sluice.release(key, permit.request_id)
            while not permit.is_lost:
                pass
            with pytest.raises(SluicePermitLostError):
                permit.raise_if_lost()

    def test_one_that_is_denied_raises(self, sluice: SluiceClient, key: str) -> None:
        begun_at = time.monotonic()
        approval(sluice, key)

        with pytest.raises(SluiceDeniedError) as raised, sluice.permit(key, wait=False):
            pass
        assert raised.value.status == 429
        assert raised.value.retry_after in hour_left(begun_at)

    def test_threads_share_a_client_one_at_a_time(self, sluice: SluiceClient, key: str) -> None:
        running, most, lock = 0, 0, threading.Lock()

        def work() -> None:
            nonlocal running, most
            with sluice.permit(key, max_requests=2):
                with lock:
                    running, most = running + 1, max(most, running + 1)
                with lock:
                    running -= 1

        with ThreadPoolExecutor(max_workers=8) as threads:
            for future in [threads.submit(work) for _ in range(24)]:
                future.result()
        assert most <= 2


class TestWithoutSluice:
    def test_an_unreachable_one_has_counted_nothing(self) -> None:
        client = SluiceClient("http://127.0.0.1:1", retries=1)

        with pytest.raises(SluiceUnavailableError, match="Sluice is unreachable") as raised:
            client.check("a")
        assert not raised.value.may_have_counted

    @pytest.mark.parametrize(
        "keep_millis, message", [(0, "the answer from Sluice was lost"), (1000, "Sluice is unreachable")]
    )
    def test_a_wait_at_one_that_is_killed_may_have_counted(
        self, ending_service: Service, key: str, keep_millis: int, message: str
    ) -> None:
        client = SluiceClient(ending_service.url, keep_millis=keep_millis)
        approval(client, key)
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(client.wait, key)
            ending_service.wait_for(key, "NumWaiting", 1)
            ending_service.process.kill()

            with pytest.raises(SluiceUnavailableError, match=message) as raised:
                waiting.result()
        assert raised.value.may_have_counted

    def test_a_wait_that_keeps_no_place_at_one_that_stops_has_counted_nothing(
        self, ending_service: Service, key: str
    ) -> None:
        client = SluiceClient(ending_service.url, retries=0, keep_millis=0)
        approval(client, key)
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(client.wait, key)
            ending_service.wait_for(key, "NumWaiting", 1)
            ending_service.process.send_signal(signal.SIGTERM)

            with pytest.raises(SluiceUnavailableError, match="shutting down") as raised:
                waiting.result()
        assert (raised.value.may_have_counted, raised.value.retry_after) == (False, 1)
