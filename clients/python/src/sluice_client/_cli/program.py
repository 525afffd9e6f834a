from importlib.metadata import version

PROGRAM = "sluice-client"


def program_version() -> str:
    """The version of the package."""
    return version(PROGRAM)
