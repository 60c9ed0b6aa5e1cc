"""``compactor manifest``: exports where each source is in which output."""

from __future__ import annotations

import argparse
import sys

from compactor.errors import InvalidInput
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import state_from
from compactor_cli.console import progress
from compactor_cli.mapping import as_json_lines, mapping

_SHOWN_EACH = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEST."""
    options.add_places(parser, options.DESTINATION)
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Print one JSON object per source, with one commit in memory at a time.

    Raises:
        InvalidInput: there is no state; or ``--json`` was given.
        IntegrityError: a log entry is damaged.
    """
    if args.json:
        message = "--json is not needed: the output is JSON Lines"
        raise InvalidInput("--json", True, "no --json", message=message)
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    with progress("exporting") as bar:
        for number, line in enumerate(as_json_lines(mapping(state, store)), 1):
            sys.stdout.buffer.write(line)
            if not number % _SHOWN_EACH:
                bar.show(number, None, f"{number:,} sources")
        sys.stdout.buffer.flush()
    return 0
