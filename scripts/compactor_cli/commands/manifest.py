"""``compactor manifest``: which source is where in which output, to be joined with."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from compactor.errors import InvalidInput
from compactor.outputs.mapping import Mapped
from compactor.sizes import plural
from compactor_cli.commands import options
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import state_from
from compactor_cli.console import Bar, print_line, progress
from compactor_cli.mapping import as_json_lines, mapping
from compactor_cli.restored_files import write_new
from compactor_machine.extras import require

_JSON_LINES, _PARQUET = "jsonl", "parquet"
_SHOWN_EACH = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """DEST, the format, and where to."""
    options.add_places(parser, options.DESTINATION)
    parser.add_argument(
        "--format",
        choices=(_PARQUET, _JSON_LINES),
        default=_JSON_LINES,
        help="of the export (by default jsonl: one JSON object a line)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write a file that is not there yet (by default, for jsonl, standard output)",
    )
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Export source by source.

    One commit is held at a time.

    Raises:
        InvalidInput: there is no state, the file is there already, or options contradict each
            other.
        IntegrityError: an entry of a log is damaged; no file is left then.
        ExtraMissing: Parquet is wanted, and nothing that writes it is installed.
    """
    _check(args)
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    with progress("exporting") as bar:
        count = _Count(bar)
        pieces = _pieces(args.format, count.passed(mapping(state, store)))
        if args.output is None:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return 0
        size = write_new(Path(args.output), pieces)
    if args.json:
        print(json.dumps({"path": args.output, "sources": count.rows, "bytes": size}, indent=2))
    else:
        print_line(f"{args.output}: {plural(count.rows, 'source')}, {size:,} bytes")
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.output is None:
        if args.format == _PARQUET:
            raise InvalidInput("--output", None, "a file with --format parquet")
        if args.json:
            raise InvalidInput("--json", True, "--output FILE with it: the export is no document")
        return
    if os.path.lexists(args.output):
        raise InvalidInput("--output", args.output, "a file that is not there yet")
    if args.format == _PARQUET:
        require("parquet", "an export as Parquet")


def _pieces(kind: str, rows: Iterable[Mapped]) -> Iterator[bytes]:
    if kind == _JSON_LINES:
        return as_json_lines(rows)
    from compactor_cli.mapping_parquet import as_parquet  # noqa: PLC0415 - of an extra

    return as_parquet(rows)


class _Count:
    """How many rows have passed."""

    def __init__(self, bar: Bar) -> None:
        self.rows = 0
        self._bar = bar

    def passed(self, rows: Iterable[Mapped]) -> Iterator[Mapped]:
        for row in rows:
            self.rows += 1
            if not self.rows % _SHOWN_EACH:
                self._bar.show(self.rows, None, f"{self.rows:,} sources")
            yield row
