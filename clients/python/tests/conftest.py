"""A Sluice in a process of its own, with windows of an hour, and a vendor that it protects."""

import asyncio
import json
import math
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import httpx
import pytest
from sluice_client import SluiceClient

ROOT = Path(__file__).parents[3]
SETTINGS = {
    "PORT": "0",
    "HOST": "127.0.0.1",
    "MAX_EVENT_LOOP_DELAY_MILLIS": "60000",
    "WINDOW_MILLIS": "3600000",
    "MAX_REQUESTS": "1",
    "SHUTDOWN_GRACE_MILLIS": "0",
    "CONFIG_FILE": str(Path(__file__).parent / "rules.yaml"),
}
# It has an address, which nothing listens on.
GONE = "http://127.0.0.1:1"
# How long a test waits for a state that must come.
LONGEST_SECONDS = 100
T = TypeVar("T")


class Service:
    def __init__(self) -> None:
        # One for all questions: it takes long to create.
        self.http = httpx.Client(trust_env=False)
        environment = {"PATH": os.environ["PATH"], **SETTINGS}
        self.process = subprocess.Popen(
            ["node", ROOT / "dist/main.js"], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            logged = json.loads(line)
            if logged["msg"] == "serving":
                self.port: int = logged["port"]
                self.url = f"http://127.0.0.1:{self.port}"
                return
        raise RuntimeError("the service has ended")

    def state(self, key: str) -> dict[str, int]:
        state: dict[str, int] = self.http.get(f"{self.url}/debug/{key}").json()
        return state

    def used(self, key: str, limit: str) -> int | None:
        """What counts of a further limit of a key."""
        limits = self.http.get(f"{self.url}/debug/{key}").json().get("Limits", [])
        return next((one.get("NumApprovedThisWindow") for one in limits if one["Name"] == limit), None)

    def wait_for(self, key: str, field: str, value: int | None) -> None:
        """Returns once a field of the key's state has a value."""
        ends_at = time.monotonic() + LONGEST_SECONDS
        while (state := self.state(key)).get(field) != value:
            if time.monotonic() > ends_at:
                raise AssertionError(f"{field} did not become {value}: {state}")

    def wait_for_renewal(self, key: str) -> None:
        """Returns once the only hold of a key lapses later than was known before."""
        least = math.inf
        while True:
            [holder] = self.http.get(f"{self.url}/debug/{key}").json()["Holders"]
            left: int = holder["LapseMillis"]
            if left > least:
                return
            least = left

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.http.close()


def meanwhile(runner: asyncio.Runner | None, wait: Callable[..., T], *args: object) -> T:
    """Waits for something while the tasks of a runner go on."""
    return wait(*args) if runner is None else runner.run(asyncio.to_thread(wait, *args))


def hour_left(begun_at: float) -> range:
    """What may be left by now of an hour that began after `begun_at`: in whole seconds, rounded up."""
    return range(3600 - int(time.monotonic() - begun_at), 3601)


def keepalive_by_port(server: int) -> dict[int, bool]:
    """Whether each connection to a server asks the other side for signs of life, by its own port."""
    found = {}
    for name in os.listdir("/dev/fd"):
        with suppress(OSError), socket.socket(fileno=os.dup(int(name))) as one:
            if one.getpeername()[1:] == (server,):
                found[one.getsockname()[1]] = one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
    return found


class Vendor:
    """A server on this machine that is called through a limited transport."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = b"OK"
        # Whether it closes the connection instead of an answer.
        self.loses = False
        # Set while it answers.
        self.answers = threading.Event()
        self.answers.set()
        self.called = threading.Event()
        self.calls: list[str] = []
        self.tokens: list[str | None] = []
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                vendor.calls.append(f"{self.command} {self.path}")
                vendor.tokens.append(self.headers.get("authorization"))
                vendor.called.set()
                vendor.answers.wait()
                self.close_connection = vendor.loses
                if vendor.loses:
                    return
                self.send_response(vendor.status)
                for name, value in {**vendor.headers, "content-length": str(len(vendor.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(vendor.body)

            def log_message(self, *_: object) -> None:
                """Prints nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def end(self) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.socket.close()


class Proxy:
    """Passes bytes on to a service, each direction late by `latency` seconds, and holds answers back while it is told so."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.latency = 0.0
        self.answers = threading.Event()
        self.answers.set()
        # Whether a client has ended its sending side.
        self.left = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self._has_ended = False
        self._begin(self._accept)

    def _begin(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                if self._has_ended:
                    return
                server = socket.create_connection(("127.0.0.1", self._port))
                self._sockets.append(server)
                for source, target, is_answer in ((client, server, False), (server, client, True)):
                    self._begin(self._pass_on, source, target, is_answer)

    def _pass_on(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if is_answer:
                    self.answers.wait()
                time.sleep(self.latency)
                target.sendall(data)
            time.sleep(self.latency)
            target.shutdown(socket.SHUT_WR)
            if not is_answer:
                self.left.set()

    def end(self) -> None:
        self.answers.set()
        # A thread that still reads would read from the next socket with the same number. The first thread adds others.
        self._has_ended = True
        socket.create_connection(self._listener.getsockname()).close()
        self._threads[0].join()
        for one in self._sockets[1:]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        for one in self._sockets:
            one.close()


@pytest.fixture
def proxy(service: Service) -> Iterator[Proxy]:
    one = Proxy(service.port)
    yield one
    one.end()


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    one = Vendor()
    yield one
    one.end()


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    one = Service()
    yield one
    one.end()


@pytest.fixture
def ending_service() -> Iterator[Service]:
    """A service that the test may end."""
    one = Service()
    yield one
    one.end()


@pytest.fixture
def sluice(service: Service) -> Iterator[SluiceClient]:
    with SluiceClient(service.url) as client:
        yield client


@pytest.fixture
def key() -> str:
    return str(uuid4())
