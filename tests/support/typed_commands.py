"""What the command line takes from the words that were typed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from compactor.errors import InvalidInput
from compactor_cli.command_line import Args, values_of
from compactor_cli.commands import COMMANDS, command


def parsed(*words: str) -> Args:
    """The values that a command gets."""
    path, rest = named(words)
    return values_of(command(path).make_context(path, rest))


def named(words: Sequence[str]) -> tuple[str, list[str]]:
    """The command, and the words that follow its name."""
    size = 2 if " ".join(words[:2]) in COMMANDS else 1
    return " ".join(words[:size]), list(words[size:])


def accepted(words: list[str]) -> bool:
    """Whether the command line accepts these arguments."""
    if named(words)[0] not in COMMANDS:
        return words in (["--help"], ["--version"], ["--help-all"])
    try:
        parsed(*words)
    except (InvalidInput, click.UsageError):
        return False
    except click.exceptions.Exit as ended:
        return not ended.exit_code
    return True
