import asyncio
import os

from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from sluice_client import AsyncSluiceClient
from sluice_client.httpx2 import AsyncLimitedTransport


async def main():
    async with AsyncSluiceClient(os.environ["SLUICE_URL"]) as sluice:
        limited = AsyncLimitedTransport(
            sluice,
            "anthropic",
            hits=500,
            reports_remaining={"requests": "requests", "tokens": "default"},
            pauses_key=True,
        )
        async with AsyncAnthropic(http_client=DefaultAsyncHttpxClient(transport=limited)) as client:
            messages = [{"role": "user", "content": "Say hello."}]
            message = await client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=messages)
            print(message.content[0].text)

        # The next check of any caller, of 100 tokens.
        decision = await sluice.check("anthropic", hits=100)
        print({quota.name: quota.remaining for quota in decision.quota})


asyncio.run(main())
