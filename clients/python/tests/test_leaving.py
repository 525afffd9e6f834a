"""Callers that leave while an approval is on its way, or while their block runs."""

import asyncio
import errno
import random
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import anyio
import pytest
from sluice_client import Approval, AsyncSluiceClient, Decision, SluiceClient, SluiceTimeoutError

from .conftest import Proxy, Service, keepalive_by_port

# Far longer than a test: what nobody gives back stays held.
HELD = 600_000
# Also far longer than a test. Without it, a wait is a single request, which is left by ending the sending side.
KEPT = 60_000

keeps = pytest.mark.parametrize("keep_millis", [0, KEPT])


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that are on their way arrive in time, also on a machine that stands still for a while."""
    monkeypatch.setattr("sluice_client._leaving.LATE_SECONDS", 5.0)


async def until(service: Service, key: str, field: str, value: int | None) -> None:
    while (await asyncio.to_thread(service.state, key)).get(field) != value:
        await asyncio.sleep(0.005)


class TestAsync:
    @pytest.mark.parametrize("latency", [0, 0.005, 0.025])
    @pytest.mark.parametrize("way", ["wait", "permit", "scope"])
    @keeps
    def test_a_grant_that_is_on_its_way_is_released(
        self, service: Service, proxy: Proxy, key: str, latency: float, way: str, keep_millis: int
    ) -> None:
        proxy.latency = latency

        async def ask(sluice: AsyncSluiceClient, name: str, scope: anyio.CancelScope) -> Decision | None:
            with scope:
                if way == "wait":
                    return await sluice.wait(name, hold_millis=HELD)
                async with sluice.permit(name, hold_millis=HELD):
                    await asyncio.Event().wait()
            return None

        async def leave(near: AsyncSluiceClient, far: AsyncSluiceClient, name: str) -> None:
            held = await near.check(name, hold_millis=HELD)
            assert isinstance(held, Approval)
            scope = anyio.CancelScope()
            asking = asyncio.create_task(ask(far, name, scope))
            await until(service, name, "NumWaiting", 1)
            await near.release(name, held.request_id)
            if way == "scope":
                scope.cancel()
            else:
                asking.cancel()
            await asyncio.wait([asking])
            if not asking.cancelled() and isinstance(late := asking.result(), Approval):
                # It has arrived before its caller was cancelled.
                await near.release(name, late.request_id)

        async def main() -> None:
            far_client = AsyncSluiceClient(proxy.url, keep_millis=keep_millis)
            async with AsyncSluiceClient(service.url) as near, far_client as far:
                names = [f"{key} {i}" for i in range(10)]
                await asyncio.gather(*(leave(near, far, name) for name in names))
                for name in names:
                    await until(service, name, "NumHeld", None)
                    await until(service, name, "NumWaiting", 0)

        asyncio.run(main())

    # Bounded on a busy machine: a round that begins within 5 s is finished.
    @pytest.mark.parametrize("latency", [0, 0.005, 0.025])
    def test_of_a_thousand_waits_that_are_cancelled_at_their_grant_none_leaves_anything(
        self, service: Service, proxy: Proxy, key: str, latency: float
    ) -> None:
        proxy.latency = latency
        count = 100

        async def grant_and_cancel(near: AsyncSluiceClient, far: AsyncSluiceClient, name: str) -> None:
            held = await near.check(
                name, hits=count, max_requests=count, max_requests_in_queue=count, hold_millis=HELD
            )
            assert isinstance(held, Approval)
            waits = [asyncio.create_task(far.wait(name, hold_millis=HELD)) for _ in range(count)]
            await until(service, name, "NumWaiting", count)
            for wait in waits:
                asyncio.get_running_loop().call_later(random.uniform(0, 4 * latency + 0.05), wait.cancel)
            await near.release(name, held.request_id)
            for decision in await asyncio.gather(*waits, return_exceptions=True):
                if isinstance(decision, Approval):
                    await near.release(name, decision.request_id)
                else:
                    assert isinstance(decision, asyncio.CancelledError)

        async def main() -> None:
            far_client = AsyncSluiceClient(proxy.url, keep_millis=KEPT)
            async with AsyncSluiceClient(service.url) as near, far_client as far:
                names: list[str] = []
                ends_at = time.monotonic() + 5
                while len(names) < 10 and time.monotonic() < ends_at:
                    names.append(f"{key} {len(names)}")
                    await grant_and_cancel(near, far, names[-1])
                for name in names:
                    await until(service, name, "NumHeld", None)
                    await until(service, name, "NumWaiting", 0)

        asyncio.run(main())

    def test_of_waits_that_are_cancelled_while_they_join_none_leaves_anything(
        self, service: Service, proxy: Proxy, key: str
    ) -> None:
        proxy.latency = 0.025

        async def main() -> None:
            far_client = AsyncSluiceClient(proxy.url, keep_millis=KEPT)
            async with AsyncSluiceClient(service.url) as near, far_client as far:
                await near.check(key, hold_millis=HELD)
                waits = [asyncio.create_task(far.wait(key, hold_millis=HELD)) for _ in range(100)]
                # The requests of some have arrived by then, and those of others are on their way.
                while (await asyncio.to_thread(service.state, key)).get("NumWaiting", 0) < 30:
                    await asyncio.sleep(0)
                for wait in waits:
                    wait.cancel()
                await asyncio.wait(waits)
                assert all(wait.cancelled() for wait in waits)
            # The client has closed once all is released.
            await until(service, key, "NumWaiting", 0)

        asyncio.run(main())

    def test_an_answer_to_a_check_that_is_cancelled_is_released(self, service: Service, proxy: Proxy, key: str) -> None:
        async def main() -> None:
            async with AsyncSluiceClient(proxy.url) as sluice:
                proxy.answers.clear()
                checking = asyncio.create_task(sluice.check(key, hold_millis=HELD))
                await until(service, key, "NumHeld", 1)
                checking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await checking
                proxy.answers.set()
                await until(service, key, "NumHeld", None)

        asyncio.run(main())

    @keeps
    def test_a_wait_that_times_out_gives_its_place_up(
        self, service: Service, proxy: Proxy, key: str, keep_millis: int
    ) -> None:
        async def main() -> None:
            async with AsyncSluiceClient(proxy.url, keep_millis=keep_millis) as sluice:
                await sluice.check(key)
                with pytest.raises(SluiceTimeoutError):
                    await sluice.wait(key, timeout=0.2)
                await until(service, key, "NumWaiting", 0)

        asyncio.run(main())

    @pytest.mark.parametrize("times", [1, 2, 5])
    def test_a_block_releases_its_permit_however_often_its_task_is_cancelled(
        self, service: Service, proxy: Proxy, key: str, times: int
    ) -> None:
        async def main() -> None:
            async with AsyncSluiceClient(proxy.url) as sluice:
                begun = asyncio.Event()

                async def work() -> None:
                    async with sluice.permit(key, hold_millis=HELD):
                        begun.set()
                        await asyncio.Event().wait()

                task = asyncio.create_task(work())
                await begun.wait()
                proxy.answers.clear()
                for _ in range(times):
                    task.cancel()
                    await asyncio.sleep(0)
                proxy.answers.set()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert service.state(key).get("NumHeld") is None

        asyncio.run(main())

    @pytest.mark.parametrize("way", ["scope", "task group"])
    def test_a_block_that_is_cancelled_with_its_scope_releases_its_permit(
        self, service: Service, key: str, way: str
    ) -> None:
        async def main() -> None:
            async with AsyncSluiceClient(service.url) as sluice:
                begun = anyio.Event()

                async def work() -> None:
                    async with sluice.permit(key, hold_millis=HELD):
                        begun.set()
                        await anyio.sleep_forever()

                async def cancel(scope: anyio.CancelScope) -> None:
                    await begun.wait()
                    scope.cancel()

                if way == "scope":
                    with anyio.CancelScope() as scope:
                        cancelling = asyncio.create_task(cancel(scope))
                        await work()
                    await cancelling
                else:
                    # Starlette ends a stream so when its browser hangs up.
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(work)
                        await begun.wait()
                        tasks.cancel_scope.cancel()
                assert begun.is_set()
                assert service.state(key).get("NumHeld") is None

        asyncio.run(main())

    def test_a_permit_whose_first_renewal_is_cancelled_is_released(
        self, service: Service, proxy: Proxy, key: str
    ) -> None:
        async def main() -> None:
            async with AsyncSluiceClient(service.url) as near, AsyncSluiceClient(proxy.url) as far:
                held = await near.check(key, hold_millis=HELD)
                assert isinstance(held, Approval)
                renewing = asyncio.Event()

                async def work() -> None:
                    async with far.permit(key, hold_millis=1000):
                        raise AssertionError("begun")

                task = asyncio.create_task(work())
                await until(service, key, "NumWaiting", 1)
                # A third of the hold, after which it is renewed before the block begins.
                await asyncio.sleep(0.4)
                far_renew = far._renew_once

                async def renew(*args: object) -> bool:
                    proxy.answers.clear()
                    renewing.set()
                    return await far_renew(*args)  # type: ignore[arg-type]

                setattr(far, "_renew_once", renew)
                await near.release(key, held.request_id)
                await renewing.wait()
                task.cancel()
                proxy.answers.set()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert service.state(key).get("NumHeld") is None

        asyncio.run(main())


class GoneError(Exception):
    """What a signal handler raises, as Celery's at a soft time limit."""


class TestBlocking:
    def test_a_grant_that_arrives_after_the_time_out_is_not_lost(
        self, service: Service, proxy: Proxy, key: str
    ) -> None:
        far_client = SluiceClient(proxy.url, keep_millis=0)
        with SluiceClient(service.url) as near, far_client as far, ThreadPoolExecutor() as threads:
            held = near.check(key, hold_millis=HELD)
            assert isinstance(held, Approval)
            waiting = threads.submit(far.wait, key, hold_millis=HELD, timeout=3)
            service.wait_for(key, "NumWaiting", 1)
            proxy.answers.clear()
            near.release(key, held.request_id)
            # The service sees the connection end, and has answered before.
            proxy.left.wait()
            proxy.answers.set()

            late = waiting.result()
            assert isinstance(late, Approval)
            assert far.release(key, late.request_id)

    def test_a_grant_that_is_on_its_way_at_the_time_out_is_released(
        self, service: Service, proxy: Proxy, key: str
    ) -> None:
        far_client = SluiceClient(proxy.url, keep_millis=KEPT)
        with SluiceClient(service.url) as near, far_client as far, ThreadPoolExecutor() as threads:
            held = near.check(key, hold_millis=HELD)
            assert isinstance(held, Approval)
            waiting = threads.submit(far.wait, key, hold_millis=HELD, timeout=3)
            service.wait_for(key, "NumWaiting", 1)
            proxy.answers.clear()
            near.release(key, held.request_id)
            proxy.left.wait()
            proxy.answers.set()

            with pytest.raises(SluiceTimeoutError):
                waiting.result()
            assert service.state(key).get("NumHeld") is None

    @keeps
    def test_a_wait_that_times_out_gives_its_place_up(
        self, service: Service, proxy: Proxy, key: str, keep_millis: int
    ) -> None:
        with SluiceClient(proxy.url, keep_millis=keep_millis) as sluice:
            sluice.check(key)
            with pytest.raises(SluiceTimeoutError):
                sluice.wait(key, timeout=0.2)
            service.wait_for(key, "NumWaiting", 0)
            # The pool does not use the connection again.
            assert not sluice.check(key).approved

    @pytest.mark.parametrize("way", ["wait", "permit"])
    @keeps
    def test_a_grant_is_released_that_is_on_its_way_when_a_signal_ends_the_wait(
        self, service: Service, proxy: Proxy, key: str, way: str, keep_millis: int
    ) -> None:
        def leave(*_: object) -> None:
            raise GoneError

        def signal_later() -> None:
            service.wait_for(key, "NumWaiting", 1)
            proxy.answers.clear()
            near.release(key, held)
            signal.pthread_kill(main, signal.SIGUSR1)
            proxy.left.wait()
            proxy.answers.set()

        main = threading.get_ident()
        before = signal.signal(signal.SIGUSR1, leave)
        try:
            with SluiceClient(service.url) as near, SluiceClient(proxy.url, keep_millis=keep_millis) as far:
                first = near.check(key, hold_millis=HELD)
                assert isinstance(first, Approval)
                held = first.request_id
                with ThreadPoolExecutor() as threads:
                    signals = threads.submit(signal_later)
                    with pytest.raises(GoneError):
                        if way == "wait":
                            far.wait(key, hold_millis=HELD)
                        else:
                            with far.permit(key, hold_millis=HELD):
                                raise AssertionError("begun")
                    signals.result()
                service.wait_for(key, "NumHeld", None)
        finally:
            signal.signal(signal.SIGUSR1, before)


def test_a_held_wait_goes_to_the_next_address_if_the_host_of_the_first_has_vanished(
    service: Service, proxy: Proxy, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = socket.socket.recv

    def recv(one: socket.socket, size: int) -> bytes:
        if one.getpeername()[1] == urlsplit(proxy.url).port:
            # As TCP does after its keepalive had no answer.
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
        return receive(one, size)

    monkeypatch.setattr(socket.socket, "recv", recv)
    with SluiceClient([proxy.url, service.url], retries=0) as sluice:
        # It is no time-out, which would end the wait. The first may be approved as well.
        assert sluice.wait(key, hold_millis=HELD, max_requests=2).approved


@pytest.mark.parametrize("is_async", [False, True])
def test_connections_ask_the_other_side_for_signs_of_life(service: Service, key: str, is_async: bool) -> None:
    before = keepalive_by_port(service.port)

    async def check_and_look() -> dict[int, bool]:
        async with AsyncSluiceClient(service.url) as sluice:
            await sluice.check(key)
            return keepalive_by_port(service.port)

    if is_async:
        after = asyncio.run(check_and_look())
    else:
        with SluiceClient(service.url) as client:
            client.check(key)
            after = keepalive_by_port(service.port)

    assert [asks for own, asks in after.items() if own not in before] == [True]
