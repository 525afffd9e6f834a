"""Who holds the approvals that are held, for people who look at a key."""

import os
import re
import socket
from collections.abc import Mapping
from typing import Literal

from ._texts import MOST_BYTES, demand_short

Name = str | Literal[False] | None


class Holder:
    """Names the holder of approvals that are held: by default host and process."""

    def __init__(self, name: Name) -> None:
        if isinstance(name, str):
            demand_short("holder", name)
        self._name = name

    def name_for(self, parameters: Mapping[str, object]) -> str | None:
        """Who holds the approval of a check, if it is to be held."""
        is_held = parameters.get("hold_millis") is not None
        if not is_held or self._name is False:
            return None
        return self._name or _host_and_process()

    def named(self, parameters: Mapping[str, object]) -> Mapping[str, object]:
        """The parameters of a check with the holder, if its approval is to be held."""
        name = self.name_for(parameters)
        return parameters if name is None else {**parameters, "holder": name}


def _host_and_process() -> str:
    of_process = f":{os.getpid()}"
    host = re.sub(r"[^\x21-\x7e]", "_", socket.gethostname())
    return host[: MOST_BYTES - len(of_process)] + of_process
