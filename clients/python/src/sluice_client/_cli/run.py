import asyncio

from .._errors import SluicePermitLostError
from .arguments import Invocation
from .ask import Asked, ask, asking_of
from .child import Child
from .exit_codes import Exit

DEFAULT_GRACE_MILLIS = 10_000


async def run(invocation: Invocation) -> int:
    """`run`: runs CMD while it holds an approval. Returns the exit code."""

    async def work(asked: Asked) -> int:
        stopped = False
        values, messages = asked.values, asked.messages
        grace = values.number("grace")
        try:
            async with asked.sluice.permit(
                asked.key,
                **asking_of(values),
                wait=not values.has("no-wait"),
                max_wait_millis=values.number("max-wait"),
                on_progress=messages.waits,
                on_release_error=messages.unreleased,
            ) as permit:
                messages.approved(permit.request_id)
                environment = {"SLUICE_KEY": asked.key, "SLUICE_REQUEST_ID": permit.request_id}
                child = await Child.start(invocation.command_line, environment, messages.unsignalled)
                asked.signals.receiver = child.pass_on
                try:
                    return await child.ended()
                except asyncio.CancelledError:
                    # Signals go to CMD from now on, so that only the loss of the permit cancels.
                    messages.lost(SluicePermitLostError(permit.key, permit.request_id))
                    stopped = True
                    await child.stop((DEFAULT_GRACE_MILLIS if grace is None else grace) / 1000)
                    raise
        except SluicePermitLostError:
            if not stopped:
                raise
            return Exit.LOST

    return await ask(invocation, work)
