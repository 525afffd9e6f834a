import os

from sluice_client import SluiceClient


def call_model(prompt):
    return prompt.upper()


with SluiceClient(os.environ["SLUICE_URL"]) as sluice:
    with sluice.permit("assistant", lane="interactive", hold=False):
        print(call_model("a question of a user"))
    # Without a lane: in the last one, batch.
    with sluice.permit("assistant", hold=False):
        print(call_model("a job"))
