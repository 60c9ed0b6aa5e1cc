"""Confirmation before a command changes anything."""

from __future__ import annotations

import argparse
import sys

from compactor.errors import InvalidInput


def require_answer(args: argparse.Namespace, *, dry_run: bool = False) -> None:
    """Check that the command can ask for confirmation, or need not.

    Args:
        args: with ``yes`` and ``json``.
        dry_run: no confirmation is needed.

    Raises:
        InvalidInput: there is no terminal to ask on.
    """
    asks = not args.json and sys.stdin.isatty() and sys.stderr.isatty()
    if not (dry_run or args.yes or asks):
        other = ", or --dry-run to see what would be done" if hasattr(args, "dry_run") else ""
        advice = f"give --yes{other}"
        message = f"confirmation is needed, and there is no terminal to ask on: {advice}"
        raise InvalidInput("--yes", None, advice, message=message)


def is_agreed(args: argparse.Namespace, question: str) -> bool:
    """Ask for confirmation unless ``--yes`` was given; returns the answer."""
    if args.yes:
        return True
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
