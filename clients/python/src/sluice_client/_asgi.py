"""A middleware for FastAPI, Starlette and other ASGI apps."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Literal

from ._aio import AsyncSluiceClient
from ._errors import SluiceUnavailableError
from ._protocol import Decision
from ._quota import quota_headers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
OfRequest = str | Callable[[Scope], str | None]
OutagePolicy = Literal["deny", "allow"]

# How much of a body is read while its request waits. A disconnect comes after the body.
MOST_BODY_BYTES = 65_536
# As Sluice logs it. The client does not see it.
DISCONNECTED = 499


class RateLimitMiddleware:
    """Passes HTTP requests on that Sluice approves, and answers denied requests with a 429 and `Retry-After`.

    `key` is the key to check: a text, or a function of the ASGI scope; a request for which it returns None is not
    limited. `lane` and `group` are those of the check, each a text or such a function. With `wait`, requests wait for
    their turn, at most `max_wait_millis`; the place of a client that disconnects is given back. `outage_policy` is for
    requests without a decision: `deny` answers 503, `allow` passes them on. With `quota_headers`, responses have
    `RateLimit-Policy` and `RateLimit`, unless the app sets them.

    Raises a SluiceError if Sluice rejects the check, for example for its token, whatever the policy. WebSockets and
    lifespan events pass.
    """

    def __init__(
        self,
        app: App,
        sluice: AsyncSluiceClient,
        key: OfRequest,
        *,
        lane: OfRequest | None = None,
        group: OfRequest | None = None,
        wait: bool = False,
        max_wait_millis: int | None = None,
        outage_policy: OutagePolicy = "deny",
        quota_headers: bool = True,
    ) -> None:
        if not isinstance(sluice, AsyncSluiceClient):
            raise TypeError(f"sluice must be an AsyncSluiceClient, not {sluice!r}")
        if not isinstance(key, str) and not callable(key):
            raise TypeError(f"key must be a str or a function of the scope, not {key!r}")
        if outage_policy not in ("deny", "allow"):
            raise ValueError(f"outage_policy must be 'deny' or 'allow', not {outage_policy!r}")
        self._app = app
        self._sluice = sluice
        self._key = key
        self._lane = lane
        self._group = group
        self._wait = wait
        self._max_wait_millis = max_wait_millis
        self._outage_policy = outage_policy
        self._has_quota = quota_headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = _value(self._key, scope) if scope["type"] == "http" else None
        if key is None:
            await self._app(scope, receive, send)
            return
        body = BodyBegin(receive)
        try:
            decision = await self._decide(key, scope, body)
        except SluiceUnavailableError as error:
            if self._outage_policy == "deny":
                await _answer(send, 503, "rate limiter unavailable", {"Retry-After": str(error.retry_after or 1)})
            else:
                await self._app(scope, body.receive, send)
            return
        if decision is None:
            # Nobody reads this answer, but middlewares outside of this one expect one. A server may refuse it.
            with suppress(OSError):
                await _answer(send, DISCONNECTED, "client disconnected", {})
            return
        headers = quota_headers(decision.quota) if self._has_quota else {}
        if not decision.approved:
            await _answer(send, 429, "rate limit exceeded", {**headers, "Retry-After": str(decision.retry_after)})
            return
        await self._app(scope, body.receive, _adding(headers, send))

    async def _decide(self, key: str, scope: Scope, body: "BodyBegin") -> Decision | None:
        """Returns None if the client has disconnected while it waited."""
        lane, group = _value(self._lane, scope), _value(self._group, scope)
        if not self._wait:
            return await self._sluice.check(key, lane=lane, group=group)
        waiting = asyncio.create_task(
            self._sluice.wait(key, lane=lane, group=group, max_wait_millis=self._max_wait_millis)
        )
        leaving = asyncio.create_task(body.until_disconnect())
        try:
            await asyncio.wait([waiting, leaving], return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            # Raises what the server has raised.
            leaving.result()
            return None
        finally:
            # Cancelled, a wait gives its place back.
            await _end(waiting, leaving)


class BodyBegin:
    """The messages of a request that come while it waits, for the app to receive later."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: list[Message] = []

    async def until_disconnect(self) -> None:
        """Returns once the client has disconnected. Not after the beginning of a body that is too large to be kept."""
        size = 0
        while size < MOST_BODY_BYTES:
            message = await self._receive()
            self._messages.append(message)
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))
        await asyncio.Future()

    async def receive(self) -> Message:
        """The `receive` of the app."""
        return self._messages.pop(0) if self._messages else await self._receive()


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks, and ignores how they end. All are cancelled even if the caller is cancelled again meanwhile."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _value(given: OfRequest | None, scope: Scope) -> str | None:
    return given(scope) if callable(given) else given


def _adding(headers: dict[str, str], send: Send) -> Send:
    """A `send` that adds headers to the response, except those that the response has."""
    if not headers:
        return send

    async def send_with(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            names = {bytes(name).lower() for name, _ in own}
            message["headers"] = own + [pair for pair in _encoded(headers) if pair[0] not in names]
        await send(message)

    return send_with


async def _answer(send: Send, status: int, error: str, headers: dict[str, str]) -> None:
    body = json.dumps({"error": error}, separators=(",", ":")).encode()
    fixed = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Cache-Control": "no-store"}
    await send({"type": "http.response.start", "status": status, "headers": _encoded({**fixed, **headers})})
    await send({"type": "http.response.body", "body": body})


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """As ASGI has them: the names in lower case."""
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]
