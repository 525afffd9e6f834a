import os

import httpx
from sluice_client import LimitedTransport, SluiceClient


def answer(request):
    """Answers in place of the API: others have used most of its minute."""
    headers = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "9",
        "x-ratelimit-reset-requests": "51s",
        "x-ratelimit-limit-tokens": "10000",
        "x-ratelimit-remaining-tokens": "1500",
        "x-ratelimit-reset-tokens": "51s",
    }
    completion = {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}
    return httpx.Response(200, headers=headers, json=completion)


with SluiceClient(os.environ["SLUICE_URL"]) as sluice:
    limited = LimitedTransport(
        sluice,
        "model",
        httpx.MockTransport(answer),
        hits=500,
        reports_remaining={"requests": "requests", "tokens": "default"},
        pauses_key=True,
    )
    with httpx.Client(transport=limited) as http:
        completion = http.post("http://api.example/v1/chat/completions").json()
    print(completion["choices"][0]["message"]["content"])

    # The next check of any caller, of 100 tokens.
    decision = sluice.check("model", hits=100)
    print({quota.name: quota.remaining for quota in decision.quota})
