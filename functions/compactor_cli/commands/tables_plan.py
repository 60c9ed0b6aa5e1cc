"""``compactor tables plan``: shows what a run would do to tables. Reads metadata only."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence

import boto3

from compactor.prices import prices_for
from compactor.s3.store import S3Store
from compactor.settings.tables import TableAddress
from compactor.sizes import human_bytes, plural
from compactor_cli.commands import options, table_input
from compactor_cli.console import print_line, print_table
from compactor_tables.costs import ENGINES
from compactor_tables.engine_choice import NONE
from compactor_tables.metadata.measuring import measure_table
from compactor_tables.table_planning import PartitionPlan, TablePlan, plan_table

_SHOWN_ROWS = 20
_HEADS = (
    "Table",
    "Engine",
    "Files",
    "Selected",
    "Bytes",
    "Costs",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the tables and the available engines."""
    table_input.add_tables(parser)
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        action="append",
        help="an available engine (by default all of them); may be given several times",
    )
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and plan tables, and print what a run would do.

    Raises:
        InvalidInput: the input is invalid.
        Failure: a table could not be measured.
    """
    request, now = table_input.request_from(args), time.time()
    prices = prices_for(boto3.session.Session().region_name)

    def plan(one: TableAddress, store: S3Store) -> TablePlan:
        measure = measure_table(one, store, now)
        rule = request.policies.of(one.text)
        return plan_table(measure, rule, now, args.engine or ENGINES, prices=prices)

    outcomes = table_input.of_each_table(request, args.endpoint_url, "planning", plan)
    found = [one.found for one in outcomes if one.found is not None]
    if args.json:
        table_input.print_documents(outcomes, TablePlan.to_dict)
    elif found:
        _show(found)
        if prices.warning:
            print_line(prices.warning)
    elif not outcomes:
        print_line(table_input.none_found(request))
    table_input.require_all(outcomes)
    return 0


def _show(found: Sequence[TablePlan]) -> None:
    rows = [_row(one) for one in found[:_SHOWN_ROWS]]
    print_table("What a run would do now (nothing was written)", _HEADS, rows)
    for one in found[:_SHOWN_ROWS]:
        print_line(f"{one.table}: {one.engine}, {one.reason} ({one.rule})")
        if one.steps:
            print_line(f"  {', '.join(one.steps)}")
        for line in _lines(one.partitions):
            print_line(f"  {line}")
    if len(found) > _SHOWN_ROWS:
        print_line(f"and {plural(len(found) - _SHOWN_ROWS, 'more table')}; --json lists all")
    if len(found) == 1 and len(found[0].partitions) > 1:
        _show_partitions(found[0])


def _row(one: TablePlan) -> tuple[str, ...]:
    if one.engine == NONE:
        return (one.table, NONE, f"{one.files:,}", *[""] * 3)
    return (
        one.table,
        one.engine,
        f"{one.files:,}",
        f"{one.rewrite.files:,}",
        human_bytes(one.rewrite.bytes),
        f"${one.dollars:,.4f}",
    )


def _lines(partitions: Sequence[PartitionPlan]) -> list[str]:
    """Return how many partitions are skipped for each reason; all ages count as one reason."""
    reasons = Counter(
        "written recently" if one.left.startswith("written") else one.left
        for one in partitions
        if one.left
    )
    if len(partitions) == 1:
        return []
    return [
        f"skipped: {plural(count, 'partition')}, {reason}"
        for reason, count in reasons.most_common()
    ]


def _show_partitions(one: TablePlan) -> None:
    worst = sorted(one.partitions, key=lambda each: (-each.rewrite.files, each.name))
    rows = [
        (
            each.name or "(whole table)",
            f"{each.files:,}",
            human_bytes(each.bytes),
            f"{each.rewrite.files:,}",
            human_bytes(each.rewrite.bytes),
            each.left,
        )
        for each in worst[:_SHOWN_ROWS]
    ]
    heads = ("Partition", "Files", "Bytes", "Selected", "Selected bytes", "Left")
    print_table("Partitions", heads, rows)
    if len(worst) > _SHOWN_ROWS:
        more = plural(len(worst) - _SHOWN_ROWS, "more partition")
        print_line(f"and {more}; --json lists all")
