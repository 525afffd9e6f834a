from collections.abc import Iterator
from typing import Any

import httpx

from ._errors import SluiceUnavailableError

# Larger numbers are not exact in JSON.
_LARGEST = 2**53 - 1


class AnswerPart:
    """A value in the body of an answer, with its path there, such as `keys[2].waiting`.

    Something other than Sluice may have answered, so that the value may be of any kind: each reading raises a
    SluiceUnavailableError that names the value if it is not what it must be.
    """

    def __init__(self, value: Any, status: int, path: str = "") -> None:
        self._value = value
        self._status = status
        self._path = path

    @classmethod
    def body_of(cls, response: httpx.Response) -> "AnswerPart":
        """The body of an answer. One that is not JSON is no object."""
        try:
            return cls(response.json(), response.status_code)
        except (ValueError, RecursionError):
            return cls(None, response.status_code)

    @property
    def is_missing(self) -> bool:
        return self._value is None

    def field(self, name: str) -> "AnswerPart":
        if not isinstance(self._value, dict):
            raise self._must_be("an object")
        return AnswerPart(self._value.get(name), self._status, f"{self._path}.{name}".removeprefix("."))

    def __iter__(self) -> Iterator["AnswerPart"]:
        """The elements of a list."""
        if not isinstance(self._value, list):
            raise self._must_be("a list")
        return (AnswerPart(one, self._status, f"{self._path}[{index}]") for index, one in enumerate(self._value))

    @property
    def text(self) -> str:
        if not isinstance(self._value, str):
            raise self._must_be("a text")
        return self._value

    @property
    def number(self) -> float:
        value = self._value
        if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST <= value <= _LARGEST:
            raise self._must_be("a number")
        return value

    @property
    def flag(self) -> bool:
        if not isinstance(self._value, bool):
            raise self._must_be("true or false")
        return self._value

    def _must_be(self, kind: str) -> SluiceUnavailableError:
        message = f"not an answer from Sluice: {self._path or 'the body'} must be {kind}"
        return SluiceUnavailableError(message, True, self._status)
