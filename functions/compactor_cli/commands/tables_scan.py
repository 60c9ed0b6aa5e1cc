"""``compactor tables scan``: measures tables. Reads metadata only."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from typing import Any

from compactor.sizes import human_bytes, plural
from compactor_cli.commands import options, table_input
from compactor_cli.console import print_line, print_table
from compactor_tables.measures import CLASSES, PartitionMeasure, TableMeasure, histogram
from compactor_tables.metadata.measuring import measure_table

_SHOWN_ROWS = 20
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the tables."""
    table_input.add_tables(parser)
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Measure tables and print the figures.

    Raises:
        InvalidInput: the input is invalid.
        Failure: a table could not be measured.
    """
    request, now = table_input.request_from(args), time.time()
    outcomes = table_input.of_each_table(
        request, args.endpoint_url, "measuring", lambda one, store: measure_table(one, store, now)
    )
    found = [one.found for one in outcomes if one.found is not None]
    if args.json:
        table_input.print_documents(outcomes, document)
    elif found:
        _show(found, now)
    elif not outcomes:
        print_line(table_input.none_found(request))
    table_input.require_all(outcomes)
    return 0


def document(one: TableMeasure) -> dict[str, Any]:
    """Return a measured table for JSON."""
    return {
        "table": one.name,
        "format": one.format,
        "version": one.version,
        "files": one.files,
        "bytes": one.bytes,
        "rows": one.rows,
        "deleted": one.deleted,
        "target_bytes": one.target_bytes,
        "sizes": _sizes(one.partitions),
        "delete_files": one.delete_files,
        "metadata_files": one.metadata_files,
        "metadata_bytes": one.metadata_bytes,
        "versions": one.versions,
        "last_commit": one.last_commit,
        "commits_an_hour": one.commits_an_hour(one.at),
        "partitions": [_partition(each) for each in one.partitions],
    }


def _partition(one: PartitionMeasure) -> dict[str, Any]:
    return {
        "name": one.name,
        "spec": one.spec,
        "files": len(one.files),
        "bytes": one.bytes,
        "rows": one.rows,
        "with_deletes": sum(1 for file in one.files if file.deletes),
        "changed": one.changed,
        "sizes": _sizes([one]),
    }


def _sizes(partitions: Iterable[PartitionMeasure]) -> list[dict[str, Any]]:
    counts = histogram(file.size for one in partitions for file in one.files)
    bounds = [*CLASSES, None]
    return [{"to": to, "files": count} for to, count in zip(bounds, counts, strict=True)]


def _show(found: Sequence[TableMeasure], now: float) -> None:
    heads = ("Table", "Files", "Bytes", "Average", "Deletes", "Metadata", "Versions", "Changed")
    print_table("Tables", heads, [_row(one, now) for one in found[:_SHOWN_ROWS]])
    sizes = ("Table", *(f"to {human_bytes(one)}" for one in CLASSES), "above")
    rows = [(one.name, *_counts(one)) for one in found[:_SHOWN_ROWS]]
    print_table("Data files by size", sizes, rows)
    if len(found) > _SHOWN_ROWS:
        print_line(f"and {plural(len(found) - _SHOWN_ROWS, 'more table')}; --json lists all")
    if len(found) == 1 and len(found[0].partitions) > 1:
        _show_partitions(found[0], now)


def _row(one: TableMeasure, now: float) -> tuple[str, ...]:
    changed = "never" if one.last_commit is None else f"{ago(now - one.last_commit)} ago"
    return (
        one.name,
        f"{one.files:,}",
        human_bytes(one.bytes),
        human_bytes(one.bytes / max(1, one.files)),
        f"{one.delete_files:,}",
        f"{one.metadata_files:,}",
        f"{one.versions:,}",
        f"{changed}, {one.commits_an_hour(now):,.1f}/h",
    )


def _counts(one: TableMeasure) -> list[str]:
    counts = histogram(file.size for each in one.partitions for file in each.files)
    return [f"{count:,}" if count else "" for count in counts]


def _show_partitions(one: TableMeasure, now: float) -> None:
    worst = sorted(one.partitions, key=lambda each: (-len(each.files), each.name))
    rows = [
        (
            each.name or "(whole table)",
            f"{len(each.files):,}",
            human_bytes(each.bytes),
            human_bytes(each.bytes / len(each.files)),
            "" if each.changed is None else f"{ago(now - each.changed)} ago",
        )
        for each in worst[:_SHOWN_ROWS]
    ]
    heads = ("Partition", "Files", "Bytes", "Average", "Changed")
    print_table("Partitions with the most files", heads, rows)
    if len(worst) > _SHOWN_ROWS:
        more = plural(len(worst) - _SHOWN_ROWS, "more partition")
        print_line(f"and {more}; --json lists all")


def ago(seconds: float) -> str:
    """Return a duration such as ``3 h`` or ``12 d``."""
    for unit, length in _UNITS:
        if seconds >= 2 * length or length == 1:
            return f"{max(0.0, seconds) / length:,.0f} {unit}"
    return ""
