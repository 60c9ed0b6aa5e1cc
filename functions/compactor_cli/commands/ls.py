"""``compactor ls``: lists the sources that ``compactor restore`` can return, and where they are."""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from fnmatch import translate
from typing import Any, NamedTuple

from compactor.clock import instant
from compactor.errors import InvalidInput
from compactor.escaping import visible
from compactor.log.entries import Commit
from compactor.log.log_reader import StoredLog, newest_first
from compactor.log.manifest import ManifestRow
from compactor.outputs.restore import keeps_bytes
from compactor.ports import ObjectStore
from compactor_cli import moments
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Argument, Option, action
from compactor_cli.commit_logs import all_logs, state_from
from compactor_cli.console import print_note
from compactor_cli.store import open_store


class Listed(NamedTuple):
    """One source that a commit names, in the log of the partition at ``path``."""

    path: str
    commit: Commit
    row: ManifestRow

    def to_dict(self) -> dict[str, Any]:
        """Return the source for JSON.

        ``bytes`` is the stored size; ``records`` is None where S3 copied the source and its records
        were not counted. ``restorable`` is False where the output holds rows instead of bytes.
        """
        output, row = self.commit.output, self.row
        return {
            "key": row.source.key,
            "etag": row.source.etag,
            "bytes": row.source.size,
            "records": None if row.facts is None else row.facts.records,
            "committed_at": instant(self.commit.created_at),
            "output": None if output is None else f"s3://{output.bucket}/{output.key}",
            "restorable": keeps_bytes(self.commit),
            "source_bucket": row.source.bucket,
        }

    def place(self) -> dict[str, Any]:
        """Return where in its output the source is, for JSON.

        If ``exact``, the content of a source is ``dropped_prefix``, then the slice without its last
        ``appended`` bytes, then ``dropped_suffix``. Otherwise records within the slice were
        changed, for example put on separate lines, and only ``compactor restore`` undoes that.
        ``offset`` counts decompressed bytes, or stored bytes of an output that S3 copied.
        """
        commit, row, output, facts = self.commit, self.row, self.commit.output, self.row.facts
        has_slice = output is not None and keeps_bytes(commit)
        edited = facts is not None and (facts.newlines_stand_for is not None or bool(facts.edits))
        return {
            "partition": self.path,
            "run_id": commit.run_id,
            "commit": commit.sequence,
            "format": None if output is None or output.format is None else output.format.value,
            "compression": None if output is None else output.compression.value,
            "offset": row.offset if has_slice else None,
            "length": row.length if has_slice else None,
            "plain_bytes": row.plain_bytes,
            "crc32": row.crc32,
            "exact": keeps_bytes(commit) and not edited,
            "dropped_prefix": _base64(b"" if facts is None else facts.dropped_prefix),
            "dropped_suffix": _base64(b"" if facts is None else facts.dropped_suffix),
            "appended": 0 if facts is None else facts.appended,
        }

    @property
    def line(self) -> str:
        """The source as one line of text."""
        shown = self.to_dict()
        records = "-" if shown["records"] is None else f"{shown['records']:,}"
        mark = "" if shown["restorable"] else "  NOT RESTORABLE: rows only"
        return (
            f"{shown['committed_at']}  {shown['bytes']:>13,}  {records:>11}  {shown['etag']:<32}"
            f"  {shown['key']}  {shown['output'] or '(empty, no output)'}{mark}"
        )


@action(
    given.places("s3_destination_uri", required=True),
    Argument(
        "pattern",
        "[PREFIX|GLOB]",
        "a prefix of keys, or a glob for whole keys if it contains * ? or [; * also matches / (by"
        " default all keys)",
        required=False,
        default="",
    ),
    Option("--since", metavar="TIME", help=moments.SINCE_HELP),
    Option(
        "--long",
        is_flag=True,
        help="with --json: also where each source is in its output, for queries to join with",
    ),
    given.COMMON,
    given.fields("s3_state_uri"),
)
def run(args: Args) -> int:
    """Print the sources one by one, with one commit in memory at a time.

    Raises:
        InvalidInput: there is no state, or an option is invalid.
        IntegrityError: a log entry is damaged; sources found before it were printed.
    """
    if args.long and not args.json:
        raise InvalidInput("--long", True, "--json with it: compactor ls DEST --json --long")
    pattern, since = _pattern(args.pattern), moments.since(args.since, time.time())
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    listed = _listed(all_logs(state, store), pattern, since, store)
    if args.json:
        _print_json(one.to_dict() | (one.place() if args.long else {}) for one in listed)
        return 0
    line = ""
    for source in listed:
        line = visible(source.line)
        print(line)
    if not line:
        print_note(f"no commit below {state.uri} names a matching source")
        print_note(f"  compactor ls {args.s3_destination_uri} lists all")
    return 0


def _listed(
    logs: Iterable[StoredLog], pattern: re.Pattern[str], since: float, store: ObjectStore
) -> Iterator[Listed]:
    """Yield sources by partition, newest commit first, and by key within a commit."""
    for log in logs:
        # Only later entries decide whether an entry is valid, so older ones are not read.
        keys = {n: log.key_of(n) for n, written in log.entries.items() if written >= since}
        for commit in newest_first(store, log.state.bucket, keys):
            for row in commit.rows:
                if pattern.match(row.source.key):
                    yield Listed(log.path, commit, row)


def _print_json(documents: Iterable[dict[str, Any]]) -> None:
    """Write one JSON document incrementally."""
    separator = "[\n"
    for document in documents:
        sys.stdout.write(separator + json.dumps(document))
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(translate(text) if re.search(r"[*?\[]", text) else re.escape(text))


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
