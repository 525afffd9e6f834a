"""The addresses of Sluice, one of which is asked at a time."""

import re
from collections.abc import Sequence

# Several are asked in order.
Url = str | Sequence[str]

ADDRESS = re.compile(r"https?://[^/]", re.IGNORECASE)
SUCH_AS = "such as 'http://localhost:8080'"


class Addresses:
    """Has the address that is asked, until that can't be reached or stops; then the next. Threads may share it."""

    def __init__(self, url: Url) -> None:
        given = [url] if isinstance(url, str) else url
        if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
            raise TypeError(f"url must be an address as a str, {SUCH_AS}, or a list of these, not {url!r}")
        if not given:
            raise ValueError(f"url must have an address, {SUCH_AS}")
        self._bases = [_base_in(one) for one in given]
        self._index = 0

    def __len__(self) -> int:
        return len(self._bases)

    @property
    def current(self) -> str:
        """The address that is asked now, to which paths are added."""
        return self._bases[self._index]

    def leave(self, address: str) -> None:
        """Goes on to the next address. Of several requests that an address fails, only the first does so."""
        index = self._index
        if self._bases[index] == address:
            self._index = (index + 1) % len(self._bases)


def _base_in(url: str) -> str:
    if not ADDRESS.match(url):
        raise ValueError(f"url must begin with http:// or https://, {SUCH_AS}, not {url!r}")
    return url.rstrip("/")
