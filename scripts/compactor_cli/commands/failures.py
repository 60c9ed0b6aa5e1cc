"""How a command ends when it did not do what was asked."""

from __future__ import annotations

from compactor.errors import CompactorError, InvalidInput

EXIT_FAILED, EXIT_USAGE, EXIT_TIME_RAN_OUT, EXIT_INTERRUPTED = 1, 2, 3, 130


class Failure(CompactorError):
    """Ends the command with one line and an exit code.

    Args:
        line: told as it is.
        code: exit code.
    """

    def __init__(self, line: str, code: int = EXIT_FAILED) -> None:
        super().__init__(line)
        self.code = code


def nobody_to_ask() -> InvalidInput:
    """The error that a command would have to ask, and nobody is there to answer."""
    told = "nobody can be asked here: give --yes, or --dry-run to see what would be done"
    return InvalidInput("--yes", None, "--yes or --dry-run", told=told)
