import asyncio
import os
import sys

import httpx
from sluice_client import AsyncLimitedTransport, AsyncSluiceClient


def client_for(sluice, tenant):
    limited = AsyncLimitedTransport(
        sluice,
        "llm-api",
        group=tenant,
        hits=1000,  # The tokens of a call at most.
        hold_millis=30_000,  # Counts in `at-once` until the answer has ended.
        corrects_hits=True,  # To the tokens that the answer says were used.
        pauses_key=True,  # If the API answers 429,
        retries=3,  # and then the call is sent again.
    )
    return httpx.AsyncClient(transport=limited, base_url=os.environ["LLM_URL"], timeout=None)


async def main():
    body = {"model": "any", "messages": [{"role": "user", "content": "Say hello."}]}
    async with AsyncSluiceClient(os.environ["SLUICE_URL"]) as sluice:
        async with client_for(sluice, "acme") as acme, client_for(sluice, "noisy") as noisy:
            calls = [
                (acme, noisy)[number % 2].post("/v1/chat/completions", json=body)
                for number in range(int(sys.argv[1]))
            ]
            answers = [answer.json() for answer in await asyncio.gather(*calls)]
    texts = [answer["choices"][0]["message"]["content"] for answer in answers]
    print(texts.count("Hello"), "answers")


asyncio.run(main())
