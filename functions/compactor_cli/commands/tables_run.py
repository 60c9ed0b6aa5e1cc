"""``compactor tables run``: maintains tables, on this machine or by a deployed state machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from typing import Any

from compactor.clock import new_run_id
from compactor.errors import InvalidInput
from compactor.settings.tables import TableAddress, parse_table
from compactor_cli.commands import options, table_input
from compactor_cli.commands.deployment import STACK_VARIABLE
from compactor_cli.commands.failures import EXIT_FAILED, EXIT_USAGE, Failure
from compactor_cli.commands.run import add_machine
from compactor_cli.commands.store import open_store
from compactor_cli.commands.tables_shown import report_document, show_report
from compactor_cli.console import print_line, progress
from compactor_cli.deployed import executions
from compactor_cli.deployed.aws import Aws
from compactor_cli.deployed.stack import find_stack
from compactor_cli.machine.spark_jars import table_packages
from compactor_cli.runs import message_of
from compactor_local.definition import TABLES_DEFINITION, TABLES_HANDLERS
from compactor_local.engine import EngineOptions, WorkflowProgress, WorkflowResult, run_workflow
from compactor_tables.maintenance_report import TablesReport, read_report
from compactor_tables.request import MaintenanceRequest, read_request

_SUCCEEDED = "SUCCEEDED"
# Engines available to plan_table here; Athena and Glue exist on AWS only.
_ENGINES_HERE = {"COMPACTOR_TABLE_ENGINES": json.dumps(["spark"])}


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
    add_machine(parser)
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
    store = open_store(args.endpoint_url, request.state.bucket)
    result = _carry_out(args, given, request, run_id)
    report = read_report(request.state, run_id, store)
    _show(args, run_id, result, report)
    _check(result)
    return 0


def _given(args: argparse.Namespace) -> dict[str, Any]:
    given = table_input.document_from(args)
    if args.state_uri is not None:
        given["s3_state_uri"] = args.state_uri
    for name in ("dry_run", "only_when_due"):
        if getattr(args, name):
            given[name] = True
    return given


def _carry_out(
    args: argparse.Namespace, given: Mapping[str, Any], request: MaintenanceRequest, run_id: str
) -> WorkflowResult:
    environment = {**_ENGINES_HERE, **table_packages(_kinds(request))}
    engine = EngineOptions(
        definition=TABLES_DEFINITION,
        environment=environment,
        log=args.log,
    )
    with progress("maintaining tables") as bar:

        def show(at: WorkflowProgress) -> None:
            done = at.partitions_done + at.partitions_failed
            bar.show(done, at.partitions_total or None, at.spark or at.function)

        return run_workflow(
            given,
            run_name=run_id,
            workers=args.workers,
            endpoint_url=args.endpoint_url,
            on_progress=show,
            handler_modules=TABLES_HANDLERS,
            options=engine,
        )


def _kinds(request: MaintenanceRequest) -> Iterable[TableAddress]:
    """Yield a table of each possible kind, because each needs other Spark jars."""
    yield from (parse_table(one) for one in request.tables)
    if request.glue_tables:
        yield TableAddress("glue", name=("any", "table"))
    if request.delta_prefixes:
        yield TableAddress("delta", request.delta_prefixes[0])


def _show(
    args: argparse.Namespace, run_id: str, result: WorkflowResult, report: TablesReport | None
) -> None:
    if args.json:
        document = {
            "run_id": run_id,
            "status": result.status,
            "error": result.error,
            "cause": message_of(result.cause) if result.cause else None,
            "report": report_document(report),
        }
        print(json.dumps(document, indent=2))
    elif report is not None:
        show_report(report)


def _check(result: WorkflowResult) -> None:
    if result.status == _SUCCEEDED:
        return
    error = result.error or result.status
    code = EXIT_USAGE if error == InvalidInput.__name__ else EXIT_FAILED
    raise Failure(f"{error}: {message_of(result.cause)}", code)


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
