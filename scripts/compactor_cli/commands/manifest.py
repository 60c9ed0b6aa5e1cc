"""``compactor manifest``: which source is where in which output, to be joined with."""

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
    """DEST."""
    options.add_places(parser, options.DESTINATION)
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Print one JSON object for each source; one commit is held at a time.

    Raises:
        InvalidInput: there is no state; or one JSON document is asked for.
        IntegrityError: an entry of a log is damaged.
    """
    if args.json:
        raise InvalidInput("--json", True, "nothing: the export is a JSON object a line")
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    with progress("exporting") as bar:
        for number, line in enumerate(as_json_lines(mapping(state, store)), 1):
            sys.stdout.buffer.write(line)
            if not number % _SHOWN_EACH:
                bar.show(number, None, f"{number:,} sources")
        sys.stdout.buffer.flush()
    return 0
