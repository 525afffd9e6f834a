"""Uses a generated client against a service, and prints as JSON what it got.

Arguments: the folder of the package sluice_client, the address of the service, and a key with a maximum of 1.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

folder, url, key = sys.argv[1:]
sys.path.insert(0, folder)

from sluice_client import Client
from sluice_client.api.bulk_requests import check_many, release_many
from sluice_client.api.checks import amend, check, check_by_get, pause, release
from sluice_client.api.instances import show_instance
from sluice_client.models import CheckElement, ReleaseElement

client = Client(base_url=url)


def wait_for_place() -> None:
    while show_instance.sync(key, client=client).num_waiting != 1:
        pass


def held_hits(name: str) -> int:
    found = check_by_get.sync(name, client=client, max_requests=9, hits=2, hold_millis=60_000)
    return amend.sync(name, str(found.request_id), client=client, hits=3, hold_millis=90_000).hits


with ThreadPoolExecutor() as threads:
    first = check.sync(key, client=client)
    denied = check.sync_detailed(key, client=client, can_wait=False)
    waiting = threads.submit(check.sync_detailed, key, client=client, can_wait=True)
    wait_for_place()
    released = release.sync(key, str(first.request_id), client=client)
    waited = waiting.result()

elements = [CheckElement(key=f"{key}-{name}", max_requests=5, hits=2) for name in "ab"]
approved = check_many.sync(client=client, body=elements)
releases = [
    ReleaseElement(key=element.key, request_id=str(result.request_id))
    for element, result in zip(elements, approved)
]

print(
    json.dumps(
        {
            "denied": [denied.status_code, denied.parsed.error],
            "released": released.request_id == first.request_id,
            "waited": [waited.status_code, waited.parsed.request_id != first.request_id],
            "hits": held_hits(f"{key}-held"),
            "pauseMillis": pause.sync(key, client=client, pause_millis=1000).pause_millis,
            "checks": [result.status for result in approved],
            "releases": [result.status for result in release_many.sync(client=client, body=releases)],
        }
    )
)
