"""The report of a maintenance run, as text and as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from compactor.sizes import human_bytes, plural
from compactor_cli.console import print_line, print_table
from compactor_tables.maintenance_report import TablesReport
from compactor_tables.outcomes import Outcome

_SHOWN_ROWS = 50


def report_document(report: TablesReport | None) -> dict[str, Any] | None:
    """Return a report for JSON."""
    if report is None:
        return None
    document: dict[str, Any] = msgspec.to_builtins(report)
    return document


def show_report(report: TablesReport) -> None:
    """Print every table, failed ones first, and the totals."""
    order = {"failed": 0, "more": 1, "done": 2, "left": 3}
    tables = sorted(report.tables, key=lambda one: order.get(one.status, 0))
    heads = ("Table", "Engine", "Status", "Files", "Into", "Bytes", "Expired", "Costs", "Seconds")
    print_table(f"Run {report.run_id}", heads, [_row(one) for one in tables[:_SHOWN_ROWS]])
    if len(tables) > _SHOWN_ROWS:
        print_line(f"and {plural(len(tables) - _SHOWN_ROWS, 'more table')}; --json lists all")
    for one in tables[:_SHOWN_ROWS]:
        if one.status != "done" and one.why:
            print_line(f"{one.table}: {one.status}, {one.why}")
        if one.undo_sql:
            print_line(f"{one.table}: the way back is {one.undo_sql}")
    totals = report.totals
    print_line(
        f"{plural(totals.tables, 'table')}: {totals.done} done, {totals.left} left,"
        f" {totals.more} with more to do, {totals.failed} failed;"
        f" {totals.files:,} files to {totals.into:,}, about ${totals.dollars:,.4f}"
    )


def _row(one: Outcome) -> tuple[str, ...]:
    if one.status == "left":
        return (one.table, one.engine, one.status, *[""] * 6)
    return (
        one.table,
        one.engine,
        one.status,
        f"{one.files:,}",
        f"{one.into:,}",
        human_bytes(one.bytes),
        f"{one.expired:,}",
        f"${one.dollars:,.4f}",
        f"{one.seconds:,.1f}",
    )
