"""Waits for a key many times, one after the other, and prints the turns: `waiters.py KEY COUNT ADDRESS...`.

The waits with even numbers are tasks, and the others threads. Each has a turn of its own, and the next one comes after
it. test/deploy/python-client-replicas.test.ts ends the replica that they wait at.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
from sluice_client import AsyncSluiceClient, SluiceClient
from sluice_client._protocol import ClientOptions

# A replica that is frozen is noticed once an answer does not come.
OPTIONS: ClientOptions = {"long_poll_millis": 3000, "timeout": 5.0}


async def main(key: str, count: int, urls: list[str]) -> None:
    def work(index: int) -> None:
        with client.permit(key):
            print(index, flush=True)

    async def work_async(index: int) -> None:
        async with async_client.permit(key):
            print(index, flush=True)

    async def until_waiting(waiters: int) -> None:
        while (await http.get(f"{urls[-1]}/debug/{key}")).json()["NumWaiting"] != waiters:
            await asyncio.sleep(0.01)

    loop = asyncio.get_running_loop()
    with SluiceClient(urls, **OPTIONS) as client, ThreadPoolExecutor(count) as threads:
        async with AsyncSluiceClient(urls, **OPTIONS) as async_client, httpx.AsyncClient() as http:
            waits: list[asyncio.Future[None]] = []
            for index in range(count):
                is_task = index % 2 == 0
                begun = work_async(index) if is_task else loop.run_in_executor(threads, work, index)
                waits.append(asyncio.ensure_future(begun))
                await until_waiting(index + 1)
            await asyncio.gather(*waits)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
