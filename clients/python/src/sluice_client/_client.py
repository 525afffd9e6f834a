import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx

from ._addresses import Url
from ._connections import Connections
from ._core import Core
from ._leaving import Line, current, watch
from ._permit import Permit, Renewals
from ._protocol import LIMITS, Call, ClientOptions, PermitOptions

P = ParamSpec("P")
T = TypeVar("T")


class BlockingCore(Core):
    """Blocks its thread where another would suspend."""

    def __init__(self, http: httpx.Client | None, url: Url, options: ClientOptions) -> None:
        super().__init__(url, **options)
        self.connections = Connections(http, lambda: httpx.Client(transport=httpx.HTTPTransport(limits=LIMITS)))
        self.is_closed = False

    async def _request(self, call: Call, url: str, headers: dict[str, str]) -> httpx.Response:
        line = Line(call.waits) if call.only_answer_has_id else None
        token = current.set(line)
        try:
            response = self.connections.http.request(
                call.method, url, headers=headers, timeout=call.timeouts, extensions={"trace": watch}
            )
        except httpx.TransportError:
            if line is None or line.left is None:
                raise
            line.raise_left()
        finally:
            current.reset(token)
        if line is not None and line.left is not None and not line.is_out_of_time:
            await self._release_late(call, response)
            line.raise_left()
        return response

    def _later(self, seconds: float, work: Callable[[], Coroutine[object, None, None]]) -> None:
        def do() -> None:
            if not self.is_closed:
                run(work())

        timer = threading.Timer(seconds, do)
        timer.daemon = True
        timer.start()

    def _keep_renewed(
        self, permit: Permit, renewals: Renewals, is_used: Callable[[], bool] = lambda: True
    ) -> Callable[[], object]:
        ended = threading.Event()

        def keep() -> None:
            while not ended.wait(renewals.pause) and not permit.is_lost:
                run(self._renew_used(permit, renewals, is_used))

        threading.Thread(target=keep, daemon=True).start()
        return ended.set

    async def _until_lost(self, permit: Permit, do: Callable[[], Awaitable[T]]) -> T:
        # A thread can't be ended.
        return await do()

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def run(work: Coroutine[object, None, T]) -> T:
    """Runs a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("the coroutine has suspended")


def blocking(
    method: Callable[Concatenate[Core, P], Coroutine[object, None, T]],
) -> Callable[Concatenate["SluiceClient", P], T]:
    """A method of the client that blocks until the core's method ends."""

    @wraps(method)
    def call(client: "SluiceClient", /, *args: P.args, **options: P.kwargs) -> T:
        return run(method(client._core, *args, **options))

    return call


class SluiceClient:
    """Asks Sluice for permission. One client is enough for a process and its threads.

    `url` is an address, or several that are asked in order: the next one once the last can't be reached or stops.
    `timeout`, in seconds and 5 by default, bounds each attempt of all calls but waits. `http` sends the requests.
    """

    def __init__(self, url: Url, *, http: httpx.Client | None = None, **options: Unpack[ClientOptions]) -> None:
        self._core = BlockingCore(http, url, options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._core.is_closed = True
        http = self._core.connections.to_close
        if http is not None:
            http.close()

    check = blocking(Core.check)
    wait = blocking(Core.wait)
    peek = blocking(Core.peek)
    request_status = blocking(Core.request_status)
    release = blocking(Core.release)
    correct = blocking(Core.correct)
    renew = blocking(Core.renew)
    pause = blocking(Core.pause)
    report_remaining = blocking(Core.report_remaining)

    @contextmanager
    def permit(self, key: str, **options: Unpack[PermitOptions]) -> Iterator[Permit]:
        """Waits for permission, holds it while the block runs, and releases it.

        A thread renews the hold. If the permit is lost, the block goes on: it asks `is_lost` or `raise_if_lost`.
        With `hold=False` nothing is renewed: the permit may end before, with its window.
        Raises SluiceDeniedError if it is denied.
        """
        permit, renewals = run(self._core._acquire(key, options))
        end: Callable[[], object] | None = None
        try:
            if renewals:
                end = self._core._keep_renewed(permit, renewals)
            yield permit
        finally:
            if end:
                end()
            run(self._core._give_back(permit))
