"""The connections of a client, which belong to one process."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

import httpx

from ._errors import SluiceError

Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)


class Connections(Generic[Http]):
    """Has an HTTP client for each process: processes that share connections get each other's answers."""

    def __init__(self, given: Http | None, make: Callable[[], Http]) -> None:
        self._is_given = given is not None
        self._make: Callable[[], Http] = make
        self._http: Http = given if given is not None else make()
        # The process that uses it first. Before that there are no connections to share.
        self._pid: int | None = None
        self._inherited: list[Http] = []

    @property
    def http(self) -> Http:
        pid = os.getpid()
        if self._pid is None:
            self._pid = pid
        elif self._pid != pid:
            if self._is_given:
                raise SluiceError("the `http` of this client has connections of the parent process; make a client here")
            # It is not closed: the parent goes on with it, and its locks may be locked here for ever.
            self._inherited.append(self._http)
            self._http = self._make()
            self._pid = pid
        return self._http

    @property
    def to_close(self) -> Http | None:
        """The HTTP client, unless it is the parent's."""
        return self._http if self._pid in (None, os.getpid()) else None
