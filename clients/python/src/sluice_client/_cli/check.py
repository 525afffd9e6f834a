from .._errors import SluiceDeniedError
from .._protocol import Approval, Denial
from .._quota import Quota
from .arguments import Invocation
from .ask import Asked, ask, asking_of
from .errors import OutputError
from .exit_codes import Exit
from .output import print_json, print_result


async def check(invocation: Invocation) -> int:
    """`check`: prints the request id of an approval. Returns the exit code."""
    return await ask(invocation, _check)


async def _check(asked: Asked) -> int:
    values, messages = asked.values, asked.messages
    asking, max_wait_millis = asking_of(values), values.number("max-wait")
    if values.has("wait") or max_wait_millis is not None:
        decision = await asked.sluice.wait(
            asked.key, **asking, max_wait_millis=max_wait_millis, on_progress=messages.waits
        )
    else:
        decision = await asked.sluice.check(asked.key, **asking)
    try:
        _tell(asked, decision)
    except OutputError:
        # Nobody knows the id.
        if isinstance(decision, Approval):
            await asked.sluice.release(asked.key, decision.request_id)
        raise
    return Exit.OK if isinstance(decision, Approval) else Exit.DENIED


def _tell(asked: Asked, decision: Approval | Denial) -> None:
    """Raises an OutputError if the result can't be written."""
    key, quota = asked.key, quota_fields(decision.quota)
    if not isinstance(decision, Approval):
        if asked.values.has("json"):
            fields = {"approved": False, "key": key, "retryAfterSeconds": decision.retry_after}
            print_json({**fields, "limit": decision.limit, "quota": quota})
        else:
            asked.messages.failed(SluiceDeniedError(key, decision.retry_after, decision.limit))
    elif asked.values.has("json"):
        uncounted = True if decision.uncounted else None
        fields = {"approved": True, "key": key, "requestId": decision.request_id}
        print_json({**fields, "uncounted": uncounted, "quota": quota})
    else:
        asked.messages.approved(decision.request_id)
        print_result(decision.request_id)


def quota_fields(quota: tuple[Quota, ...]) -> list[dict[str, object]]:
    """The quota as the Node client names its fields."""
    return [
        {
            "name": one.name,
            "limit": one.limit,
            "remaining": one.remaining,
            "resetSeconds": one.reset_seconds,
            **({} if one.window_seconds is None else {"windowSeconds": one.window_seconds}),
        }
        for one in quota
    ]
