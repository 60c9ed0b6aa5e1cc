"""``compactor tables undo``: reverts the rewrites of the last run, with Spark on this machine."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from compactor.clock import SystemClock
from compactor.ports import TaggedStore
from compactor.settings.tables import DELTA, parse_table
from compactor.sizes import human_bytes, plural
from compactor.table_formats.installed import require_installed
from compactor_cli.commands import options
from compactor_cli.commands.asking import is_agreed, require_answer
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.tables_history import add_table, opened_from
from compactor_cli.console import print_line, progress
from compactor_cli.machine.environment import engine_environment, opened_log
from compactor_cli.machine.spark_jars import table_packages
from compactor_cli.machine.spark_job import LocalSpark, order_arguments
from compactor_cli.machine.spark_submit import SparkMissing, find_spark
from compactor_tables.lease import LeaseHeld, Leases
from compactor_tables.maintenance_receipts import DONE, read_receipt
from compactor_tables.observing import Watched
from compactor_tables.orders import write_order
from compactor_tables.undoing import Undoable, find_undoable

_SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the table, the run, and confirmation options."""
    add_table(parser)
    parser.add_argument(
        "--run",
        metavar="RUN_ID",
        default="",
        dest="run_id",
        help="the run to undo (by default the last in the table's history)",
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only show what would happen")
    parser.add_argument(
        "-y", "--yes", action="store_true", help="undo without confirmation; required in scripts"
    )
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="append what Spark prints to this file"
    )
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Show what would be undone, confirm, write the order, and let Spark carry it out.

    Without Spark on this machine the order is kept for another one, and the output says how.

    Raises:
        InvalidInput: there is nothing to undo, or there is no terminal to confirm on.
        Failure: the answer was no, another run works on the table, or Spark refused or failed.
    """
    require_answer(args, dry_run=args.dry_run)
    watched, store = opened_from(args)
    found = find_undoable(watched, time.time(), args.run_id)
    if not args.json:
        _show(found)
    done = _Done()
    if not args.dry_run:
        if not is_agreed(args, "Undo these rewrites?"):
            raise Failure("nothing was changed")
        done = _undo(args, found, watched, store)
    if args.json:
        print(json.dumps(_document(found, done), indent=2))
    elif done.uri:
        _report(found, done)
    if done.failure:
        raise Failure(f"not undone: {done.failure}")
    return 0


@dataclass(frozen=True, slots=True)
class _Done:
    """The result of an undo.

    Attributes:
        uri: of the order; empty where none was written.
        untagged: number of files whose deletion tag was removed.
        missing: what this machine lacks to run Spark; empty if nothing.
        failure: why it failed; empty on success.
        at: version of the table afterwards.
    """

    uri: str = ""
    untagged: int = 0
    missing: str = ""
    failure: str = ""
    at: str = ""


def _undo(args: argparse.Namespace, found: Undoable, watched: Watched, store: TaggedStore) -> _Done:
    """Carry the undo out under the table's lease, as every run that changes it does."""
    leases = Leases(watched.store, watched.state, SystemClock())
    try:
        leases.take(watched.table, found.run_id, engine="spark")
    except LeaseHeld as held:
        raise Failure(f"not undone: {held}") from None
    try:
        untagged = _untag(watched, store)
        uri = write_order(found.order(), watched.state, watched.store)
        try:
            find_spark()
        except SparkMissing as missing:
            return _Done(uri, untagged, missing=missing.what)
        failure = _carried_out(args, found, uri)
        receipt = read_receipt(watched.state, found.run_id, watched.table.text, watched.store)
        if receipt is not None and receipt.error:
            failure = f"{receipt.error}: {receipt.cause}"
        return _Done(uri, untagged, failure=failure, at=receipt.at if receipt else "")
    finally:
        leases.release(watched.table, found.run_id)


def _carried_out(args: argparse.Namespace, found: Undoable, uri: str) -> str:
    """Run the order with local Spark; returns why it failed, empty on success."""
    packages = table_packages([parse_table(found.receipt.table)])
    environment = engine_environment(packages, args.endpoint_url)
    with opened_log(args.log) as log, progress("undoing") as bar:
        spark = LocalSpark(environment, log)
        try:
            return spark.submit(
                order_arguments(found.run_id, uri), lambda line: bar.show(0, text=line)
            )
        finally:
            spark.stop()


def _untag(watched: Watched, store: TaggedStore) -> int:
    """Remove deletion tags first: the files that the undo restores must not carry any."""
    if watched.table.kind != DELTA:
        return 0
    # pyarrow, which reads the checkpoints of a Delta log, is part of that extra.
    require_installed("iceberg", watched.table.text)
    from compactor_tables.metadata.delta_files import superseded_files  # noqa: PLC0415 - of an extra

    with progress("untagging"):
        return superseded_files(watched.state, watched.table, store).untag_all().untagged


def _show(found: Undoable) -> None:
    receipt = found.receipt
    done = receipt.of(DONE)
    files, into = sum(one.files for one in done), sum(one.into for one in done)
    size = sum(one.bytes for one in done)
    print_line(f"{receipt.table}: back to version {receipt.undo}, before run {receipt.run_id}")
    print_line(
        f"{plural(into, 'file')} of {plural(len(done), 'partition')} become"
        f" {plural(files, 'file')} of {human_bytes(size)} again"
    )
    for one in done[:_SHOWN]:
        print_line(f"  {one.name or 'the whole table'}: {one.into:,} -> {one.files:,}")
    if len(done) > _SHOWN:
        print_line(f"  and {len(done) - _SHOWN:,} more")
    until = datetime.fromtimestamp(receipt.undo_until, UTC)
    print_line(
        f"that version is kept until {until:%Y-%m-%d %H:%M} UTC; if another writer has committed"
        " since, Spark refuses and changes nothing"
    )


def _report(found: Undoable, done: _Done) -> None:
    if done.untagged:
        print_line(f"untagged: {plural(done.untagged, 'file')} restored by the undo")
    if done.missing:
        print_line(f"not undone yet: {done.missing}; the order is {done.uri}")
        print_line(f"on a machine with Spark: spark-submit maintain_tables.py --order {done.uri}")
    elif not done.failure:
        print_line(f"undone: {found.receipt.table} is at version {done.at}")


def _document(found: Undoable, done: _Done) -> dict[str, Any]:
    receipt = found.receipt
    return {
        "table": receipt.table,
        "run": receipt.run_id,
        "version": receipt.undo,
        "until": receipt.undo_until,
        "partitions": len(receipt.of(DONE)),
        "files": sum(one.files for one in receipt.of(DONE)),
        "untagged": done.untagged,
        "order": done.uri or None,
        "at": done.at or None,
        "error": done.failure or done.missing or None,
    }
