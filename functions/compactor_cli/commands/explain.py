"""``compactor explain``: what is known of one source or output."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from compactor.clock import SystemClock
from compactor.errors import InvalidInput
from compactor.ports import ObjectStore
from compactor.report.object_status import Inquiry
from compactor.report.source_status import explain
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import require_state, state_from
from compactor_cli.console import print_line
from compactor_cli.deployed.reports import newest_reports

# Enough for the runs of several sources into one destination.
_REPORTS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """DEST and the key."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument(
        "key",
        metavar="KEY",
        help="URI or key of a source or an output, or its key below the source or destination",
    )
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Print what the log, the store and the newest run's settings say of the object.

    Raises:
        InvalidInput: there is no state, or nothing knows the key.
        IntegrityError: an entry of the log is damaged.
    """
    destination = S3Uri.parse("s3_destination_uri", args.s3_destination_uri)
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    settings = tuple(_settings(destination, state, store))
    if not settings:
        require_state(state, store)
    found = explain(Inquiry(destination, state, store, SystemClock(), settings), args.key)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2))
        return 0
    print_line(f"{found.kind} {found.uri}", "bold")
    for name, text in found.lines.items():
        print_line(f"{name:<10} {text}")
    return 0


def _settings(destination: S3Uri, state: S3Uri, store: ObjectStore) -> Iterator[Settings]:
    """The settings of the newest run over each source into the destination."""
    seen: set[str] = set()
    for report in newest_reports(state, store, _REPORTS):
        try:
            settings = Settings.from_input(report.document["settings"])
        except InvalidInput:
            # Its window may be over, and what it committed is still there.
            continue
        if settings.destination == destination and settings.s3_source_uri not in seen:
            seen.add(settings.s3_source_uri)
            yield settings
