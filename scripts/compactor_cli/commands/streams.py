"""What the shell gives a command: its streams, which may be closed, and its words."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from compactor.errors import InvalidInput
from compactor_cli.commands.failures import Failure


def require_streams() -> None:
    """Where a standard stream is closed, Python has None for it, and its number is free.

    Raises:
        Failure: nothing could be printed.
    """
    # A file that is opened later must not become what another part prints to.
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    closed = sys.stdout is None
    if closed:
        os.open(os.devnull, os.O_WRONLY)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if closed:
        raise Failure("standard output is closed: nothing was done")


def require_text(arguments: Sequence[str]) -> None:
    """Refuse what is no text: neither S3 nor JSON has it.

    Raises:
        InvalidInput: an argument is not UTF-8, or holds a NUL; or is an option with -- as its
            value, of which argparse makes an empty list.
    """
    for one in arguments:
        if one.startswith("-") and one.endswith("=--"):
            raise InvalidInput("argument", one, "another value than --")
        if "\0" in one or any("\ud800" <= character <= "\udfff" for character in one):
            raise InvalidInput("argument", one, "UTF-8 without NUL characters")


def drop_output() -> None:
    """The reader of our output has gone; Python must not try to write the rest at its exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        # It is no file.
        return
