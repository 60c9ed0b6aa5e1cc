"""Checks of what the shell passes to a command: its standard streams and its arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from compactor.errors import InvalidInput
from compactor_cli.commands.failures import Failure


def require_streams() -> None:
    """Open ``/dev/null`` in place of closed standard streams, which are None in Python.

    Raises:
        Failure: standard output is closed.
    """
    # A file opened later would otherwise get the descriptor and receive printed output.
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    closed = sys.stdout is None
    if closed:
        os.open(os.devnull, os.O_WRONLY)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if closed:
        raise Failure("standard output is closed; nothing was done")


def require_text(arguments: Sequence[str]) -> None:
    """Refuse arguments that cannot be stored in S3 or JSON.

    Raises:
        InvalidInput: an argument is not UTF-8 or contains NUL; or is an option with the value --,
            which argparse turns into an empty list.
    """
    for one in arguments:
        if one.startswith("-") and one.endswith("=--"):
            raise InvalidInput("argument", one, "another value than --")
        if "\0" in one or any("\ud800" <= character <= "\udfff" for character in one):
            raise InvalidInput("argument", one, "UTF-8 without NUL characters")


def drop_output() -> None:
    """Discard unwritten output after a broken pipe; Python would try to flush it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        # Standard output has no file descriptor.
        return
