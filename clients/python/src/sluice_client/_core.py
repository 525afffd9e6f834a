import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from time import monotonic
from typing import TypeVar, Unpack

import httpx

from ._addresses import Addresses, Url
from ._errors import SluiceDeniedError, SluiceError, SluiceTimeoutError, SluiceUnavailableError
from ._holder import Holder, Name
from ._kept_wait import Chain, KeptWait, longest_kept
from ._permit import Permit, Renewals
from ._protocol import Approval, AskingOptions, Call, CheckOptions, Decision, Peek, PermitOptions, RequestStatus
from ._protocol import Token, WaitOptions, decision_in, error_in, is_found, is_lost, peek_in, status_in, unanswered
from ._retries import Retries


# How long what Sluice has said about the longest time of a place is believed: meanwhile its replicas may be updated.
BELIEVED_SECONDS = 600.0
# A request may arrive after the release that was sent after it.
OVERTAKEN_SECONDS = 1.0
# How long the correction of a limited transport takes at most. The release of the hold waits for it.
CORRECTION_SECONDS = 1.0

T = TypeVar("T")


class Core(ABC):
    """What both clients do. The one for threads runs it without ever suspending it."""

    def __init__(
        self,
        url: Url,
        token: Token = None,
        timeout: float = 5.0,
        retries: int = 3,
        keep_millis: int = 30_000,
        long_poll_millis: int = 25_000,
        holder: Name = None,
    ) -> None:
        if not keep_millis >= 0:
            raise ValueError(f"keep_millis must be at least 0, not {keep_millis!r}")
        if not long_poll_millis > 0:
            raise ValueError(f"long_poll_millis must be above 0, not {long_poll_millis!r}")
        self._addresses = Addresses(url)
        self._token = token
        self._timeout = timeout
        self._retries = retries
        self._holder = Holder(holder)
        self._keep_millis = keep_millis
        self._chain = Chain(math.ceil(long_poll_millis / 1000), timeout, retries, len(self._addresses))
        # The longest time for which Sluice keeps a place, as it has said.
        self._longest_kept = 0
        self._believed_until = -math.inf

    @abstractmethod
    async def _request(self, call: Call, url: str, headers: dict[str, str]) -> httpx.Response:
        """Sends one request. If its caller leaves, an approval that still arrives is released."""

    @abstractmethod
    def _later(self, seconds: float, work: Callable[[], Coroutine[object, None, None]]) -> None:
        """Does some work after this time, unless the client is closed or the process ends before."""

    @abstractmethod
    def _keep_renewed(
        self, permit: Permit, renewals: Renewals, is_used: Callable[[], bool] = lambda: True
    ) -> Callable[[], object]:
        """Renews a hold in the background until it is lost, or is used no longer. Returns what ends that."""

    @abstractmethod
    async def _until_lost(self, permit: Permit, do: Callable[[], Awaitable[T]]) -> T:
        """Does a step of the work of a permit. If it can, it ends the step once the permit is lost."""

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def check(self, key: str, **options: Unpack[CheckOptions]) -> Decision:
        """Asks for permission, and is approved or denied at once."""
        return await self._decide(key, options, self._timeout)

    async def wait(self, key: str, **options: Unpack[WaitOptions]) -> Decision:
        """Asks for permission, and waits for it in the key's queue, without a limit unless one is given.

        The place in the queue outlives its connection: the wait goes on if the connection or the replica is lost.
        """
        return await self._wait(key, options, self._holder.name_for(options))

    async def peek(
        self, key: str, *, hits: int | None = None, lane: str | None = None, group: str | None = None
    ) -> Peek:
        """Says what a check would get now. Nothing is counted, and the answer promises nothing."""
        parameters = {"peek": "true", "hits": hits, "lane": lane, "group": group}
        return peek_in(await self._send(Call("GET", (key,), parameters, self._timeout)))

    async def request_status(self, key: str, request_id: str) -> RequestStatus | None:
        """Says whether a request waits or is approved. Returns None if it is unknown, was released or is over."""
        return status_in(await self._send(Call("GET", (key, request_id), {}, self._timeout)))

    async def release(self, key: str, request_id: str) -> bool:
        """Releases an approval. Returns False if it no longer exists."""
        return is_found(await self._send(Call("DELETE", (key, request_id), {}, self._timeout)))

    async def correct(self, key: str, request_id: str, hits: int) -> bool:
        """Corrects the hits of an approval. Returns False if it no longer exists."""
        return is_found(await self._send(Call("PUT", (key, request_id), {"hits": hits}, self._timeout)))

    async def renew(self, key: str, request_id: str, hold_millis: int | None = None) -> bool:
        """Renews the hold of an approval. Returns False if it no longer exists, or is not held."""
        return is_found(await self._send(Call("PUT", (key, request_id), {"hold_millis": hold_millis}, self._timeout)))

    async def pause(self, key: str, millis: int, *, can_shorten: bool = True, group: str | None = None) -> None:
        """Pauses a key for all callers, or one `group` of a key with fair groups. 0 ends the pause.

        With `can_shorten=False`, a pause that is on does not end sooner: for a program that pauses by itself.
        """
        parameters = {"pause_millis": millis, "can_shorten": None if can_shorten else "false", "group": group}
        is_found(await self._send(Call("PUT", (key,), parameters, self._timeout)))

    async def report_remaining(
        self,
        key: str,
        remaining: int,
        *,
        reset_millis: int | None = None,
        limit: str | None = None,
        group: str | None = None,
    ) -> None:
        """Reports how much remains of a quota that Sluice does not count alone, such as a vendor's.

        If Sluice believes that more remains, only so much is approved from now on, for `reset_millis`, or until the
        window of the limit ends. A report never makes room. `limit` names a further limit of the key, and `group` the group
        that the report is about, if each group has the limit to itself. Raises a SluiceError with the status 400 if the
        limit is not a fixed window.
        """
        await self._send_report(key, remaining, reset_millis, limit, group, self._timeout)

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
        parameters = {"remaining": remaining, "reset_millis": reset_millis, "limit": limit, "group": group}
        is_found(await self._send(Call("PUT", (key,), parameters, timeout), retries))

    async def _decide(self, key: str, parameters: Mapping[str, object], timeout: float | None) -> Decision:
        return await self._ask(key, self._holder.named(parameters), timeout)

    async def _wait(self, key: str, options: WaitOptions, holder: str | None) -> Decision:
        while (keep_millis := self._kept_now()) > 0:
            wait = KeptWait(key, options, holder, keep_millis, self._chain)
            try:
                return await self._wait_kept(wait)
            except SluiceError as error:
                longest = longest_kept(error)
                if longest is None or longest >= keep_millis:
                    raise
                self._longest_kept = longest
                self._believed_until = monotonic() + BELIEVED_SECONDS
                options = wait.options_left
        asked = options.copy()
        timeout = asked.pop("timeout", None)
        asked.pop("on_progress", None)
        return await self._ask(key, {**asked, "can_wait": "true", "holder": holder}, timeout)

    async def _ask(self, key: str, parameters: Mapping[str, object], timeout: float | None) -> Decision:
        return decision_in(await self._send(Call("POST", (key,), parameters, timeout)))

    async def _approval(self, key: str, options: AskingOptions) -> Approval:
        """Waits for an approval, or asks once if `wait` is False. Raises SluiceDeniedError if it is denied."""
        asking = options.copy()
        wait = asking.pop("wait", True)
        waiting: WaitOptions = asking
        if wait:
            decision = await self.wait(key, **waiting)
        else:
            waiting.pop("on_progress", None)
            timeout = waiting.pop("timeout", self._timeout)
            decision = await self._decide(key, waiting, timeout)
        if isinstance(decision, Approval):
            return decision
        raise SluiceDeniedError(key, decision.retry_after, decision.limit)

    async def _acquire(self, key: str, options: PermitOptions) -> tuple[Permit, Renewals | None]:
        hold = options.pop("hold", True)
        on_release_error = options.pop("on_release_error", None)
        if hold:
            options.setdefault("hold_millis", 30_000)
        asked_at = monotonic()
        approval = await self._approval(key, options)
        permit = Permit(key, approval.request_id, on_release_error)
        if not hold or approval.uncounted:
            return permit, None
        return permit, await self._held(permit, options["hold_millis"], asked_at)

    async def _held(self, permit: Permit, hold_millis: int, asked_at: float) -> Renewals:
        """The renewals of a hold that its caller has. Raises SluicePermitLostError if it is lost already."""
        renewals = Renewals(hold_millis / 1000, asked_at)
        try:
            # After a wait, nothing says how long ago the turn came.
            while renewals.has_to_begin and not await self._renew_once(permit, renewals):
                permit.raise_if_lost()
                await self._sleep(renewals.pause)
        except BaseException:
            await self._give_back(permit)
            raise
        return renewals

    async def _renew_used(self, permit: Permit, renewals: Renewals, is_used: Callable[[], bool]) -> None:
        """Renews a hold, or ends it if it is used no longer."""
        if permit._is_inherited:
            return
        if is_used():
            await self._renew_once(permit, renewals)
        elif not permit._is_over:
            permit._lose(TimeoutError(f"nobody has read the body for {renewals.hold_seconds * 1000:.0f} ms"))
            await self._release_unnoticed(permit.key, permit.request_id)

    async def _renew_once(self, permit: Permit, renewals: Renewals) -> bool:
        timeout, sent_at = renewals.timeout, monotonic()
        if timeout <= 0:
            return permit._lose(renewals.cause)
        try:
            if is_found(await self._send(Call("PUT", (permit.key, permit.request_id), {}, timeout), retries=0)):
                return renewals.succeeded(sent_at)
            return permit._lose(None)
        except SluiceError as error:
            return renewals.failed(error)

    async def _give_back(self, permit: Permit) -> None:
        """Releases a permit. A failure is only told, since the permit ends with its hold or window."""
        permit._is_over = True
        if permit.is_lost or permit._is_inherited:
            return
        try:
            await self.release(permit.key, permit.request_id)
        except SluiceError as error:
            permit._not_released(error)

    async def _settle(self, permit: Permit, hits: int | None, is_held: bool) -> None:
        """Corrects the hits of a permit, and gives it back if it is held. A correction that fails is ignored."""
        if hits is not None:
            call = Call("PUT", (permit.key, permit.request_id), {"hits": hits}, CORRECTION_SECONDS)
            with suppress(SluiceError):
                is_found(await self._send(call, retries=0))
        if is_held:
            await self._give_back(permit)

    def _kept_now(self) -> int:
        """For how many milliseconds a wait keeps its place."""
        is_believed = monotonic() < self._believed_until
        return min(self._keep_millis, self._longest_kept) if is_believed else self._keep_millis

    async def _wait_kept(self, wait: KeptWait) -> Decision:
        try:
            while True:
                call, address = wait.next_call(), self._addresses.current
                try:
                    decision = wait.decision_in(await self._send_once(call))
                except SluiceUnavailableError as error:
                    wait.failed(error)
                    # The replica may be frozen.
                    if isinstance(error, SluiceTimeoutError):
                        self._addresses.leave(address)
                else:
                    if decision is not None:
                        return decision
                if wait.pause > 0:
                    await self._sleep(wait.pause)
        except BaseException:
            if wait.may_have_place:
                await self._withdraw(wait.key, wait.request_id)
            raise

    async def _withdraw(self, key: str, request_id: str) -> None:
        """Withdraws a wait whose caller has left, or releases its approval. A failure is ignored: the place lapses."""
        with suppress(SluiceError):
            if not await self.release(key, request_id):
                await self._sleep(OVERTAKEN_SECONDS)
                await self.release(key, request_id)

    async def _release_late(self, call: Call, response: httpx.Response) -> None:
        """Releases the approval in an answer whose caller has left."""
        with suppress(SluiceError):
            decision = decision_in(response)
            if isinstance(decision, Approval):
                await self._release_unnoticed(call.names[0], decision.request_id)

    async def _release_unnoticed(self, key: str, request_id: str) -> None:
        with suppress(SluiceError):
            await self.release(key, request_id)

    async def _send(self, call: Call, retries: int | None = None) -> httpx.Response:
        """Sends a request, and sends it again if that helps."""
        trying = Retries(call, self._retries if retries is None else retries, len(self._addresses))
        while True:
            try:
                return await self._send_once(trying.next_call)
            except SluiceUnavailableError as error:
                pause = trying.pause_after(error)
            if pause > 0:
                await self._sleep(pause)

    async def _send_once(self, call: Call) -> httpx.Response:
        token = self._token() if callable(self._token) else self._token
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if call.prefer_wait is not None:
            headers["Prefer"] = f"wait={call.prefer_wait}"
        address = self._addresses.current
        try:
            response = await self._request(call, address + call.path, headers)
        except httpx.TransportError as cause:
            error = unanswered(cause)
            if is_lost(error):
                self._addresses.leave(address)
            raise error from cause
        # A replica that stops asks for it with each answer.
        if response.headers.get("connection") == "close":
            self._addresses.leave(address)
        if response.status_code >= 500:
            raise error_in(response)
        return response
