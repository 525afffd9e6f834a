import os

from celery import Celery
from sluice_client import Approval, SluiceClient

app = Celery("celery_tasks", broker=os.environ["BROKER_URL"], backend=os.environ["BROKER_URL"])
# Each process of a worker opens connections of its own.
sluice = SluiceClient(os.environ["SLUICE_URL"])


@app.task
def export(name):
    """Waits for its turn. Meanwhile it keeps a process of its worker."""
    with sluice.permit("exports"):
        return f"exported {name}"


@app.task(bind=True, max_retries=None)
def call_vendor(self, name):
    """Does not wait in the worker: it comes back when there may be room."""
    decision = sluice.check("vendor")
    if not isinstance(decision, Approval):
        raise self.retry(countdown=decision.retry_after)
    return f"called for {name}"


if __name__ == "__main__":
    print(export.delay("orders").get())
    # The vendor allows 10 a second.
    calls = [call_vendor.delay(f"order {number}") for number in range(12)]
    print(len([call.get() for call in calls]), "calls")
