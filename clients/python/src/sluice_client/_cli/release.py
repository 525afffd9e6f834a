from .arguments import Invocation
from .ask import Asked, ask
from .exit_codes import Exit
from .output import print_json, print_result, write_line
from .program import PROGRAM


async def release(invocation: Invocation) -> int:
    """`release`: gives an approval back. Returns the exit code."""
    _, request_id = invocation.operands

    async def work(asked: Asked) -> int:
        released = await asked.sluice.release(asked.key, request_id)
        if asked.values.has("json"):
            print_json({"released": released, "key": asked.key, "requestId": request_id})
        elif released:
            print_result(f"{asked.key}: released")
        else:
            write_line(f"{PROGRAM}: {asked.key}: no such approval")
        return Exit.OK if released else Exit.NOT_FOUND

    return await ask(invocation, work)
