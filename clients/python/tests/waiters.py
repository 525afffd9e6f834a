"""Waits for a key many times, each once the one before waits, and prints the turns: `waiters.py KEY COUNT ADDRESS...`.

The waits with even numbers are tasks, and the others threads. The next one is approved once a permit is released.
test/deploy/long/python-client-replicas.test.ts ends the replica that they wait at.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from sluice_client import AsyncSluiceClient, SluiceClient, WaitProgress
from sluice_client._protocol import ClientOptions

# A replica that is frozen is noticed once an answer does not come.
OPTIONS: ClientOptions = {"long_poll_millis": 3000, "timeout": 5.0}


async def main(key: str, count: int, urls: list[str]) -> None:
    loop = asyncio.get_running_loop()
    waits: list[asyncio.Future[None]] = []

    with SluiceClient(urls, **OPTIONS) as client, ThreadPoolExecutor(count) as threads:
        async with AsyncSluiceClient(urls, **OPTIONS) as async_client:

            async def begin(index: int) -> None:
                """Returns once the wait has its place."""
                has_place = asyncio.Event()

                def note(_: WaitProgress) -> None:
                    loop.call_soon_threadsafe(has_place.set)

                def work() -> None:
                    with client.permit(key, on_progress=note):
                        print(index, flush=True)

                async def work_async() -> None:
                    async with async_client.permit(key, on_progress=note):
                        print(index, flush=True)

                wait = asyncio.ensure_future(work_async() if index % 2 == 0 else loop.run_in_executor(threads, work))
                waits.append(wait)
                placed = asyncio.ensure_future(has_place.wait())
                await asyncio.wait([wait, placed], return_when=asyncio.FIRST_COMPLETED)
                if not placed.done():
                    raise RuntimeError(f"the wait {index} has ended before it had a place") from wait.exception()

            for index in range(count):
                await begin(index)
            await asyncio.gather(*waits)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
