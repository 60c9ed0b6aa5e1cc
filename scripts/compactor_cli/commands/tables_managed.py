"""``compactor tables managed``: the maintenance that S3 Tables does by itself, read and set."""

from __future__ import annotations

import argparse
import json
from typing import Any

from compactor.errors import InvalidInput
from compactor.stores.s3_tables import COMPACTION, SNAPSHOTS, UNREFERENCED, S3Tables
from compactor_cli.console import print_line

_STRATEGIES = ("auto", "binpack", "sort", "z-order")
# As policies have it: below, who is at work while files go loses data.
_LEAST_HOURS, _LEAST_DAYS = 168, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The table bucket, the table, and what is set."""
    parser.add_argument("bucket", metavar="ARN", help="of the table bucket")
    parser.add_argument(
        "table", metavar="NAMESPACE.TABLE", nargs="?", help="by default the bucket itself"
    )
    parser.add_argument("--target-mb", type=int, metavar="N", help="size of a data file, 64 to 512")
    parser.add_argument("--strategy", choices=_STRATEGIES, help="of compaction")
    parser.add_argument("--keep-hours", type=int, metavar="N", help="how long snapshots stay")
    parser.add_argument("--keep-versions", type=int, metavar="N", help="snapshots that stay")
    parser.add_argument(
        "--unreferenced-days", type=int, metavar="N", help="of the bucket: age of what goes"
    )
    parser.add_argument(
        "--noncurrent-days", type=int, metavar="N", help="of the bucket: then it is deleted"
    )
    parser.add_argument("--below-floor", action="store_true", help="keep shorter than is safe")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )


def run(args: argparse.Namespace) -> int:
    """Set what was given, and show what holds.

    Raises:
        InvalidInput: an option is at fault, or there is no such table.
    """
    tables = S3Tables(args.bucket)
    changes = _changes(args)
    if args.table is None:
        if UNREFERENCED in changes:
            tables.set_bucket(changes[UNREFERENCED])
        found = tables.of_bucket()
    else:
        namespace, _, name = args.table.rpartition(".")
        for kind, value in changes.items():
            tables.set_table(namespace, name, kind, value)
        found = tables.of_table(namespace, name)
    _show(found, as_json=args.json)
    return 0


def _changes(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """What is to be set, by type.

    Raises:
        InvalidInput: an option is of the other thing, or below what is safe.
    """
    given = {
        COMPACTION: {"targetFileSizeMB": args.target_mb, "strategy": args.strategy},
        SNAPSHOTS: {
            "minSnapshotsToKeep": args.keep_versions,
            "maxSnapshotAgeHours": args.keep_hours,
        },
        UNREFERENCED: {
            "unreferencedDays": args.unreferenced_days,
            "nonCurrentDays": args.noncurrent_days,
        },
    }
    wanted = {
        kind: settings
        for kind, settings in given.items()
        if any(value is not None for value in settings.values())
    }
    if args.table is None and {COMPACTION, SNAPSHOTS} & wanted.keys():
        raise InvalidInput("NAMESPACE.TABLE", None, "a table, for what is set of one")
    if args.table is not None and UNREFERENCED in wanted:
        raise InvalidInput("--unreferenced-days", args.unreferenced_days, "none of a table")
    if args.table is not None and "." not in args.table:
        raise InvalidInput("NAMESPACE.TABLE", args.table, "such as bronze.events")
    for option, value, least in (
        ("--keep-hours", args.keep_hours, _LEAST_HOURS),
        ("--unreferenced-days", args.unreferenced_days, _LEAST_DAYS),
    ):
        if value is not None and value < least and not args.below_floor:
            accepted = f"at least {least}: who still reads or writes loses data; or --below-floor"
            raise InvalidInput(option, value, accepted)
    return {kind: _value(kind, settings) for kind, settings in wanted.items()}


def _value(kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    inner = {name: value for name, value in settings.items() if value is not None}
    return {"status": "enabled", "settings": {kind: inner}}


def _show(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(found, indent=2, default=str))
        return
    for kind, one in sorted(found.items()):
        settings = (one.get("settings") or {}).get(kind, {})
        shown = ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))
        last = one.get("last") or {}
        ended = f"; last: {last['status']}" if last.get("status") else ""
        why = f" ({last['failureMessage']})" if last.get("failureMessage") else ""
        print_line(f"{kind}: {one.get('status', 'unknown')} {shown}{ended}{why}")
