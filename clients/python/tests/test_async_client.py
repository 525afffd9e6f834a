import asyncio

import pytest
from sluice_client import (
    Approval,
    AsyncSluiceClient,
    SluiceDeniedError,
    SluiceError,
    SluicePermitLostError,
    SluiceTimeoutError,
)

from .conftest import Proxy, Service


async def until_waiting(service: Service, key: str, count: int) -> None:
    await asyncio.to_thread(service.wait_for, key, "NumWaiting", count)


def test_a_wait_ends_with_a_release(service: Service, key: str) -> None:
    async def main() -> None:
        # The timeout of one client is shorter than the wait.
        async with AsyncSluiceClient(service.url) as sluice, AsyncSluiceClient(service.url, timeout=0.3) as waiter:
            first = await sluice.check(key)
            assert isinstance(first, Approval)
            waiting = asyncio.create_task(waiter.wait(key))
            await until_waiting(service, key, 1)
            with pytest.raises(SluiceTimeoutError):
                await waiter.wait(key, timeout=0.6)
            assert await sluice.correct(key, first.request_id, 1)
            assert await sluice.release(key, first.request_id)
            assert (await waiting).approved

    asyncio.run(main())


def test_a_permit_tells_of_a_release_that_takes_too_long(
    service: Service, proxy: Proxy, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice_client._aio.GIVE_BACK_SECONDS", 0.1)
    errors: list[SluiceError] = []

    async def main() -> None:
        async with AsyncSluiceClient(proxy.url) as sluice:
            async with sluice.permit(key, on_release_error=errors.append):
                proxy.answers.clear()

    asyncio.run(main())
    assert [str(error) for error in errors] == ["no answer in time"]
    service.wait_for(key, "NumApprovedThisWindow", 0)


def test_a_cancelled_wait_gives_its_place_up(service: Service, key: str) -> None:
    async def main() -> None:
        async with AsyncSluiceClient(service.url) as sluice:
            await sluice.check(key)
            waiting = asyncio.create_task(sluice.wait(key))
            await until_waiting(service, key, 1)
            waiting.cancel()
            await until_waiting(service, key, 0)

    asyncio.run(main())


def test_blocks_with_permits_run_two_at_a_time(service: Service, key: str) -> None:
    running = most = 0

    async def main() -> None:
        both_at_work = asyncio.Barrier(2)
        async with AsyncSluiceClient(service.url) as sluice:

            async def work() -> None:
                nonlocal running, most
                async with sluice.permit(key, max_requests=2):
                    running, most = running + 1, max(most, running + 1)
                    await both_at_work.wait()
                    running -= 1

            await asyncio.gather(*(work() for _ in range(20)))

    asyncio.run(main())
    assert most == 2
    assert service.state(key)["NumApprovedThisWindow"] == 0


def test_the_hold_of_a_permit_is_renewed(service: Service, key: str) -> None:
    async def main() -> None:
        async with AsyncSluiceClient(service.url) as sluice, sluice.permit(key, hold_millis=4000) as permit:
            await asyncio.to_thread(service.wait_for_renewal, key)
            assert not (await sluice.check(key)).approved
            assert not permit.is_lost

    asyncio.run(main())


def test_a_block_whose_permit_is_lost_is_cancelled(service: Service, key: str) -> None:
    steps: list[str] = []

    async def main() -> None:
        async with AsyncSluiceClient(service.url) as sluice:
            with pytest.raises(SluicePermitLostError):
                async with sluice.permit(key, hold_millis=1000) as permit:
                    await sluice.release(key, permit.request_id)
                    steps.append("begun")
                    await asyncio.Event().wait()
                    steps.append("ended")
            # The task itself goes on.
            await asyncio.sleep(0)
            steps.append("after")

    asyncio.run(main())
    assert steps == ["begun", "after"]


def test_a_task_that_is_cancelled_releases_its_permit(service: Service, key: str) -> None:
    async def main() -> None:
        async with AsyncSluiceClient(service.url) as sluice:
            begun = asyncio.Event()

            async def work() -> None:
                async with sluice.permit(key):
                    begun.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert service.state(key)["NumApprovedThisWindow"] == 0


def test_a_permit_that_is_denied_raises(service: Service, key: str) -> None:
    async def main() -> None:
        async with AsyncSluiceClient(service.url) as sluice:
            await sluice.check(key)
            with pytest.raises(SluiceDeniedError):
                async with sluice.permit(key, wait=False):
                    pass

    asyncio.run(main())
