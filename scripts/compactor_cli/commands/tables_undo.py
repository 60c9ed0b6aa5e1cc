"""``compactor tables undo``: an order for Spark to take back what the last run rewrote."""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

from compactor.catalogs.opening import require_installed
from compactor.maintenance.orders import write_order
from compactor.maintenance.receipts import DONE
from compactor.maintenance.undoing import Undoable, find_undoable
from compactor.maintenance.watching import Watched
from compactor.ports import TaggedStore
from compactor.settings.tables import DELTA
from compactor.sizes import human_bytes
from compactor_cli.commands import options
from compactor_cli.commands.failures import Failure, nobody_to_ask
from compactor_cli.commands.tables_history import add_table, opened_from
from compactor_cli.console import counted, print_error, print_line, progress

_SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which table, which run, and whether to ask."""
    add_table(parser)
    parser.add_argument(
        "--run",
        metavar="RUN_ID",
        default="",
        dest="run_id",
        help="the run whose rewrites are undone (by default the last in the table's history)",
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only show what would happen")
    parser.add_argument(
        "-y", "--yes", action="store_true", help="order it without asking; needed in scripts"
    )
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Find, show, ask, untag, order.

    Raises:
        InvalidInput: there is nothing to undo, or nobody can be asked.
        Failure: the answer was no.
    """
    asked = sys.stdin.isatty() and not args.json
    if not (args.dry_run or args.yes or asked):
        raise nobody_to_ask()
    watched, store = opened_from(args)
    found = find_undoable(watched, time.time(), args.run_id)
    if not args.json:
        _show(found)
    uri, untagged = "", 0
    if not args.dry_run:
        if not args.yes and not _agreed():
            raise Failure("nothing was ordered")
        untagged = _untag(watched, store)
        uri = write_order(found.order(), watched.state, watched.store)
    if args.json:
        print(json.dumps(_document(found, uri, untagged), indent=2))
    elif uri:
        _tell(uri, untagged)
    return 0


def _untag(watched: Watched, store: TaggedStore) -> int:
    """Before the order: what it brings back to life may have no tag."""
    if watched.table.kind != DELTA:
        return 0
    # pyarrow, which reads the checkpoints of a Delta log, comes with it.
    require_installed("iceberg", watched.table.text)
    from compactor.catalogs.delta_files import superseded_files  # noqa: PLC0415 - of an extra

    with progress("untagging"):
        return superseded_files(watched.state, watched.table, store).untag_all().untagged


def _show(found: Undoable) -> None:
    receipt = found.receipt
    done = receipt.of(DONE)
    files, into = sum(one.files for one in done), sum(one.into for one in done)
    size = sum(one.bytes for one in done)
    print_line(f"{receipt.table}: back to version {receipt.undo}, before run {receipt.run_id}")
    print_line(
        f"{counted(into, 'file')} of {counted(len(done), 'partition')} become"
        f" {counted(files, 'file')} of {human_bytes(size)} again"
    )
    for one in done[:_SHOWN]:
        print_line(f"  {one.name or 'the whole table'}: {one.into:,} -> {one.files:,}")
    if len(done) > _SHOWN:
        print_line(f"  and {len(done) - _SHOWN:,} more")
    until = datetime.fromtimestamp(receipt.undo_until, UTC)
    print_line(
        f"that version is kept until {until:%Y-%m-%d %H:%M} UTC; where anybody but our maintenance"
        " has committed since, Spark refuses, and changes nothing"
    )


def _agreed() -> bool:
    print_error("Undo this? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _tell(uri: str, untagged: int) -> None:
    if untagged:
        print_line(f"untagged: {counted(untagged, 'file')} that come back to life")
    print_line(f"ordered: {uri}")
    print_line("Spark carries it out: maintain_tables.py with this URI as its argument")


def _document(found: Undoable, uri: str, untagged: int) -> dict[str, Any]:
    receipt = found.receipt
    return {
        "table": receipt.table,
        "run": receipt.run_id,
        "version": receipt.undo,
        "until": receipt.undo_until,
        "partitions": len(receipt.of(DONE)),
        "files": sum(one.files for one in receipt.of(DONE)),
        "untagged": untagged,
        "order": uri or None,
    }
