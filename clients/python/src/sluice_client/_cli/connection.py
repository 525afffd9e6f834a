"""How the commands reach Sluice."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from .._addresses import ADDRESS
from .errors import CommandLineError
from .options import Values

VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
DEFAULT_URL = "http://localhost:8080"


@dataclass(frozen=True, slots=True)
class Connection:
    urls: list[str]
    token: str | Callable[[], str] | None


def connection_of(values: Values) -> Connection:
    """The addresses and the token of the options, or else of the environment.

    Raises a CommandLineError for an invalid address, and if the token can't be read or sent.
    """
    listed = [url.strip() for url in os.environ.get("SLUICE_URL", "").split(",")]
    urls = values.texts("url") or [url for url in listed if url != ""] or [DEFAULT_URL]
    for url in urls:
        if not ADDRESS.match(url):
            raise CommandLineError(f"url must be an address such as {DEFAULT_URL}, not {url}")
    file = values.text("token-file") or os.environ.get("SLUICE_TOKEN_FILE")
    if file:
        return Connection(urls, _token_in(file))
    token = os.environ.get("SLUICE_TOKEN")
    return Connection(urls, _sendable(token, "in SLUICE_TOKEN") if token else None)


def _token_in(file: str) -> Callable[[], str]:
    """The token is read for each request, since what writes the file may renew it."""

    def read() -> str:
        with open(file, encoding="utf-8") as content:
            return _sendable(content.read(), f"in {file}")

    try:
        read()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandLineError(f"the token can't be read: {error}") from None
    return read


def _sendable(text: str, where: str) -> str:
    """A token without white space around it. Raises a CommandLineError if no header can have it."""
    token = text.strip()
    if VISIBLE_ASCII.fullmatch(token):
        return token
    problem = "is empty" if token == "" else "has characters other than visible ASCII"
    raise CommandLineError(f"the token {where} {problem}")
