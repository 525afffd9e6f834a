import asyncio
import re
from collections.abc import Callable

import httpx
import pytest
from sluice_client import Approval, AsyncSluiceClient, Quota, SluiceClient, SluiceError

from .conftest import ROOT

URL = "http://sluice"
EXPECTED = [
    "PUT http://sluice/rate/a%2Fb?remaining=0",
    "PUT http://sluice/rate/a?remaining=12&resetMillis=1000&limit=per+hour&group=b",
]


def recording(sent: list[str], status: int = 200) -> httpx.MockTransport:
    """Answers in place of Sluice."""

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(f"{request.method} {request.url}")
        return httpx.Response(status, json={"error": "the limit is a token_bucket"})

    return httpx.MockTransport(answer)


def test_a_report_has_what_remains_when_it_resets_the_limit_and_the_group() -> None:
    sent: list[str] = []
    with SluiceClient(URL, http=httpx.Client(transport=recording(sent))) as sluice:
        sluice.report_remaining("a/b", 0)
        sluice.report_remaining("a", 12, reset_millis=1000, limit="per hour", group="b")

    assert sent == EXPECTED


def test_a_task_reports_the_same() -> None:
    sent: list[str] = []

    async def report() -> None:
        async with AsyncSluiceClient(URL, http=httpx.AsyncClient(transport=recording(sent))) as sluice:
            await sluice.report_remaining("a/b", 0)
            await sluice.report_remaining("a", 12, reset_millis=1000, limit="per hour", group="b")

    asyncio.run(report())

    assert sent == EXPECTED


def test_a_report_that_is_rejected_raises() -> None:
    with (
        SluiceClient(URL, http=httpx.Client(transport=recording([], 400))) as sluice,
        pytest.raises(SluiceError, match="the limit is a token_bucket") as raised,
    ):
        sluice.report_remaining("a", 1)
    assert raised.value.status == 400


def test_the_example_of_the_page_reports_if_less_remains_than_sluice_believes() -> None:
    page = (ROOT / "docs/vendor-headers.md").read_text()
    *_, example = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Callable[..., None]] = {}
    exec(example, names)
    left = (Quota("default", 1000, 900, 60, 60), Quota("requests", 60, 59, 60, 60))
    headers = {
        "x-ratelimit-remaining-requests": "58",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "900",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    sent: list[str] = []
    with SluiceClient(URL, http=httpx.Client(transport=recording(sent))) as sluice:
        names["report"](sluice, "llm", Approval("id", False, left), headers)

    assert sent == ["PUT http://sluice/rate/llm?remaining=58&resetMillis=1000&limit=requests"]
