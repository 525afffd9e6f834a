"""Several addresses of Sluice."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from sluice_client import AsyncSluiceClient, SluiceClient, SluiceUnavailableError
from sluice_client._addresses import Addresses
from sluice_client._protocol import Call
from sluice_client._retries import Retries

Work = Callable[[Any], Any]
Answer = Callable[["Replica"], str]

HOLD = 30_000


class Replica:
    """A server instead of Sluice, which records its calls. `answer` says what it does at each call."""

    def __init__(self, answer: Answer) -> None:
        self.keys: list[str] = []
        # Those that its checks have chosen.
        self.ids: set[str] = set()
        replica = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                replica.keys.append(self.path.removeprefix("/rate/").split("?")[0])
                replica.ids.update(re.findall("requestId=([^&]*)", self.path))
                answers = answer(replica)
                self.close_connection = answers != "approve"
                if answers == "lose":
                    return
                stopping = {"error": "shutting down", "code": "SHUTTING_DOWN"}
                body = stopping if answers == "stop" else {"request_id": "id"}
                text = json.dumps(body).encode()
                self.send_response(503 if answers == "stop" else 200)
                self.send_header("content-length", str(len(text)))
                if answers != "approve":
                    self.send_header("connection", "close")
                self.end_headers()
                self.wfile.write(text)

            do_PUT = do_DELETE = do_POST

            def log_message(self, *_: object) -> None:
                """Prints nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def end(self) -> None:
        self._server.shutdown()
        self._server.socket.close()


def approves(_: Replica) -> str:
    return "approve"


def approves_and_stops(_: Replica) -> str:
    return "approve and stop"


def stops(_: Replica) -> str:
    return "stop"


def loses(_: Replica) -> str:
    return "lose"


Serve = Callable[[Answer], Replica]


@pytest.fixture
def serve() -> Iterator[Serve]:
    replicas: list[Replica] = []

    def start(answer: Answer) -> Replica:
        replicas.append(Replica(answer))
        return replicas[-1]

    yield start
    for replica in replicas:
        replica.end()


@pytest.fixture
def refusing() -> Iterator[str]:
    """An address that refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def in_threads(urls: list[str], *works: Work) -> list[Any]:
    # Without retries, what is sent again goes to the next address at once.
    with SluiceClient(urls, retries=0, keep_millis=100) as sluice:
        return [work(sluice) for work in works]


def in_tasks(urls: list[str], *works: Work) -> list[Any]:
    async def main() -> list[Any]:
        async with AsyncSluiceClient(urls, retries=0, keep_millis=100) as sluice:
            return [await work(sluice) for work in works]

    return asyncio.run(main())


both_clients = pytest.mark.parametrize("ask", [in_threads, in_tasks])
Ask = Callable[..., list[Any]]


def check(sluice: Any) -> Any:
    return sluice.check("a")


def wait(sluice: Any) -> Any:
    return sluice.wait("a")


def held_wait(sluice: Any) -> Any:
    return sluice.wait("a", hold_millis=HOLD)


def held_check(sluice: Any) -> Any:
    return sluice.check("a", hold_millis=HOLD)


@both_clients
@pytest.mark.parametrize("way", [check, wait])
def test_a_request_goes_to_the_second_address_if_the_first_refuses_it(
    ask: Ask, way: Work, refusing: str, serve: Serve
) -> None:
    [decision] = ask([refusing, serve(approves).url], way)

    assert decision.approved


@both_clients
@pytest.mark.parametrize("way", [check, wait])
def test_a_request_goes_to_the_second_address_if_the_first_stops(ask: Ask, way: Work, serve: Serve) -> None:
    [decision] = ask([serve(stops).url, serve(approves).url], way)

    assert decision.approved


@both_clients
def test_an_address_that_has_failed_gets_no_further_request_until_the_next_one_fails(ask: Ask, serve: Serve) -> None:
    first = serve(lambda replica: "stop" if len(replica.keys) == 1 else "approve")
    second = serve(lambda replica: "stop" if len(replica.keys) == 3 else "approve")

    ask([first.url, second.url], *((lambda sluice, key=key: sluice.wait(key)) for key in "abcd"))

    assert (first.keys, second.keys) == (["a", "c", "d"], ["a", "b", "c"])


@both_clients
def test_an_address_that_says_that_it_stops_gets_no_further_request(ask: Ask, serve: Serve) -> None:
    first, second = serve(approves_and_stops), serve(approves)

    ask([first.url, second.url], check, wait)

    assert (len(first.keys), len(second.keys)) == (1, 1)


@both_clients
def test_a_request_fails_once_all_addresses_have_failed_it(ask: Ask, refusing: str, serve: Serve) -> None:
    last = serve(stops)

    with pytest.raises(SluiceUnavailableError, match="shutting down") as raised:
        ask([refusing, last.url], wait)
    assert not raised.value.may_have_counted
    assert len(last.keys) == 1


@both_clients
class TestLostAnswer:
    @pytest.mark.parametrize("way", [wait, held_wait])
    def test_that_of_a_wait_leads_to_another_which_is_the_same_request(self, ask: Ask, serve: Serve, way: Work) -> None:
        first, second = serve(loses), serve(approves)

        [decision] = ask([first.url, second.url], way)

        assert decision.approved
        assert (len(first.ids), len(second.ids)) == (1, 1)
        assert first.ids == second.ids

    @pytest.mark.parametrize("way", [wait, held_wait])
    def test_that_of_a_wait_may_have_counted_whatever_comes_after_it(self, ask: Ask, serve: Serve, way: Work) -> None:
        with pytest.raises(SluiceUnavailableError, match="the answer from Sluice was lost|shutting down") as raised:
            ask([serve(loses).url, serve(stops).url], way)
        assert raised.value.may_have_counted

    @pytest.mark.parametrize("way", [check, held_check])
    def test_that_of_another_check_leads_to_none_since_both_may_be_approved(
        self, ask: Ask, serve: Serve, way: Work
    ) -> None:
        second = serve(approves)

        with pytest.raises(SluiceUnavailableError, match="the answer from Sluice was lost") as raised:
            ask([serve(loses).url, second.url], way)
        assert raised.value.may_have_counted
        assert second.keys == []

    @pytest.mark.parametrize(
        "change",
        [
            lambda sluice: sluice.release("a", "id"),
            lambda sluice: sluice.renew("a", "id"),
            lambda sluice: sluice.correct("a", "id", 2),
            lambda sluice: sluice.pause("a", 1000),
            lambda sluice: sluice.report_remaining("a", 1),
        ],
        ids=["release", "renew", "correct", "pause", "report_remaining"],
    )
    def test_that_of_a_change_leads_to_another_which_changes_nothing_more(
        self, ask: Ask, serve: Serve, change: Work
    ) -> None:
        first, second = serve(loses), serve(approves)

        ask([first.url, second.url], change)

        assert (len(first.keys), len(second.keys)) == (1, 1)


def test_of_several_requests_that_an_address_fails_only_the_first_leads_to_the_next() -> None:
    addresses = Addresses(("http://a", "http://b/", "http://c"))
    addresses.leave("http://a")
    addresses.leave("http://a")

    assert addresses.current == "http://b"
    addresses.leave("http://b")
    addresses.leave("http://c")
    assert addresses.current == "http://a"


def test_all_addresses_are_asked_within_the_time_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("sluice_client._retries.monotonic", lambda: now)
    unreachable = SluiceUnavailableError("Sluice is unreachable", counted=False)
    retries = Retries(Call("PUT", ("a", "id"), {}, timeout=5.0), retries=1, addresses=3)

    now = 3.0
    assert (retries.pause_after(unreachable), retries.next_call.timeout) == (0.0, 2.0)
    # The third would have no time. After a pause, there is as much as before.
    now = 5.0
    assert (retries.pause_after(unreachable) > 0, retries.next_call.timeout) == (True, 5.0)
    now = 20.0
    with pytest.raises(SluiceUnavailableError, match="unreachable"):
        retries.pause_after(unreachable)


@pytest.mark.parametrize("url", [None, b"http://a", {"http://a"}, ["http://a", None]])
@pytest.mark.parametrize("client", [SluiceClient, AsyncSluiceClient])
def test_what_is_no_address_and_no_list_of_addresses_is_named(
    client: type[SluiceClient | AsyncSluiceClient], url: Any
) -> None:
    with pytest.raises(TypeError, match="url must be an address as a str, .*, or a list of these, not") as raised:
        client(url)
    assert repr(url) in str(raised.value)


def test_an_address_in_a_list_without_http_is_named() -> None:
    with pytest.raises(ValueError, match="url must begin with http:// or https://.*, not 'b:8080'"):
        SluiceClient(["http://a", "b:8080"])


def test_a_client_without_an_address_is_an_error() -> None:
    with pytest.raises(ValueError, match="url must have an address"):
        SluiceClient([])
