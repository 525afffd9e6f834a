"""The middleware in real apps of FastAPI and Starlette, served by uvicorn, with a Sluice in a process of its own."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from sluice_client import Approval, AsyncSluiceClient, RateLimitMiddleware, SluiceClient
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from .conftest import GONE, Service, hour_left


class Served:
    """An app behind uvicorn, in a thread of its own."""

    def __init__(self, app: ASGIApp) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
        self._thread = threading.Thread(target=self._server.run, args=([listener],))
        self._thread.start()

    def end(self) -> None:
        self._server.should_exit = True
        self._thread.join()


class Apps:
    """Serves apps whose requests name their key in the query, and notes the bodies that the apps get."""

    def __init__(self) -> None:
        self.handled: list[bytes] = []
        self._served: list[Served] = []

    def fastapi(self, url: str, **options: Any) -> Served:
        app = FastAPI()
        sluice = AsyncSluiceClient(url, retries=0)
        app.add_middleware(
            RateLimitMiddleware, sluice=sluice, key=lambda scope: Request(scope).query_params.get("key"), **options
        )

        @app.post("/")
        async def handle(request: Request) -> JSONResponse:
            self.handled.append(await request.body())
            return JSONResponse("done")

        return self.serve(app)

    def serve(self, app: ASGIApp) -> Served:
        self._served.append(Served(app))
        return self._served[-1]

    def end(self) -> None:
        for one in self._served:
            one.end()


@pytest.fixture
def apps() -> Iterator[Apps]:
    one = Apps()
    yield one
    one.end()


@pytest.mark.parametrize("options", [{}, {"wait": True, "max_wait_millis": 1000}])
def test_a_request_passes_while_there_is_room_and_then_gets_a_429(
    service: Service, apps: Apps, key: str, options: dict[str, object]
) -> None:
    url = f"{apps.fastapi(service.url, **options).url}/?key={key}"
    begun_at = time.monotonic()
    first, second = httpx.post(url, content=b"body"), httpx.post(url)
    left = hour_left(begun_at)

    assert (first.status_code, first.json(), apps.handled) == (200, "done", [b"body"])
    assert (second.status_code, second.text) == (429, '{"error":"rate limit exceeded"}')
    assert second.headers["cache-control"] == "no-store"
    for response in (first, second):
        assert response.headers["ratelimit-policy"] == '"default";q=1;w=3600'
    assert first.headers["ratelimit"] == '"default";r=0;t=3600'
    told = (second.headers["retry-after"], second.headers["ratelimit"])
    assert told in [(str(seconds), f'"default";r=0;t={seconds}') for seconds in left]


def test_a_response_has_nothing_of_the_quota_if_told_so(service: Service, apps: Apps, key: str) -> None:
    app = apps.fastapi(service.url, quota_headers=False)
    assert "ratelimit" not in httpx.post(f"{app.url}/?key={key}").headers


def test_the_headers_of_the_app_win(service: Service, apps: Apps, key: str) -> None:
    async def own(_: Request) -> JSONResponse:
        return JSONResponse("done", headers={"RateLimit": '"own";r=7;t=1'})

    app = Starlette(routes=[Route("/", own)])
    app.add_middleware(RateLimitMiddleware, sluice=AsyncSluiceClient(service.url), key=key)

    headers = httpx.get(apps.serve(app).url).headers
    assert headers.get_list("ratelimit") == ['"own";r=7;t=1']
    assert headers["ratelimit-policy"] == '"default";q=1;w=3600'


def test_a_request_without_a_key_and_a_websocket_pass(apps: Apps) -> None:
    assert httpx.post(apps.fastapi(GONE).url).status_code == 200

    async def main() -> None:
        sent: list[Any] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await WebSocket(scope, receive, send).accept()

        async def receive() -> dict[str, str]:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        async with AsyncSluiceClient(GONE) as client:
            await RateLimitMiddleware(app, client, "key")({"type": "websocket"}, receive, send)
        assert sent == ["websocket.accept"]

    asyncio.run(main())


def test_a_request_can_wait_in_its_group_and_the_app_gets_its_body(
    service: Service, sluice: SluiceClient, apps: Apps, key: str
) -> None:
    decision = sluice.check(key := f"fair-{key}")
    assert isinstance(decision, Approval)
    app = apps.fastapi(service.url, wait=True, group=lambda scope: Request(scope).headers["tenant"])
    # More than is read of a body during a wait.
    how: Any = {"content": b"body" * 50_000, "headers": {"tenant": "acme"}, "timeout": 60}
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(httpx.post, f"{app.url}/?key={key}", **how)
        service.wait_for(key, "NumWaiting", 1)
        queue: Any = service.state(key)["Queue"]
        sluice.release(key, decision.request_id)
        assert answer.result().status_code == 200
    assert [one["Group"] for one in queue["Lists"]] == ["acme"]
    assert apps.handled == [b"body" * 50_000]


def test_a_lane_that_a_key_does_not_have_is_rejected(service: Service, apps: Apps, key: str) -> None:
    app = apps.fastapi(service.url, lane="express")
    assert httpx.post(f"{app.url}/?key={key}").status_code == 500


def test_the_place_of_a_client_that_disconnects_is_given_back(
    service: Service, sluice: SluiceClient, apps: Apps, key: str
) -> None:
    sluice.check(key)
    app = apps.fastapi(service.url, wait=True)
    with socket.create_connection(("127.0.0.1", app.port)) as client:
        client.sendall(f"POST /?key={key} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody".encode())
        service.wait_for(key, "NumWaiting", 1)
    service.wait_for(key, "NumWaiting", 0)
    assert apps.handled == []


def test_a_request_whose_scope_is_cancelled_leaves_no_task(key: str) -> None:
    async def main() -> None:
        async def app(*_: object) -> None:
            """Is not called."""

        async def receive() -> Any:
            scope.cancel()
            await asyncio.Future()

        async def send(_: object) -> None:
            """Is not called."""

        async with AsyncSluiceClient(GONE, retries=0) as client:
            limited = RateLimitMiddleware(app, client, key, wait=True)
            # It cancels again and again.
            with anyio.CancelScope() as scope:
                await limited({"type": "http"}, receive, send)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_requests_get_a_503_without_sluice(apps: Apps) -> None:
    response = httpx.post(f"{apps.fastapi(GONE).url}/?key=a")
    assert (response.status_code, response.text) == (503, '{"error":"rate limiter unavailable"}')
    assert (response.headers["retry-after"], apps.handled) == ("1", [])


def test_requests_pass_without_sluice_if_the_policy_is_allow(apps: Apps) -> None:
    app = apps.fastapi(GONE, outage_policy="allow", wait=True)
    assert httpx.post(f"{app.url}/?key=a", content=b"body").status_code == 200
    assert apps.handled == [b"body"]


@pytest.mark.parametrize("policy", ["deny", "allow"])
def test_a_check_that_sluice_rejects_is_a_fault_of_the_app(service: Service, apps: Apps, policy: str) -> None:
    app = apps.fastapi(service.url, outage_policy=policy)
    assert httpx.post(f"{app.url}/?key={'x' * 600}").status_code == 500
    assert apps.handled == []


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"sluice": SluiceClient(GONE)}, "sluice must be an AsyncSluiceClient, not "),
        ({"key": None}, "key must be a str or a function of the scope, not None"),
        ({"outage_policy": "open"}, "outage_policy must be 'deny' or 'allow', not 'open'"),
    ],
)
def test_wrong_options_raise_an_error_that_names_them(given: dict[str, Any], error: str) -> None:
    options = {"app": Starlette(), "sluice": AsyncSluiceClient(GONE), "key": "key", **given}
    with pytest.raises((TypeError, ValueError), match=f"^{error}"):
        RateLimitMiddleware(**options)
