"""Texts that Sluice shows to people, or tells callers apart by."""

# In UTF-8, of a holder and of a group. Sluice rejects a longer text.
MOST_BYTES = 64


def demand_short(name: str, text: str) -> None:
    """Raises a ValueError for a text that is empty or too long."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name} is not valid Unicode: {text!a} has half of a surrogate pair") from None
    if not 1 <= size <= MOST_BYTES:
        raise ValueError(f"{name} must be 1 to {MOST_BYTES} bytes of UTF-8, not {size}")
