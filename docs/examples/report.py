import json
import os
import urllib.error
import urllib.request

SLUICE = os.environ["SLUICE_URL"]


def call(method, path, timeout):
    """Returns the status and the body. `timeout` is in seconds."""
    request = urllib.request.Request(SLUICE + path, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


# A wait is one long read: its time-out is longer than the longest wait.
status, body = call("POST", "/rate/python?canWait=true&maxWaitMillis=30000&holdMillis=60000", 35)
if status != 200:
    raise SystemExit(f"{status}: {body['error']}")
try:
    print("at work")
finally:
    status, _ = call("DELETE", f"/rate/python/{body['request_id']}", 5)
    print("released:", status)
