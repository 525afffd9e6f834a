from .overview import BusyKey, Overview
from .printable import printable

# Right after the key come texts, then numbers, which are aligned on the right.
HEAD = ("KEY", "STATE", "USED/MAX", "WAITING", "DENIED/S")
TEXT_COLUMNS = 2
GAP = "  "


def table_of(overview: Overview, most_rows: int | None = None) -> list[str]:
    """The lines of a table of keys. `most_rows` is how many are shown; a last line says how many are not."""
    keys = overview.keys
    remark = [] if overview.is_complete else ["not all keys are known"]
    if not keys:
        return ["no key is paused, denied or waited for", *remark]
    shown = keys if most_rows is None else keys[:most_rows]
    rows = [HEAD, *map(_row, shown)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        GAP.join(
            cell.ljust(width) if place < TEXT_COLUMNS else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    more = [f"{len(keys) - len(shown)} more"] if len(keys) > len(shown) else []
    return [*lines, *more, *remark]


def _row(one: BusyKey) -> tuple[str, ...]:
    used, denied = f"{one.used}/{one.most}", f"{one.denied_per_second:.1f}"
    return (printable(one.key), one.shown_state, used, str(one.waiting), denied)
