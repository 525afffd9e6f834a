import os

import httpx
from sluice_client import LimitedTransport, SluiceClient


def answer(request):
    """Answers in place of the vendor."""
    return httpx.Response(200, text=f"answer to {request.url.params['of']}")


with SluiceClient(os.environ["SLUICE_URL"]) as sluice:
    for tenant in ["acme", "noisy"]:
        limited = LimitedTransport(sluice, "shared-vendor", httpx.MockTransport(answer), group=tenant, hits=500)
        with httpx.Client(transport=limited) as http:
            print(http.get("http://vendor.example/", params={"of": tenant}).text)
