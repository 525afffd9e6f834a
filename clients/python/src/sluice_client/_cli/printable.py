import re

# They could break a line, change the terminal, or show the text in another order: control characters, separators of
# lines and paragraphs, and controls of the direction. No file can have halves of surrogate pairs.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""A text for a line of a terminal: other callers choose keys. What would not be seen as itself is `\u009b`, also in JSON."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
