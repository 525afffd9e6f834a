import os

# Of a terminal that does not know its size.
USUAL_SIZE = os.terminal_size((80, 24))


def terminal_size(descriptor: int) -> os.terminal_size:
    """The columns and rows of the terminal that a descriptor is open on."""
    size = os.get_terminal_size(descriptor)
    return os.terminal_size((size.columns or USUAL_SIZE.columns, size.lines or USUAL_SIZE.lines))
