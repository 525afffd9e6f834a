"""Processes that are forked, as by gunicorn --preload, Celery and multiprocessing."""

import asyncio
import os
from collections.abc import Callable, Iterator

import httpx
import pytest
from sluice_client import AsyncSluiceClient, SluiceClient, SluiceError

from .conftest import Service, keepalive_by_port

CHILDREN = 4
CHECKS = 25


def in_children(count: int, work: Callable[[int], object]) -> list[str]:
    """What the work returns, or the error that it raises, in each of `count` forked processes at the same time."""
    children = []
    for index in range(count):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                text = str(work(index))
            except BaseException as error:
                text = repr(error)
            os.write(write, text.encode())
            # Nothing of the parent's is cleaned up here.
            os._exit(0)
        os.close(write)
        children.append((pid, read))
    results = []
    for pid, read in children:
        with os.fdopen(read) as pipe:
            results.append(pipe.read())
        os.waitpid(pid, 0)
    return results


@pytest.fixture
def sluice(service: Service, key: str) -> Iterator[SluiceClient]:
    with SluiceClient(service.url) as client:
        # A connection that each child inherits.
        client.check(key)
        yield client


def test_children_get_the_answers_to_their_own_checks(service: Service, sluice: SluiceClient, key: str) -> None:
    inherited = keepalive_by_port(service.port).keys()

    def approvals(index: int) -> tuple[int, int]:
        approved = sum(sluice.check(f"{key} {index}").approved for _ in range(CHECKS))
        return approved, len(keepalive_by_port(service.port).keys() - inherited)

    # One approval each, on a connection of its own.
    assert in_children(CHILDREN, approvals) == ["(1, 1)"] * CHILDREN
    assert not sluice.check(key).approved


def test_children_of_an_asynchronous_client_get_the_answers_to_their_own_checks(service: Service, key: str) -> None:
    sluice = AsyncSluiceClient(service.url)

    async def check(name: str, times: int) -> int:
        return sum([(await sluice.check(name)).approved for _ in range(times)])

    loop = asyncio.new_event_loop()
    loop.run_until_complete(check(key, 1))

    assert in_children(CHILDREN, lambda index: asyncio.run(check(f"{key} {index}", CHECKS))) == ["1"] * CHILDREN

    assert loop.run_until_complete(check(key, 1)) == 0
    loop.run_until_complete(sluice.close())
    loop.close()


def test_a_child_neither_releases_nor_renews_the_permit_of_its_parent(
    service: Service, sluice: SluiceClient, key: str
) -> None:
    name = f"{key} held"

    def leave(_: int) -> None:
        block.__exit__(None, None, None)
        # A renewal would be due several times.
        assert not sluice.wait(name, max_wait_millis=0).approved

    block = sluice.permit(name, hold_millis=60_000)
    with sluice.permit(f"{name} also"):
        block.__enter__()
        assert in_children(2, leave) == ["None", "None"]
        assert service.state(name)["NumHeld"] == 1
        block.__exit__(None, None, None)
    assert service.state(name).get("NumHeld") is None


def test_a_child_may_close_the_client(sluice: SluiceClient, key: str) -> None:
    def close(_: int) -> None:
        sluice.close()

    assert in_children(1, close) == ["None"]
    assert not sluice.check(key).approved


def test_a_child_can_not_use_the_connections_of_a_client_that_was_given(service: Service, key: str) -> None:
    with SluiceClient(service.url, http=httpx.Client()) as sluice:
        sluice.check(key)

        def check(_: int) -> object:
            return sluice.check(key)

        [result] = in_children(1, check)
        assert SluiceError.__name__ in result
        assert "make a client here" in result


def test_a_child_may_be_the_first_to_use_a_client_that_was_given(service: Service, key: str) -> None:
    with SluiceClient(service.url, http=httpx.Client()) as sluice:
        assert in_children(1, lambda _: sluice.check(key).approved) == ["True"]
