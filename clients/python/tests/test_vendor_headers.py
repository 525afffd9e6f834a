import json
import re
from datetime import datetime
from typing import Any

import httpx
import pytest
from sluice_client import VendorRemaining, remaining_in
from sluice_client._vendor_headers import retry_millis_in

from .conftest import ROOT

# What the Node client reads as well.
CASES = json.loads((ROOT / "test/support/client/vendor-headers.json").read_text())
NOW = datetime.fromisoformat(CASES["now"]).timestamp()


def said(stated: dict[str, object]) -> VendorRemaining:
    """What a case expects, which has the names of JavaScript."""
    unit = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", str(stated["unit"]))
    return VendorRemaining(unit, stated["remaining"], stated.get("resetMillis"))  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES["answers"], ids=lambda case: case["title"])
def test_an_answer_is_read(case: dict[str, list[dict[str, object]]]) -> None:
    headers: dict[str, str] = case["headers"]  # type: ignore[assignment]
    assert remaining_in(headers, NOW) == [said(stated) for stated in case["says"]]


@pytest.mark.parametrize("case", CASES["retries"])
def test_an_answer_asks_to_wait(case: dict[str, Any]) -> None:
    assert retry_millis_in(case["status"], case["headers"], NOW) == case["millis"]


@pytest.mark.parametrize("text", CASES["unreadable"]["remaining"])
def test_what_is_no_number_is_ignored(text: str) -> None:
    assert remaining_in({"x-ratelimit-remaining": text, "x-ratelimit-reset": "5"}, NOW) == []


@pytest.mark.parametrize("text", CASES["unreadable"]["reset"])
def test_what_is_no_time_is_ignored(text: str) -> None:
    headers = {"x-ratelimit-remaining": "3", "x-ratelimit-reset": text}
    assert remaining_in(headers, NOW) == [VendorRemaining("requests", 3, None)]


def test_names_of_headers_may_have_capitals() -> None:
    left = [VendorRemaining("requests", 3, 6000)]
    for kind in (dict, httpx.Headers):
        assert remaining_in(kind({"X-RateLimit-Remaining-Requests": "3", "X-RateLimit-Reset-Requests": "6s"})) == left
