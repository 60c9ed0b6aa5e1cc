"""``compactor query``: runs SQL over the outputs of a destination."""

from __future__ import annotations

import argparse
import json

from compactor.errors import InvalidInput
from compactor.sizes import human_bytes, plural
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import all_logs, state_from
from compactor_cli.console import print_table, progress
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
    outputs = [
        commit.output
        for log in all_logs(state, store)
        if log.path.startswith(args.below)
        for commit in log.newest_first(store)
        if commit.output is not None
    ]
    if not outputs:
        accepted = "the beginning of the path of a partition with outputs"
        raise InvalidInput("--below", args.below or None, accepted)
    size = human_bytes(sum(output.size for output in outputs))
    with progress(f"reading {plural(len(outputs), 'output')}, {size}"):
        columns, rows = ask(args.statement, outputs, store)
    if args.json:
        document = [dict(zip(columns, row, strict=True)) for row in rows]
        # Types that JSON lacks become text.
        print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    else:
        shown = [tuple("" if value is None else str(value) for value in row) for row in rows]
        print_table(plural(len(rows), "row"), tuple(columns), shown)
    return 0
