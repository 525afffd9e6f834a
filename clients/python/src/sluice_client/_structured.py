"""Lists of RFC 9651, which headers about rate limits have."""

import re

# An item: a text and its parameters, such as `"hour";r=12;t=60`.
_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"((?:; *[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)')
_PARAMETER = re.compile(r'; *([a-z*][a-z0-9_.*-]*)(?:=("(?:[^"\\]|\\.)*"|[^\s",;]*))?')


def structured_items(header: str) -> list[tuple[str, dict[str, str]]]:
    """The texts in a list, each with its parameters by their names. Ignores all other items.

    Each value is as the header has it: a text has quotation marks.
    """
    return [
        (re.sub(r"\\(.)", r"\1", text), dict(_PARAMETER.findall(parameters)))
        for text, parameters in _ITEM.findall(header)
    ]


def whole_number(text: str | None) -> int | None:
    """Reads a whole number of 0 or more."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,15}", text) else None
