"""The limited transports for httpx2, by which the SDKs of OpenAI and Anthropic send. Needs the package `httpx2`."""

from collections.abc import AsyncIterator, Iterator
from typing import Unpack

import httpx2

from ._aio import AsyncSluiceClient
from ._at_work import AtWork
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


class _Watched(httpx2.SyncByteStream):
    """The body of a request that is at work until it is closed."""

    def __init__(self, body: httpx2.SyncByteStream, work: AtWork) -> None:
        self._body = body
        self._work = work

    def __iter__(self) -> Iterator[bytes]:
        chunks = iter(self._body)

        async def next_chunk() -> bytes | None:
            return next(chunks, None)

        while (chunk := run(self._work.read(next_chunk))) is not None:
            yield chunk

    def close(self) -> None:
        try:
            self._body.close()
        finally:
            run(self._work.end())


def _watch(response: httpx2.Response, work: AtWork) -> None:
    assert isinstance(response.stream, httpx2.SyncByteStream)
    response.stream = _Watched(response.stream, work)


class _AsyncWatched(httpx2.AsyncByteStream):
    def __init__(self, body: httpx2.AsyncByteStream, work: AtWork) -> None:
        self._body = body
        self._work = work

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._body)

        async def next_chunk() -> bytes | None:
            return await anext(chunks, None)

        while (chunk := await self._work.read(next_chunk)) is not None:
            yield chunk

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            await self._work.end()


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
