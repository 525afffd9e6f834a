import os

from openai import DefaultHttpxClient, OpenAI
from sluice_client import SluiceClient
from sluice_client.httpx2 import LimitedTransport

with SluiceClient(os.environ["SLUICE_URL"]) as sluice:
    limited = LimitedTransport(
        sluice,
        "openai",
        hits=500,
        reports_remaining={"requests": "requests", "tokens": "default"},
        pauses_key=True,
    )
    with OpenAI(http_client=DefaultHttpxClient(transport=limited)) as client:
        messages = [{"role": "user", "content": "Say hello."}]
        completion = client.chat.completions.create(model="gpt-5", messages=messages)
        print(completion.choices[0].message.content)

    # The next check of any caller, of 100 tokens.
    decision = sluice.check("openai", hits=100)
    print({quota.name: quota.remaining for quota in decision.quota})
