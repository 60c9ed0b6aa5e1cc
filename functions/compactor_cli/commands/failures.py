"""Exit codes, and the error that ends a command with one of them."""

from __future__ import annotations

from compactor.errors import CompactorError

EXIT_FAILED, EXIT_USAGE, EXIT_TIME_RAN_OUT, EXIT_INTERRUPTED = 1, 2, 3, 130


class Failure(CompactorError):
    """Ends the command with an exit code.

    Args:
        line: what happened; printed first.
        code: exit code.
        advice: what to do about it; printed on a line of its own.
    """

    def __init__(self, line: str, code: int = EXIT_FAILED, advice: str = "") -> None:
        super().__init__(line)
        self.code = code
        self.advice = advice
