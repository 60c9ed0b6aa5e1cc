"""``compactor explain``: what is known of one source or output, or of a record in an output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from compactor.clock import SystemClock
from compactor.errors import InvalidInput
from compactor.log.entries import Commit
from compactor.log.log_reader import commit_of_output
from compactor.log.manifest import ManifestRow
from compactor.outputs.restore import keeps_bytes
from compactor.ports import ObjectStore
from compactor.report.object_status import Inquiry, output_keys
from compactor.report.source_status import explain
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Argument, Option, action
from compactor_cli.commit_logs import require_state, state_from
from compactor_cli.console import print_line
from compactor_cli.store import open_store
from compactor_cli.stored_reports import newest_reports

# Enough for the runs of several sources into one destination.
_REPORTS = 20


@action(
    given.places("s3_destination_uri", required=True),
    Argument(
        "key",
        "KEY",
        "URI or key of a source or an output, or its key below the source or destination",
    ),
    Option(
        "--record",
        type=click.IntRange(1),
        metavar="N",
        help="of an output: which source its Nth record is of, from 1; headers and empty lines are"
        " not counted",
    ),
    given.COMMON,
    given.fields("s3_state_uri"),
)
def run(args: Args) -> int:
    """Print what the log, the store and the newest run's settings say of the object.

    Raises:
        InvalidInput: there is no state, or nothing knows the key or the record.
        IntegrityError: an entry of the log is damaged.
    """
    destination = S3Uri.parse("s3_destination_uri", args.s3_destination_uri)
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    if args.record is not None:
        inquiry = Inquiry(destination, state, store, SystemClock())
        _show_record(_record(args.key, args.record, inquiry), as_json=args.json)
        return 0
    settings = tuple(_settings(destination, state, store))
    if not settings:
        require_state(state, store)
    status = explain(Inquiry(destination, state, store, SystemClock(), settings), args.key)
    if args.json:
        print(json.dumps(status.to_dict(), indent=2))
        return 0
    print_line(f"{status.kind} {status.uri}", "bold")
    for name, text in status.lines.items():
        print_line(f"{name:<10} {text}")
    return 0


def _settings(destination: S3Uri, state: S3Uri, store: ObjectStore) -> Iterator[Settings]:
    """The settings of the newest run over each source into the destination."""
    sources: set[str] = set()
    for report in newest_reports(state, store, _REPORTS):
        try:
            settings = Settings.from_input(report.document["settings"])
        except InvalidInput:
            # Its window may be over, and what it committed is still there.
            continue
        if settings.destination == destination and settings.s3_source_uri not in sources:
            sources.add(settings.s3_source_uri)
            yield settings


def _record(output: str, number: int, inquiry: Inquiry) -> dict[str, Any]:
    """Return the source of a record; the output itself is not read.

    Raises:
        InvalidInput: no commit names the output, or it has no such record.
    """
    commit = _commit_of(output, inquiry)
    row, within = _at_record(commit, number)
    source = row.source
    return {
        "source": f"s3://{source.bucket}/{source.key}",
        "etag": source.etag,
        "size": source.size,
        "record": within,
        "run_id": commit.run_id,
        "commit": commit.sequence,
    }


def _show_record(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(document, indent=2))
        return
    facts = f"ETag {document['etag']}, {document['size']:,} bytes"
    print_line(f"{document['source']}: record {document['record']:,} ({facts})")


def _commit_of(output: str, inquiry: Inquiry) -> Commit:
    """Return the commit that names an output, which must hold the bytes of its sources."""
    for key in output_keys(inquiry, output):
        found = commit_of_output(key, inquiry.destination, inquiry.state, inquiry.store)
        if found is not None:
            if keeps_bytes(found[1]):
                return found[1]
            accepted = "an output that keeps the bytes of its sources; this one holds their rows"
            raise InvalidInput("KEY", output, accepted)
    require_state(inquiry.state, inquiry.store)
    accepted = f"with --record an output that a commit in {inquiry.state.uri} names"
    raise InvalidInput("KEY", output, f"{accepted}; compactor ls shows them")


def _at_record(commit: Commit, number: int) -> tuple[ManifestRow, int]:
    """Return the source of a record, and the record's number within the source, from 1."""
    before = 0
    rows = [row for row in commit.rows if row.length]
    for row in sorted(rows, key=lambda row: row.offset):
        if row.facts is None:
            # S3 copied the whole object without counting its records.
            return row, number
        if number <= before + row.facts.records:
            return row, number - before
        before += row.facts.records
    raise InvalidInput("--record", number, f"a number from 1 to {before}")
