import os
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Literal

import pytest
from sluice_client import SluiceClient, SluiceError

from .conftest import Service

OWN = f"{socket.gethostname()}:{os.getpid()}"


def holders(service: Service, key: str) -> list[str | None]:
    state: dict[str, Any] = dict(service.state(key))
    return [holder.get("Holder") for holder in state.get("Holders", [])]


def test_checks_waits_and_permits_that_are_held_name_the_host_and_the_process(service: Service, key: str) -> None:
    with SluiceClient(service.url) as sluice:
        sluice.check(key, max_requests=9, hold_millis=60_000)
        sluice.wait(key, hold_millis=60_000)
        sluice.check(key)
        with sluice.permit(key):
            assert holders(service, key) == [OWN, OWN, OWN]


@pytest.mark.parametrize(("holder", "shown"), [("of my choice", "of my choice"), (False, None)])
def test_a_client_says_the_holder_that_it_is_given(
    service: Service, key: str, holder: str | Literal[False], shown: str | None
) -> None:
    with SluiceClient(service.url, holder=holder) as sluice, sluice.permit(key):
        assert holders(service, key) == [shown]


@pytest.mark.parametrize("holder", ["", "ä" * 33])
def test_a_holder_that_is_empty_or_too_long_is_an_error_at_once(holder: str) -> None:
    with pytest.raises(ValueError, match="holder must be 1 to 64 bytes"):
        SluiceClient("http://localhost", holder=holder)


class Before:
    """A service of a version without holders."""

    def __init__(self, refusal: str) -> None:
        self.paths = paths = []  # type: list[str]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                paths.append(self.path)
                is_refused = "holder=" in self.path
                body = f'{{"error": "{refusal}"}}' if is_refused else '{"request_id": "id"}'
                self.send_response(400 if is_refused else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def end(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_a_service_without_holders_is_asked_again_without_one_and_from_then_on() -> None:
    before = Before("unknown parameter holder; did you mean holdMillis?")
    try:
        with SluiceClient(before.url) as sluice:
            assert [sluice.check("a", hold_millis=60_000).approved for _ in range(2)] == [True, True]
        assert ["holder=" in path for path in before.paths] == [True, False, False]
    finally:
        before.end()


def test_another_rejection_is_not_about_the_holder() -> None:
    before = Before("hits must be a whole number")
    try:
        with SluiceClient(before.url) as sluice, pytest.raises(SluiceError) as raised:
            sluice.check("a", hold_millis=60_000)
        assert raised.value.status == 400
        assert len(before.paths) == 1
    finally:
        before.end()
