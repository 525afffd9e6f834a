import asyncio
import os
import sys

import httpx
from sluice_client import AsyncSluiceClient


async def ask(sluice: AsyncSluiceClient, vendor: httpx.AsyncClient, prompt: str) -> str:
    # If this process is killed, its permits lapse after 10 s.
    async with sluice.permit("llm", hits=500, hold_millis=10_000) as permit:
        body = {"model": "any", "messages": [{"role": "user", "content": prompt}]}
        response = await vendor.post("/v1/chat/completions", json=body)
        answer = response.raise_for_status().json()
        # The true number of tokens takes the place of the estimate.
        await sluice.correct("llm", permit.request_id, answer["usage"]["total_tokens"])
        return answer["choices"][0]["message"]["content"]


async def main(prompts: list[str]) -> None:
    async with (
        AsyncSluiceClient(os.environ["SLUICE_URL"]) as sluice,
        httpx.AsyncClient(base_url=os.environ["VENDOR_URL"], timeout=None) as vendor,
    ):
        for answer in await asyncio.gather(*(ask(sluice, vendor, prompt) for prompt in prompts)):
            print(answer)


asyncio.run(main(sys.argv[1:]))
