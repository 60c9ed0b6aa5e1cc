"""The question that a command asks before it changes anything."""

from __future__ import annotations

import argparse
import sys

from compactor.errors import InvalidInput


def require_answer(args: argparse.Namespace, *, dry_run: bool = False) -> None:
    """Refuse to decide without an answer.

    Args:
        args: with ``yes`` and ``json``.
        dry_run: nothing will be asked.

    Raises:
        InvalidInput: there is no terminal to ask at.
    """
    asks = not args.json and sys.stdin.isatty() and sys.stderr.isatty()
    if not (dry_run or args.yes or asks):
        message = "no terminal to ask at: give --yes, or --dry-run to see what would be done"
        raise InvalidInput("--yes", None, "--yes or --dry-run", message=message)


def is_agreed(args: argparse.Namespace, question: str) -> bool:
    """Ask, unless ``--yes`` has answered."""
    if args.yes:
        return True
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
