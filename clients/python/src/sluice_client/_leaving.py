"""How a caller leaves a request, and an approval that is on its way still arrives, so that it can be released.

httpx closes the connection of a request that is cancelled or out of time. So the streams of httpcore are watched: the
`trace` of a request sees each new one.
"""

import errno
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NoReturn

import httpcore
import httpx

# How long an answer is still read after its time-out. It can take a round trip.
LATE_SECONDS = 1.0

# Without them, a wait behind a NAT or a firewall that has forgotten its connection hangs for ever. A host that has vanished
# is noticed after 30 s.
KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPALIVE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}

NEW_STREAM = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")
ANSWERED = "response_closed.started"

Stream = httpcore.NetworkStream | httpcore.AsyncNetworkStream


class Line:
    """The connection of a request, for its caller to leave."""

    def __init__(self, waits: bool) -> None:
        self._waits = waits
        self._stream: Stream | None = None
        self._is_answered = False
        self.left: BaseException | None = None
        """Why the caller has left, if it has."""

    @property
    def is_used(self) -> bool:
        """Whether the request may have been sent on a connection that is known."""
        return self._stream is not None

    def use(self, stream: Stream) -> None:
        self._stream = stream

    def end(self) -> None:
        """The connection may serve another request from now on."""
        self._is_answered = True

    def leave(self, why: BaseException) -> None:
        """Ends the sending side of a wait, which withdraws it. The answer to a check is due anyway."""
        self.left = why
        if self._waits and self._stream is not None and not self._is_answered:
            with suppress(OSError), _socket_of(self._stream) as shared:
                shared.shutdown(socket.SHUT_WR)
            _end_reuse(self._stream)

    @property
    def is_out_of_time(self) -> bool:
        return isinstance(self.left, httpcore.TimeoutException)

    def raise_left(self) -> NoReturn:
        assert self.left is not None
        raise httpx.ReadTimeout("no answer in time") if self.is_out_of_time else self.left


current: ContextVar[Line | None] = ContextVar("current", default=None)


def watch(event: str, info: dict[str, Any]) -> None:
    """The `trace` of a request of httpx.Client."""
    _note_end(event)
    stream = info.get("return_value")
    if not event.endswith(NEW_STREAM) or not isinstance(stream, httpcore.NetworkStream) or _is_shared(stream):
        return
    read, write = stream.read, stream.write

    def read_late(max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return read(max_bytes, timeout)
        except httpcore.ReadTimeout as error:
            if _has_vanished(error):
                raise httpcore.ReadError("the other side gives no sign of life") from error
            _leave(error)
        # A signal handler may raise anything, for example Celery's at a soft time limit.
        except BaseException as error:
            _leave(error)
        return read(max_bytes, LATE_SECONDS)

    def write_noted(buffer: bytes, timeout: float | None = None) -> None:
        _note(stream)
        write(buffer, timeout)

    _replace(stream, read_late, write_noted)


async def watch_async(event: str, info: dict[str, Any]) -> None:
    """The `trace` of a request of httpx.AsyncClient."""
    _note_end(event)
    stream = info.get("return_value")
    if not event.endswith(NEW_STREAM) or not isinstance(stream, httpcore.AsyncNetworkStream) or _is_shared(stream):
        return
    read, write = stream.read, stream.write

    async def read_late(max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return await read(max_bytes, timeout)
        except httpcore.ReadTimeout as error:
            _leave(error)
        return await read(max_bytes, LATE_SECONDS)

    async def write_noted(buffer: bytes, timeout: float | None = None) -> None:
        _note(stream)
        await write(buffer, timeout)

    _replace(stream, read_late, write_noted)


def _end_reuse(stream: Stream) -> None:
    """Makes the pool take the connection for one that the other side has closed."""
    info = stream.get_extra_info
    setattr(stream, "get_extra_info", lambda name: True if name == "is_readable" else info(name))


def _is_shared(stream: Stream) -> bool:
    """Whether other requests are on the connection at the same time. Sluice itself does not speak HTTP/2."""
    tls = stream.get_extra_info("ssl_object")
    return tls is not None and tls.selected_alpn_protocol() == "h2"


def _note(stream: Stream) -> None:
    line = current.get()
    if line is not None:
        line.use(stream)


def _note_end(event: str) -> None:
    line = current.get()
    if line is not None and event.endswith(ANSWERED):
        line.end()


def _has_vanished(error: httpcore.ReadTimeout) -> bool:
    """Whether TCP has given the connection up. Python's error for that is a TimeoutError as well."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.ETIMEDOUT


def _leave(error: BaseException) -> None:
    """Leaves the line of a read that has failed, unless the connection has failed, or its caller has left before."""
    line = current.get()
    if line is None or line.left is not None or isinstance(error, httpcore.NetworkError):
        raise error
    line.leave(error)


def _replace(
    stream: Stream,
    read: Callable[..., bytes | Awaitable[bytes]],
    write: Callable[..., Awaitable[None] | None],
) -> None:
    setattr(stream, "read", read)
    setattr(stream, "write", write)
    # What is no socket of TCP has no such option.
    with suppress(OSError), _socket_of(stream) as shared:
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            if hasattr(socket, name):
                shared.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _socket_of(stream: Stream) -> socket.socket:
    """Another object for the same socket, since those of event loops do not have all methods."""
    original = stream.get_extra_info("socket")
    if original is None:
        raise OSError("no socket")
    return socket.fromfd(original.fileno(), socket.AF_INET, socket.SOCK_STREAM)
