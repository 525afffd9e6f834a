"""The rules of the reports, which are those of the Node client: test/unit/client/remaining-reports.test.ts."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta

from sluice_client import Quota, ReportedLimits, SluiceError, SluiceUnavailableError
from sluice_client._remaining_reports import RemainingReports

# A rule, whose name the own limit has, may be called as a further limit.
BELIEVED = (Quota("tokens", 10, 9, 1, 1), Quota("tokens", 1000, 900, 1, 1))
LIMITS: ReportedLimits = {"requests": "default", "tokens": "tokens"}


def rejection() -> SluiceError:
    return SluiceError("no", 400)


def requests(remaining: int, reset: str = "2s") -> dict[str, str]:
    return {"x-ratelimit-remaining-requests": str(remaining), "x-ratelimit-reset-requests": reset}


def tokens(remaining: int) -> dict[str, str]:
    return {"x-ratelimit-remaining-tokens": str(remaining), "x-ratelimit-reset-tokens": "6m0s"}


class Reports:
    """Reports with a clock of the test, and what they have sent."""

    def __init__(self, limits: ReportedLimits = LIMITS, fail: Callable[[], SluiceError] | None = None) -> None:
        self._fail = fail
        self.now = 0.0
        self.sent: list[str] = []
        self.bounds: list[tuple[float, int | None]] = []
        self._timers: list[tuple[float, Callable[[], Coroutine[object, None, None]]]] = []
        self._reports = RemainingReports(self, limits, now=lambda: self.now)

    def _later(self, seconds: float, work: Callable[[], Coroutine[object, None, None]]) -> None:
        self._timers.append((self.now + seconds, work))

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds
        due = [work for at, work in self._timers if at <= self.now]
        self._timers = [(at, work) for at, work in self._timers if at > self.now]
        for work in due:
            asyncio.run(work())

    async def _send_report(
        self,
        key: str,
        remaining: int,
        reset_millis: int | None,
        limit: str | None,
        group: str | None,
        timeout: float,
        retries: int | None = None,
    ) -> None:
        self.bounds.append((timeout, retries))
        self.sent.append(f"{key} {limit or 'own'} {remaining} in {reset_millis}")
        if self._fail:
            raise self._fail()

    def report(self, headers: dict[str, str], key: str = "key", quota: tuple[Quota, ...] = BELIEVED) -> int:
        return asyncio.run(self._reports.report(key, headers, quota))


def test_what_remains_is_reported_for_each_limit_if_sluice_believes_that_more_remains() -> None:
    reports = Reports()
    assert reports.report(requests(8) | tokens(899)) == 0
    assert reports.sent == ["key own 8 in 2000", "key tokens 899 in 360000"]

    reports.now += 1
    reports.report(requests(9) | tokens(900))
    assert len(reports.sent) == 2


def test_what_remains_is_reported_if_the_approval_does_not_say_what_sluice_believes() -> None:
    reports = Reports()
    reports.report(requests(8), quota=())
    assert reports.sent == ["key own 8 in 2000"]


def test_a_unit_without_a_limit_is_not_reported() -> None:
    reports = Reports({"tokens": "default"})
    reports.report(requests(0) | tokens(3))
    assert reports.sent == ["key own 3 in 360000"]


def test_of_all_that_is_said_of_one_limit_the_least_is_reported_and_the_later_reset_of_two() -> None:
    reports = Reports({**LIMITS, "input_tokens": "tokens"})
    reset = datetime.now(UTC) + timedelta(hours=25)
    reports.report(
        {
            "ratelimit": '"second";r=3;t=1, "hour";r=2;t=3600, "day";r=2;t=7200, "week";r=4;t=86400',
            **tokens(50),
            "anthropic-ratelimit-input-tokens-remaining": "40",
            "anthropic-ratelimit-input-tokens-reset": reset.isoformat(),
        }
    )
    assert reports.sent == ["key own 2 in 7200000", "key tokens 40 in 86400000"]


def test_a_limit_of_a_key_gets_at_most_one_report_a_second_of_the_least_at_its_end() -> None:
    reports = Reports()
    reports.report(requests(5))
    reports.report(requests(4, "9s"))
    reports.pass_seconds(0.5)
    reports.report(requests(3, "5s"))
    reports.report(requests(3, "4s"))
    reports.report(requests(7, "8s") | tokens(1))
    reports.report(requests(3), "other")
    reports.pass_seconds(0.25)
    assert reports.sent == ["key own 5 in 2000", "key tokens 1 in 360000", "other own 3 in 2000"]

    reports.pass_seconds(0.25)
    assert reports.sent[3:] == ["key own 3 in 4500"]
    reports.report(requests(2))
    reports.pass_seconds(0.5)
    assert reports.sent[4:] == []
    reports.pass_seconds(0.5)
    assert reports.sent[4:] == ["key own 2 in 1000"]
    reports.pass_seconds(1)
    assert reports.sent[5:] == []


def test_nothing_remains_is_reported_at_once_and_again_at_the_end_of_the_second() -> None:
    reports = Reports()
    reports.report(requests(8))
    reports.pass_seconds(0.25)
    reports.report(requests(7))
    reports.report(requests(0, "30s"))
    assert reports.sent == ["key own 8 in 2000", "key own 0 in 30000"]

    reports.pass_seconds(0.75)
    reports.report(requests(0, "31s"))
    assert reports.sent[2:] == []
    reports.pass_seconds(0.25)
    assert reports.sent[2:] == ["key own 0 in 30750"]


def test_what_resets_before_the_end_of_the_second_is_not_reported_then() -> None:
    reports = Reports()
    reports.report(requests(5))
    reports.report(requests(3, "1s"))
    reports.report(requests(4, "1001ms"))
    reports.report({"x-ratelimit-remaining": "6"})
    reports.pass_seconds(1)
    assert reports.sent[1:] == ["key own 4 in 1"]


def test_the_reports_of_an_answer_take_no_longer_than_until_the_next_may_be_sent() -> None:
    reports = Reports()
    reports.report(requests(5))
    assert reports.bounds == [(1.0, 0)]
    reports.report(requests(5) | tokens(1), "other")
    assert reports.bounds[1:] == [(0.5, 0), (0.5, 0)]


def test_reports_of_more_than_a_minute_ago_take_no_memory() -> None:
    reports = Reports()
    for now, key in [(0.0, "often"), (1.0, "once"), (2.0, "often"), (61.5, "last")]:
        reports.now = now
        reports.report(requests(5), key)

    assert [key for key, _ in reports._reports._sent] == ["often", "last"]


class TestRejected:
    def test_its_key_is_paused_while_nothing_remains_and_gets_no_report_for_a_minute(self) -> None:
        reports = Reports(fail=rejection)
        assert reports.report(requests(5)) == 0
        reports.now += 0.5
        assert reports.report(requests(4)) == 0
        assert reports.report(requests(0)) == 2000
        assert reports.report(requests(0)) == 0
        reports.now += 59.499
        assert reports.report(requests(0, "3s")) == 3000
        assert reports.sent == ["key own 5 in 2000"]

        reports.now += 1
        assert reports.report(requests(4)) == 0
        assert reports.sent == ["key own 5 in 2000", "key own 4 in 2000"]

    def test_its_key_is_paused_at_once_if_nothing_remains_for_the_longest_reset(self) -> None:
        reports = Reports(fail=rejection)
        assert reports.report(requests(0) | tokens(0)) == 360_000
        assert len(reports.sent) == 2

    def test_its_key_is_not_paused_without_a_time(self) -> None:
        assert Reports(fail=rejection).report({"x-ratelimit-remaining": "0"}) == 0

    def test_other_limits_and_keys_still_get_reports(self) -> None:
        reports = Reports(fail=rejection)
        reports.report(requests(5))
        reports.now += 1
        reports.report(requests(4) | tokens(3))
        reports.report(requests(4), "other")
        assert reports.sent[1:] == ["key tokens 3 in 360000", "other own 4 in 2000"]


def test_a_report_that_fails_is_ignored_and_the_next_one_is_sent() -> None:
    reports = Reports(fail=lambda: SluiceUnavailableError("lost", True))
    assert reports.report(requests(0)) == 0
    reports.now += 1
    assert reports.report(requests(0)) == 0
    assert len(reports.sent) == 2
