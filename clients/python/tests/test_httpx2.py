"""Calls of a vendor through the limited transports for httpx2, with a Sluice in a process of its own."""

import asyncio
from collections.abc import Callable

import httpx2
import pytest
from sluice_client import AsyncSluiceClient, LimitedOptions, SluiceClient, SluiceDeniedError
from sluice_client.httpx2 import AsyncLimitedTransport, LimitedTransport

from .conftest import GONE, Service, Vendor

Get = Callable[[Service, str, LimitedOptions, str], httpx2.Response]


def in_a_thread(service: Service, key: str, options: LimitedOptions, url: str) -> httpx2.Response:
    with SluiceClient(service.url) as sluice:
        with httpx2.Client(transport=LimitedTransport(sluice, key, **options)) as http:
            return http.get(url)


def in_a_task(service: Service, key: str, options: LimitedOptions, url: str) -> httpx2.Response:
    async def main() -> httpx2.Response:
        async with AsyncSluiceClient(service.url) as sluice:
            async with httpx2.AsyncClient(transport=AsyncLimitedTransport(sluice, key, **options)) as http:
                return await http.get(url)

    return asyncio.run(main())


@pytest.mark.parametrize("get", [in_a_thread, in_a_task])
def test_a_request_needs_an_approval_and_reports_what_remains(
    service: Service, vendor: Vendor, key: str, get: Get
) -> None:
    key = f"llm-{key}"
    vendor.headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1h"}
    options: LimitedOptions = {"reports_remaining": {"requests": "requests"}, "wait": False}

    assert get(service, key, options, vendor.url).text == "OK"
    with pytest.raises(SluiceDeniedError) as raised:
        get(service, key, options, vendor.url)
    assert (raised.value.limit, len(vendor.calls)) == ("requests", 1)


@pytest.mark.parametrize("get", [in_a_thread, in_a_task])
def test_a_hold_ends_with_the_response_once_the_hits_are_corrected(
    service: Service, vendor: Vendor, key: str, get: Get
) -> None:
    key = f"worked-{key}"
    vendor.headers, vendor.body = {"content-type": "application/json"}, b'{"usage":{"total_tokens":12}}'
    options: LimitedOptions = {"hits": 100, "hold_millis": 60_000, "corrects_hits": True}

    assert get(service, key, options, vendor.url).json() == {"usage": {"total_tokens": 12}}

    assert service.state(key).get("NumHeld") is None
    assert service.used(key, "tokens") == 12


@pytest.mark.parametrize("get", [in_a_thread, in_a_task])
def test_the_approval_of_a_request_without_a_connection_is_released(service: Service, key: str, get: Get) -> None:
    with pytest.raises(httpx2.ConnectError):
        get(service, key, {}, GONE)
    assert service.state(key)["NumApprovedThisWindow"] == 0


def test_a_client_of_the_other_kind_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="^sluice must be a SluiceClient, not "):
        LimitedTransport(AsyncSluiceClient(GONE), "key")  # type: ignore[arg-type]
