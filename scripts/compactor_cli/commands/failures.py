"""How a command ends when it did not do what was asked."""

from __future__ import annotations

from compactor.errors import CompactorError

EXIT_FAILED, EXIT_USAGE, EXIT_TIME_RAN_OUT, EXIT_INTERRUPTED = 1, 2, 3, 130


class Failure(CompactorError):
    """Ends the command with one line and an exit code.

    Args:
        line: shown as it is.
        code: exit code.
    """

    def __init__(self, line: str, code: int = EXIT_FAILED) -> None:
        super().__init__(line)
        self.code = code
