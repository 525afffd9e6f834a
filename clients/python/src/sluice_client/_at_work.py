"""A request from its approval until the body of its answer is over."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from time import monotonic
from typing import Protocol, TypeVar

from ._answer_usage import UsageReader
from ._client import run
from ._core import Core
from ._permit import Permit, Renewals

T = TypeVar("T")


class AtWork:
    """Keeps the approval of a request while it is at work. A hold is renewed if `renewals` are given."""

    def __init__(self, core: Core, permit: Permit, renewals: Renewals | None) -> None:
        self._core = core
        self._permit = permit
        self._renewals = renewals
        self.usage: UsageReader | None = None
        self._is_over = False
        # Since when nobody reads the body; None while a step is under way.
        self._left_at: float | None = None
        self._end_renewing = core._keep_renewed(permit, renewals, is_used=self._is_used) if renewals else None

    def _is_used(self) -> bool:
        left_at = self._left_at
        return left_at is None or self._renewals is None or monotonic() - left_at < self._renewals.hold_seconds

    async def step(self, do: Callable[[], Awaitable[T]]) -> T:
        """Sends the request, or reads a part of its answer. Raises SluicePermitLostError if the hold is lost."""
        if self._renewals is None:
            return await do()
        self._permit.raise_if_lost()
        self._left_at = None
        try:
            return await self._core._until_lost(self._permit, do)
        finally:
            self._left_at = monotonic()

    async def read(self, next_chunk: Callable[[], Awaitable[bytes | None]]) -> bytes | None:
        """Reads the next chunk of the body; None at its end."""
        chunk = await self.step(next_chunk)
        if chunk is not None and self.usage is not None:
            self.usage.add(chunk)
        return chunk

    async def read_all(self, body: bytes) -> None:
        """Ends the work with a body that is there already."""
        if self.usage is not None:
            self.usage.add(body)
        await self.end()

    async def end(self) -> None:
        """Corrects the hits, and then releases the hold. The second time nothing happens."""
        if self._is_over:
            return
        self._is_over = True
        if self._end_renewing is not None:
            self._end_renewing()
        hits = None if self.usage is None else self.usage.hits()
        if hits is not None or self._renewals is not None:
            await self._core._settle(self._permit, hits, self._renewals is not None)


class Body(Iterable[bytes], Protocol):
    """What is used of the body of a response, of httpx or httpx2."""

    def close(self) -> None: ...


class AsyncBody(AsyncIterable[bytes], Protocol):
    async def aclose(self) -> None: ...


class WatchedBody:
    """The body of a request that is at work until it is closed. A subclass is a stream of httpx or httpx2 as well."""

    def __init__(self, body: Body, work: AtWork) -> None:
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


class AsyncWatchedBody:
    """As WatchedBody."""

    def __init__(self, body: AsyncBody, work: AtWork) -> None:
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
