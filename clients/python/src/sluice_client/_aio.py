import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Self, Unpack

import anyio
import httpx

from ._addresses import Url
from ._connections import Connections
from ._core import Core, T
from ._errors import SluiceTimeoutError
from ._leaving import Line, current, watch_async
from ._permit import Permit, Renewals
from ._protocol import LIMITS, Call, ClientOptions, PermitOptions

# How long a caller that is cancelled waits for its release. After that, the release goes on without it.
GIVE_BACK_SECONDS = 2.0
# How long the answer to a cancelled request is still read. Nobody waits for it.
LATE_SECONDS = 5.0


class AsyncSluiceClient(Core):
    """Asks Sluice for permission. One client is enough for an event loop.

    `url` is an address, or several that are asked in order: the next one once the last can't be reached or stops.
    `timeout`, in seconds and 5 by default, bounds each attempt of all calls but waits. `http` sends the requests.
    """

    def __init__(self, url: Url, *, http: httpx.AsyncClient | None = None, **options: Unpack[ClientOptions]) -> None:
        super().__init__(url, **options)
        self._connections = Connections(
            http, lambda: httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(limits=LIMITS))
        )
        # What is given back although nobody waits for it. An event loop keeps no task alive.
        self._returns: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections, once all that is given back is given back."""
        for timer in self._timers:
            timer.cancel()
        await self._until_done(self._returns)
        http = self._connections.to_close
        if http is not None:
            await http.aclose()

    @asynccontextmanager
    async def permit(self, key: str, **options: Unpack[PermitOptions]) -> AsyncIterator[Permit]:
        """Waits for permission, holds it while the block runs, and releases it.

        A task renews the hold. If the permit is lost, the block is cancelled, and raises SluicePermitLostError.
        With `hold=False` nothing is renewed: the permit may end before, with its window.
        Raises SluiceDeniedError if it is denied.
        """
        block = asyncio.current_task()
        assert block is not None
        permit, renewals = await self._acquire(key, options)
        cancelling = block.cancelling()
        permit._on_lost = block.cancel
        end = self._keep_renewed(permit, renewals) if renewals else None
        try:
            yield permit
        except asyncio.CancelledError:
            if permit.is_lost and block.uncancel() <= cancelling:
                permit.raise_if_lost()
            raise
        finally:
            if end:
                end()
            await self._give_back(permit)

    def _keep_renewed(
        self, permit: Permit, renewals: Renewals, is_used: Callable[[], bool] = lambda: True
    ) -> Callable[[], object]:
        async def keep() -> None:
            while not permit.is_lost:
                await asyncio.sleep(renewals.pause)
                await self._renew_used(permit, renewals, is_used)

        return asyncio.create_task(keep()).cancel

    async def _until_lost(self, permit: Permit, do: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as scope:
                permit._on_lost = lambda: scope.reschedule(loop.time())
                return await do()
        except TimeoutError:
            permit.raise_if_lost()
            raise
        finally:
            permit._on_lost = None

    async def _give_back(self, permit: Permit) -> None:
        release = self._return(super()._give_back(permit))
        await self._until_done([release])
        if not release.done():
            permit._not_released(SluiceTimeoutError("no answer in time", True))

    async def _settle(self, permit: Permit, hits: int | None, is_held: bool) -> None:
        await self._until_done([self._return(super()._settle(permit, hits, is_held))])

    async def _withdraw(self, key: str, request_id: str) -> None:
        # The caller has left, and may be cancelled again.
        self._return(super()._withdraw(key, request_id))

    def _return(self, work: Coroutine[object, None, None]) -> asyncio.Task[None]:
        return self._begin(work, self._returns)

    def _later(self, seconds: float, work: Callable[[], Coroutine[object, None, None]]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            await work()

        self._begin(wait(), self._timers)

    def _begin(self, work: Coroutine[object, None, None], tasks: set[asyncio.Task[None]]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def _until_done(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        """Waits for a bounded time, also in a cancelled scope, and if the caller is cancelled again meanwhile."""
        pending, ends_at = set(tasks), time.monotonic() + GIVE_BACK_SECONDS
        cancelled: asyncio.CancelledError | None = None
        with anyio.CancelScope(shield=True):
            while pending and (left := ends_at - time.monotonic()) > 0:
                try:
                    _, pending = await asyncio.wait(pending, timeout=left)
                except asyncio.CancelledError as error:
                    cancelled = error
        if cancelled:
            raise cancelled

    async def _request(self, call: Call, url: str, headers: dict[str, str]) -> httpx.Response:
        if not call.only_answer_has_id:
            return await self._send_on(None, call, url, headers)
        line = Line(call.waits)
        # A task of its own, since cancelling it would close the connection.
        sent = asyncio.create_task(self._send_on(line, call, url, headers))
        try:
            await asyncio.wait([sent])
        except asyncio.CancelledError as error:
            line.leave(error)
            if not line.is_used:
                sent.cancel()
            self._return(self._take_late(call, sent))
            raise
        return sent.result()

    async def _send_on(self, line: Line | None, call: Call, url: str, headers: dict[str, str]) -> httpx.Response:
        token = current.set(line)
        try:
            return await self._connections.http.request(
                call.method, url, headers=headers, timeout=call.timeouts, extensions={"trace": watch_async}
            )
        except httpx.TransportError:
            if line is not None and line.is_out_of_time:
                line.raise_left()
            raise
        finally:
            current.reset(token)

    async def _take_late(self, call: Call, sent: asyncio.Task[httpx.Response]) -> None:
        with suppress(httpx.TransportError, TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(LATE_SECONDS):
                response = await sent
            await self._release_late(call, response)
