from .._protocol import Peek
from .._quota import Quota
from .arguments import Invocation
from .ask import Asked, ask
from .check import quota_fields
from .durations import shown_time
from .exit_codes import Exit
from .output import print_json, print_result


async def peek(invocation: Invocation) -> int:
    """`peek`: says what a check would get now. Returns the exit code."""
    return await ask(invocation, _peek)


async def _peek(asked: Asked) -> int:
    key, values = asked.key, asked.values
    peeked = await asked.sluice.peek(
        key, hits=values.number("hits"), lane=values.text("lane"), group=values.text("group")
    )
    if values.has("json"):
        fields = {"allowed": peeked.allowed, "key": key, "waitMillis": peeked.wait_millis, "limit": peeked.limit}
        print_json({**fields, "quota": quota_fields(peeked.quota)})
    else:
        print_result(f"{key}: {_verdict(peeked)}", *map(_line, peeked.quota))
    return Exit.OK if peeked.allowed else Exit.DENIED


def _verdict(peeked: Peek) -> str:
    if peeked.allowed:
        return "would be approved"
    by = "" if peeked.limit is None else f" by the limit {peeked.limit}"
    return f"would be denied{by}, a turn would come in {shown_time(peeked.wait_millis)}"


def _line(quota: Quota) -> str:
    reset = shown_time(quota.reset_seconds * 1000)
    return f"  {quota.name}: {quota.remaining} of {quota.limit} remain, reset in {reset}"
