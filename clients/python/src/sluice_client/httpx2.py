"""The limited transports for httpx2, by which the SDKs of OpenAI and Anthropic send. Needs the package `httpx2`."""

from typing import Unpack

import httpx2

from ._aio import AsyncSluiceClient
from ._at_work import AsyncWatchedBody, AtWork, WatchedBody
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
        self._calls = LimitedCalls[httpx2.Request, httpx2.Response](sluice._core, key, options, NEVER_SENT, httpx2.ByteStream)
        self._transport = httpx2.HTTPTransport() if transport is None else transport

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return run(self._calls.call(request, self._send, _close, _watch))

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()


async def _close(response: httpx2.Response) -> None:
    response.close()


class _Watched(WatchedBody, httpx2.SyncByteStream):
    pass


def _watch(response: httpx2.Response, work: AtWork) -> None:
    assert isinstance(response.stream, httpx2.SyncByteStream)
    response.stream = _Watched(response.stream, work)


class _AsyncWatched(AsyncWatchedBody, httpx2.AsyncByteStream):
    pass


def _watch_async(response: httpx2.Response, work: AtWork) -> None:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _AsyncWatched(response.stream, work)


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
        self._calls = LimitedCalls[httpx2.Request, httpx2.Response](sluice, key, options, NEVER_SENT, httpx2.ByteStream)
        self._transport = httpx2.AsyncHTTPTransport() if transport is None else transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        send = self._transport.handle_async_request
        return await self._calls.call(request, send, httpx2.Response.aclose, _watch_async)

    async def aclose(self) -> None:
        await self._transport.aclose()
