"""``compactor ls``: lists the sources that ``compactor restore`` can return."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from compactor.clock import instant
from compactor.escaping import visible
from compactor.log.entries import Commit
from compactor.log.log_reader import StoredLog, newest_first
from compactor.log.manifest import ManifestRow
from compactor.outputs.restore import keeps_bytes
from compactor.ports import ObjectStore
from compactor_cli import moments
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import all_logs, state_from
from compactor_cli.console import print_note


@dataclass(frozen=True, slots=True)
class Listed:
    """One source that a commit names.

    ``bytes`` is the stored size; ``records`` is None where S3 copied the source and its records
    were not counted. ``restorable`` is False where the output holds rows instead of bytes.
    """

    key: str
    etag: str
    bytes: int
    records: int | None
    committed_at: str
    output: str | None
    restorable: bool
    source_bucket: str

    @classmethod
    def of(cls, row: ManifestRow, commit: Commit) -> Listed:
        """Return a row of a commit's manifest."""
        output = commit.output
        return cls(
            key=row.source.key,
            etag=row.source.etag,
            bytes=row.source.size,
            records=None if row.facts is None else row.facts.records,
            committed_at=instant(commit.created_at),
            output=None if output is None else f"s3://{output.bucket}/{output.key}",
            restorable=keeps_bytes(commit),
            source_bucket=row.source.bucket,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the source for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def line(self) -> str:
        """The source as one line of text."""
        records = "-" if self.records is None else f"{self.records:,}"
        place = self.output or "(empty, no output)"
        mark = "" if self.restorable else "  NOT RESTORABLE: rows only"
        return (
            f"{self.committed_at}  {self.bytes:>13,}  {records:>11}  {self.etag:<32}  {self.key}"
            f"  {place}{mark}"
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEST, the keys and ``--since``."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument(
        "pattern",
        metavar="PREFIX|GLOB",
        nargs="?",
        default="",
        help="a prefix of keys, or a glob for whole keys if it contains * ? or [; * also matches /"
        " (by default all keys)",
    )
    parser.add_argument("--since", metavar="TIME", help=moments.SINCE_HELP)
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Print the sources one by one, with one commit in memory at a time.

    Raises:
        InvalidInput: there is no state, or an option is invalid.
        IntegrityError: a log entry is damaged; sources found before it were printed.
    """
    wanted = _pattern(args.pattern)
    since = moments.since(args.since, time.time())
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    found = _listed(all_logs(state, store), wanted, since, store)
    if args.json:
        _print_json(found)
        return 0
    is_any = False
    for one in found:
        is_any = True
        print(visible(one.line))
    if not is_any:
        print_note(f"no commit below {state.uri} names a matching source")
        print_note(f"  compactor ls {args.s3_destination_uri} lists all")
    return 0


def _listed(
    logs: Iterable[StoredLog], wanted: re.Pattern[str], since: float, store: ObjectStore
) -> Iterator[Listed]:
    """Yield sources by partition, newest commit first, and by key within a commit."""
    for log in logs:
        # Only later entries decide whether an entry is valid, so older ones are not read.
        keys = {n: log.key_of(n) for n, written in log.entries.items() if written >= since}
        for commit in newest_first(store, log.state.bucket, keys):
            for row in commit.rows:
                if wanted.match(row.source.key):
                    yield Listed.of(row, commit)


def _print_json(found: Iterable[Listed]) -> None:
    """Write one JSON document incrementally."""
    separator = "[\n"
    for one in found:
        sys.stdout.write(separator + json.dumps(one.to_dict()))
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def _pattern(text: str) -> re.Pattern[str]:
    if re.search(r"[*?\[]", text):
        return re.compile(translate(text))
    return re.compile(re.escape(text))
