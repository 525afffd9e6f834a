import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self, Unpack

import httpx

from ._core import Core
from ._permit import Permit, Renewals
from ._protocol import LIMITS, ClientOptions, PermitOptions


class AsyncSluiceClient(Core):
    """Asks Sluice for permission. One client is enough for an event loop.

    `timeout`, in seconds and 5 by default, bounds each attempt of all calls but waits. `http` sends the requests.
    """

    def __init__(self, url: str, *, http: httpx.AsyncClient | None = None, **options: Unpack[ClientOptions]) -> None:
        super().__init__(url, **options)
        self._http = http or httpx.AsyncClient(limits=LIMITS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    @asynccontextmanager
    async def permit(self, key: str, **options: Unpack[PermitOptions]) -> AsyncIterator[Permit]:
        """Waits for permission, holds it while the block runs, and releases it.

        A task renews the hold. If the permit is lost, the block is cancelled, and raises SluicePermitLostError.
        With `hold=False` the permit ends with its window. Raises SluiceDeniedError if it is denied.
        """
        permit, renewals = await self._acquire(key, options)
        block = asyncio.current_task()
        assert block is not None
        cancelling = block.cancelling()
        keeper = asyncio.create_task(self._keep(permit, renewals, block)) if renewals else None
        try:
            yield permit
        except asyncio.CancelledError:
            if permit.is_lost and block.uncancel() <= cancelling:
                permit.raise_if_lost()
            raise
        finally:
            if keeper:
                keeper.cancel()
            await self._give_back(permit)

    async def _keep(self, permit: Permit, renewals: Renewals, block: asyncio.Task[object]) -> None:
        while not permit.is_lost:
            await asyncio.sleep(renewals.pause)
            await self._renew_once(permit, renewals)
        block.cancel()

    async def _request(self, method: str, url: str, headers: dict[str, str], timeout: httpx.Timeout) -> httpx.Response:
        return await self._http.request(method, url, headers=headers, timeout=timeout)
