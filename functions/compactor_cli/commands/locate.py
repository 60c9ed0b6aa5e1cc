"""``compactor locate``: finds the source object of a record or byte of an output."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass

from compactor.errors import InvalidInput
from compactor.log.entries import Commit
from compactor.log.log_search import commit_of_output
from compactor.log.manifest import ManifestRow
from compactor.outputs.restore import keeps_bytes
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import require_state, state_from
from compactor_cli.console import print_line


@dataclass(frozen=True, slots=True)
class Located:
    """The source of a record or byte of an output.

    Attributes:
        source: URI of the source.
        etag: of the source when it was compacted.
        size: stored size in bytes.
        record: number of the record within the source, from 1; None with ``--offset``.
        offset: offset within the source's slice of the output, from 0; None with ``--record``.
        commit: sequence in the log of the partition.
    """

    source: str
    etag: str
    size: int
    record: int | None
    offset: int | None
    run_id: str
    commit: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEST, the output, and the record or offset."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument("output", metavar="OUTPUT", help="URI or key of an output")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--record",
        metavar="N",
        help="its Nth record, from 1; headers and empty lines are not counted",
    )
    which.add_argument(
        "--offset",
        metavar="N",
        help="the byte at this offset in its decompressed content, from 0",
    )
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Find the output's commit and the source in its manifest; the output itself is not read.

    Raises:
        InvalidInput: no commit names the output, or the position belongs to no source.
        IntegrityError: a log entry is damaged.
    """
    record, offset = _number("--record", args.record, 1), _number("--offset", args.offset, 0)
    destination = S3Uri.parse("s3_destination_uri", args.s3_destination_uri)
    key = _key_of(args.output, destination)
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    commit = _commit_of(key, destination, state, store)
    if record is not None:
        row, within = _at_record(commit, record)
        found = _located(commit, row, record=within)
    else:
        row, within = _at_offset(commit, offset or 0)
        found = _located(commit, row, offset=within)
    _show(found, as_json=args.json)
    return 0


def _show(found: Located, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(found), indent=2))
        return
    what = f"record {found.record:,}" if found.record is not None else f"byte {found.offset:,}"
    print_line(f"{found.source}: {what} (ETag {found.etag}, {found.size:,} bytes)")


def _number(option: str, text: str | None, least: int) -> int | None:
    """Parse a whole number; None where none was given.

    Raises:
        InvalidInput: it is not a whole number, or too small.
    """
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(1 << 63))):
        raise InvalidInput(option, text, f"a whole number from {least}")
    number = int(text)
    if number < least:
        raise InvalidInput(option, text, f"a whole number from {least}")
    return number


def _key_of(output: str, destination: S3Uri) -> str:
    """Return the key of an output.

    Raises:
        InvalidInput: it is not below the destination.
    """
    where = f"s3://{destination.bucket}/"
    key = output.removeprefix(where)
    if key.startswith("s3://") or not key.startswith(destination.prefix):
        raise InvalidInput("OUTPUT", output, f"the URI or key of an object in {destination.uri}")
    return key


def _commit_of(key: str, destination: S3Uri, state: S3Uri, store: ObjectStore) -> Commit:
    """Return the commit that names an output, which must hold the bytes of its sources.

    Raises:
        InvalidInput: there is no such commit.
    """
    found = commit_of_output(key, destination, state, store)
    if found is not None:
        _, commit, _ = found
        if keeps_bytes(commit):
            return commit
        accepted = "an output that keeps the bytes of its sources; this one holds their rows"
        raise InvalidInput("OUTPUT", key, accepted)
    require_state(state, store)
    accepted = f"an output that a commit in {state.uri} names; compactor ls shows them"
    raise InvalidInput("OUTPUT", key, accepted)


def _at_record(commit: Commit, number: int) -> tuple[ManifestRow, int]:
    """Return the source of a record, and the record's number within the source, from 1.

    Raises:
        InvalidInput: there are fewer records, or those of an earlier source were not counted.
    """
    before = 0
    for row in _in_order(commit):
        if row.facts is None:
            accepted = "use --offset instead"
            why = f"S3 copied {row.source.key}, so its records were not counted"
            message = f"--record: {why}: {accepted}"
            raise InvalidInput("--record", number, accepted, message=message)
        if number <= before + row.facts.records:
            return row, number - before
        before += row.facts.records
    raise InvalidInput("--record", number, f"a number from 1 to {before}")


def _at_offset(commit: Commit, offset: int) -> tuple[ManifestRow, int]:
    """Return the source of a byte, and the byte's offset within its slice, from 0.

    Raises:
        InvalidInput: the byte belongs to no source.
    """
    last = ""
    for row in _in_order(commit):
        if offset < row.offset:
            why = f"bytes before {row.source.key} are the output's own, such as a header"
            raise InvalidInput("--offset", offset, f"a byte of a source; {why}")
        if offset < row.offset + row.length:
            return row, offset - row.offset
        last = row.source.key
    after = f"; the last one, {last}, ends before it" if last else ""
    raise InvalidInput("--offset", offset, f"a byte of a source{after}")


def _in_order(commit: Commit) -> list[ManifestRow]:
    """Return the rows with bytes in the output, in the order of their bytes."""
    return sorted((row for row in commit.rows if row.length), key=lambda row: row.offset)


def _located(
    commit: Commit, row: ManifestRow, *, record: int | None = None, offset: int | None = None
) -> Located:
    source = row.source
    where = f"s3://{source.bucket}/{source.key}"
    return Located(where, source.etag, source.size, record, offset, commit.run_id, commit.sequence)
