"""The limited transports for httpx2, by which the SDKs of OpenAI and Anthropic send. Needs the package `httpx2`."""

from typing import Unpack

import httpx2

from ._aio import AsyncSluiceClient
from ._client import SluiceClient, run
from ._limited_calls import Key, LimitedCalls, LimitedOptions

# The errors of a request that had no connection to be sent on.
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class LimitedTransport(httpx2.BaseTransport):
    """A transport for `httpx2.Client`, otherwise as the one for httpx. `transport` is `httpx2.HTTPTransport()` by default."""

    def __init__(
        self,
        sluice: SluiceClient,
        key: Key[httpx2.Request],
        transport: httpx2.BaseTransport | None = None,
        **options: Unpack[LimitedOptions],
    ) -> None:
        if not isinstance(sluice, SluiceClient):
            raise TypeError(f"sluice must be a SluiceClient, not {sluice!r}")
        self._calls = LimitedCalls[httpx2.Request, httpx2.Response](sluice._core, key, options, NEVER_SENT)
        self._transport = httpx2.HTTPTransport() if transport is None else transport

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return run(self._calls.call(request, self._send, _close))

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()


async def _close(response: httpx2.Response) -> None:
    response.close()


class AsyncLimitedTransport(httpx2.AsyncBaseTransport):
    """A transport for `httpx2.AsyncClient`, otherwise as LimitedTransport. Cancelling a request also ends its wait."""

    def __init__(
        self,
        sluice: AsyncSluiceClient,
        key: Key[httpx2.Request],
        transport: httpx2.AsyncBaseTransport | None = None,
        **options: Unpack[LimitedOptions],
    ) -> None:
        if not isinstance(sluice, AsyncSluiceClient):
            raise TypeError(f"sluice must be an AsyncSluiceClient, not {sluice!r}")
        self._calls = LimitedCalls[httpx2.Request, httpx2.Response](sluice, key, options, NEVER_SENT)
        self._transport = httpx2.AsyncHTTPTransport() if transport is None else transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._calls.call(request, self._transport.handle_async_request, httpx2.Response.aclose)

    async def aclose(self) -> None:
        await self._transport.aclose()
