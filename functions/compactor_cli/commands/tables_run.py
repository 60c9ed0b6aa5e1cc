"""``compactor tables run``: maintains tables, on this machine or by a deployed state machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compactor.clock import new_run_id
from compactor_cli.commands import options, table_input
from compactor_cli.commands.deployment import STACK_VARIABLE
from compactor_cli.commands.failures import EXIT_FAILED, Failure
from compactor_cli.commands.store import open_store
from compactor_cli.commands.tables_shown import report_document, show_report
from compactor_cli.console import print_line
from compactor_cli.deployed import executions
from compactor_cli.deployed.aws import Aws
from compactor_cli.deployed.stack import find_stack
from compactor_cli.tables_here import maintain_here
from compactor_tables.maintenance_receipts import FAILED
from compactor_tables.maintenance_report import TablesReport
from compactor_tables.request import read_request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the tables, the state URI, and where to run."""
    table_input.add_tables(parser)
    parser.add_argument(
        "--state-uri",
        metavar="URI",
        help="prefix for orders, receipts and leases; must not contain a table",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="plan and report without changing any table"
    )
    parser.add_argument(
        "--only-when-due",
        action="store_true",
        help="skip a table unless files_over, every or slower_than_seconds of its rule says it is"
        " due",
    )
    parser.add_argument(
        "--stack",
        metavar="NAME",
        help="start the state machine of this CloudFormation stack instead; without tables, with"
        f" the input of its schedule ({STACK_VARIABLE} is ignored here)",
    )
    parser.add_argument("--region", help="region of the stack (by default as boto3 finds it)")
    parser.add_argument("--name", metavar="RUN", help="the run id (by default the time)")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="append what Spark logs to this file"
    )
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Run and print the report, or start a deployed run.

    Raises:
        InvalidInput: the input is invalid, or there is no such stack.
        Failure: the run failed; its report was printed.
    """
    given = _given(args)
    if args.stack is not None:
        return _start(args, given)
    request = read_request(given)
    run_id = args.name or new_run_id()
    # Reports an unreachable endpoint once, instead of once per table.
    open_store(args.endpoint_url, request.state.bucket)
    report = maintain_here(given, request, run_id, endpoint_url=args.endpoint_url, log=args.log)
    _show(args, report)
    if report.status == FAILED:
        raise Failure(f"TablesFailed: {report.cause}", EXIT_FAILED)
    return 0


def _given(args: argparse.Namespace) -> dict[str, Any]:
    given = table_input.document_from(args)
    if args.state_uri is not None:
        given["s3_state_uri"] = args.state_uri
    for name in ("dry_run", "only_when_due"):
        if getattr(args, name):
            given[name] = True
    return given


def _show(args: argparse.Namespace, report: TablesReport) -> None:
    if args.json:
        document = {
            "run_id": report.run_id,
            "status": report.status,
            "report": report_document(report),
        }
        print(json.dumps(document, indent=2))
    else:
        show_report(report)


def _start(args: argparse.Namespace, given: Mapping[str, Any]) -> int:
    aws = Aws(args.region)
    stack = find_stack(aws, args.stack)
    own = stack.tables_input
    # Given tables replace the whole selection of the stack's input; its state URI is kept.
    fresh = {**own, **given} if not _names_tables(given) else {**_without_tables(own), **given}
    read_request(fresh)
    arn = stack.tables_machine_arn
    execution = executions.start(aws, arn, fresh, args.name or new_run_id())
    if args.json:
        print(json.dumps(execution.to_dict(), indent=2))
        return 0
    print_line(f"started run {execution.run_id}")
    print_line(f"follow it: compactor tables status {execution.run_id} --stack {stack.name}")
    return 0


_WHICH = ("tables", "glue_tables", "delta_prefixes")


def _names_tables(given: Mapping[str, Any]) -> bool:
    return any(name in given for name in _WHICH)


def _without_tables(own: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in own.items() if name not in _WHICH}
