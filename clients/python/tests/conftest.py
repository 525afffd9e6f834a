"""A Sluice in a process of its own, with windows of an hour."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

ROOT = Path(__file__).parents[3]
SETTINGS = {
    "PORT": "0",
    "HOST": "127.0.0.1",
    "MAX_EVENT_LOOP_DELAY_MILLIS": "60000",
    "WINDOW_MILLIS": "3600000",
    "MAX_REQUESTS": "1",
    "SHUTDOWN_GRACE_MILLIS": "0",
}


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
                self.url = f"http://127.0.0.1:{logged['port']}"
                return
        raise RuntimeError("the service has ended")

    def state(self, key: str) -> dict[str, int]:
        state: dict[str, int] = self.http.get(f"{self.url}/debug/{key}").json()
        return state

    def wait_for(self, key: str, field: str, value: int) -> None:
        """Returns once a field of the key's state has a value."""
        while self.state(key).get(field) != value:
            pass

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.http.close()


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
def key() -> str:
    return str(uuid4())
