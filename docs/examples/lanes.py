import os

from sluice_client import SluiceClient


def call_model(prompt):
    return prompt.upper()


with SluiceClient(os.environ["SLUICE_URL"]) as sluice:
    for lane, prompt in [("interactive", "a question of a user"), ("batch", "a job")]:
        # Nobody releases the approval: the model also counts a call that is over.
        if sluice.wait("assistant", lane=lane).approved:
            print(call_model(prompt))
