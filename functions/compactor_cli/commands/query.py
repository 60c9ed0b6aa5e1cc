"""``compactor query``: runs SQL over the outputs of a destination."""

from __future__ import annotations

import argparse
import datetime
import decimal
import json
import uuid
from typing import Any

from compactor.errors import InvalidInput
from compactor.log.rejects import RejectsSeen
from compactor.log.rejects import describe as describe_rejects
from compactor.sizes import human_bytes, plural
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import all_logs, state_from
from compactor_cli.console import print_note, print_table, progress
from compactor_cli.machine.extras import require


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEST, the statement, and what it reads."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument(
        "statement",
        metavar="SQL",
        help="a DuckDB statement FROM records, which has the records' own columns, and _object,"
        " the URI of a record's output",
    )
    parser.add_argument(
        "--below",
        metavar="PATH",
        default="",
        help="only partitions whose path begins with this, such as dt=2026-01- (by default all)",
    )
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Read the outputs, run the statement, print the rows.

    Raises:
        ExtraMissing: DuckDB is not installed.
        InvalidInput: there is no state, nothing to read, or DuckDB rejects the statement.
        Failure: DuckDB cannot read an output, or reads other rows than its commit says.
    """
    require("query", "compactor query")
    from compactor_cli.duck import ask  # noqa: PLC0415 - its packages are an extra's

    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    outputs, rejects = [], RejectsSeen()
    for log in all_logs(state, store):
        if not log.path.startswith(args.below):
            continue
        for commit in log.newest_first(store):
            rejects.add(commit)
            if commit.output is not None:
                outputs.append(commit.output)
    if not outputs:
        accepted = "the beginning of the path of a partition with outputs"
        raise InvalidInput("--below", args.below or None, accepted)
    size = human_bytes(sum(output.size for output in outputs))
    with progress(f"reading {plural(len(outputs), 'output')}, {size}"):
        columns, rows = ask(args.statement, outputs, store)
    if rejects.waiting:
        print_note(f"left out: {describe_rejects(rejects.waiting)}")
    if args.json:
        document = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        shown = [tuple("" if value is None else str(value) for value in row) for row in rows]
        print_table(plural(len(rows), "row"), tuple(columns), shown)
    return 0


def _plain(value: Any) -> Any:
    """Return a value for JSON; types that JSON lacks become text."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    texts = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID, bytes)
    return str(value) if isinstance(value, texts) else value
