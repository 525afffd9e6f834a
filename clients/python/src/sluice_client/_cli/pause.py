from .arguments import Invocation
from .ask import Asked, ask
from .durations import parse_duration
from .errors import CommandLineError
from .exit_codes import Exit
from .output import print_json, print_result


async def pause(invocation: Invocation) -> int:
    """`pause`: approves no check of a key for a time, or ends that. Returns the exit code.

    Raises a CommandLineError if the duration is wrong.
    """
    _, *durations = invocation.operands
    if bool(durations) == invocation.values.has("end"):
        raise CommandLineError("pause needs DURATION or --end")
    group = invocation.values.text("group")
    millis = parse_duration("DURATION", durations[0]) if durations else 0

    async def work(asked: Asked) -> int:
        await asked.sluice.pause(asked.key, millis, group=group)
        if asked.values.has("json"):
            print_json({"key": asked.key, "group": group, "pauseMillis": millis})
        else:
            paused = asked.key if group is None else f"{asked.key}, group {group}"
            print_result(f"{paused}: {'pause ended' if millis == 0 else f'paused for {durations[0]}'}")
        return Exit.OK

    return await ask(invocation, work)
