import os

import httpx
import litellm
from sluice_client import LimitedTransport, SluiceClient

with SluiceClient(os.environ["SLUICE_URL"]) as sluice:
    limited = LimitedTransport(
        sluice,
        "litellm",
        hits=500,
        reports_remaining={"requests": "requests", "tokens": "default"},
        pauses_key=True,
    )
    litellm.client_session = httpx.Client(transport=limited, follow_redirects=True)

    messages = [{"role": "user", "content": "Say hello."}]
    completion = litellm.completion(model="openai/gpt-5", messages=messages)
    print(completion.choices[0].message.content)

    # The next check of any caller, of 100 tokens.
    decision = sluice.check("litellm", hits=100)
    print({quota.name: quota.remaining for quota in decision.quota})
