"""Transports of httpx that wait for permission before they send."""

from typing import Unpack

import httpx

from ._aio import AsyncSluiceClient
from ._at_work import AsyncWatchedBody, AtWork, WatchedBody
from ._client import SluiceClient, run
from ._limited_calls import Key, LimitedCalls, LimitedOptions
from ._protocol import NEVER_SENT


class LimitedTransport(httpx.BaseTransport):
    """A transport for `httpx.Client` that waits for permission before it sends a request.

    `key` is the key to ask for, or a function of the request that returns it; a request without one is not limited.
    `transport` sends the requests, and is closed with this one; `httpx.HTTPTransport()` by default. The options are
    those of LimitedOptions. No time limit of httpx bounds the wait: `max_wait_millis` and `timeout` do.

    A request that is denied raises a SluiceDeniedError, and one without a decision a SluiceUnavailableError; neither is
    sent. If there was no connection to send a request on, its approval is released; after any other failure the
    approval stays, since the request may have arrived.
    """

    def __init__(
        self,
        sluice: SluiceClient,
        key: Key[httpx.Request],
        transport: httpx.BaseTransport | None = None,
        **options: Unpack[LimitedOptions],
    ) -> None:
        if not isinstance(sluice, SluiceClient):
            raise TypeError(f"sluice must be a SluiceClient, not {sluice!r}")
        self._calls = LimitedCalls[httpx.Request, httpx.Response](sluice._core, key, options, NEVER_SENT, httpx.ByteStream)
        self._transport = httpx.HTTPTransport() if transport is None else transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return run(self._calls.call(request, self._send, _close, _watch))

    async def _send(self, request: httpx.Request) -> httpx.Response:
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()


async def _close(response: httpx.Response) -> None:
    response.close()


class _Watched(WatchedBody, httpx.SyncByteStream):
    pass


def _watch(response: httpx.Response, work: AtWork) -> None:
    assert isinstance(response.stream, httpx.SyncByteStream)
    response.stream = _Watched(response.stream, work)


class _AsyncWatched(AsyncWatchedBody, httpx.AsyncByteStream):
    pass


def _watch_async(response: httpx.Response, work: AtWork) -> None:
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = _AsyncWatched(response.stream, work)


class AsyncLimitedTransport(httpx.AsyncBaseTransport):
    """A transport for `httpx.AsyncClient`, otherwise as LimitedTransport. Cancelling a request also ends its wait."""

    def __init__(
        self,
        sluice: AsyncSluiceClient,
        key: Key[httpx.Request],
        transport: httpx.AsyncBaseTransport | None = None,
        **options: Unpack[LimitedOptions],
    ) -> None:
        if not isinstance(sluice, AsyncSluiceClient):
            raise TypeError(f"sluice must be an AsyncSluiceClient, not {sluice!r}")
        self._calls = LimitedCalls[httpx.Request, httpx.Response](sluice, key, options, NEVER_SENT, httpx.ByteStream)
        self._transport = httpx.AsyncHTTPTransport() if transport is None else transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        send = self._transport.handle_async_request
        return await self._calls.call(request, send, httpx.Response.aclose, _watch_async)

    async def aclose(self) -> None:
        await self._transport.aclose()
