"""``compactor maintain``: plans and runs maintenance of tables that others write."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import click
import msgspec

from compactor.clock import SystemClock, instant, new_run_id
from compactor.errors import CompactorError, InvalidInput
from compactor.prices import prices_for
from compactor.s3.store import S3Store, make_client
from compactor.settings.tables import TABLE_ACCEPTED, TableAddress, parse_table
from compactor.settings.uris import S3Uri
from compactor.sizes import human_bytes, plural
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Argument, Option, action
from compactor_cli.commands.documents import read_object
from compactor_cli.console import Bar, print_line, print_note, print_table, progress
from compactor_cli.executions import Execution, start
from compactor_cli.failures import EXIT_INTERRUPTED, EXIT_USAGE, Failure
from compactor_cli.machine.environment import engine_environment, opened_log
from compactor_cli.machine.spark_jars import table_packages
from compactor_cli.machine.spark_job import LocalSpark, order_arguments
from compactor_cli.run_status import DeployedProgress, Follower
from compactor_cli.stack import Aws, find_stack
from compactor_cli.store import open_store
from compactor_tables.aws.glue_catalog import GlueCatalog
from compactor_tables.aws.glue_tables import GlueTables
from compactor_tables.costs import ENGINES, SPARK, WORKER
from compactor_tables.engine_choice import NONE
from compactor_tables.maintenance_receipts import FAILED
from compactor_tables.maintenance_report import TablesReport, read_report, report_on
from compactor_tables.metadata.measuring import measure_table
from compactor_tables.outcomes import Outcome
from compactor_tables.request import REQUEST_FIELDS, MaintenanceRequest, read_request
from compactor_tables.rewriting.worker import carry_out
from compactor_tables.table_discovery import find_tables
from compactor_tables.table_planning import PartitionPlan, TablePlan, plan_table
from compactor_tables.table_run import TableRun
from compactor_tables.worklist import write_worklist

_SHOWN_ROWS = 20
_CONCURRENT = 4
_INPUT_ACCEPTED = "a JSON document with the fields of a maintenance run"
_POLICIES_ACCEPTED = "a JSON document with a list of rules"
_WHICH = ("tables", "glue_tables", "delta_prefixes")
# Of the report's rows, which are shown first.
_ORDER = {"failed": 0, "more": 1, "done": 2, "left": 3}

_TABLES: list[click.Parameter] = [
    Argument("tables", "[TABLE]...", TABLE_ACCEPTED, nargs=-1),
    *(
        Option(
            f"--{name.replace('_', '-')}",
            metavar=metavar,
            multiple=True,
            help=REQUEST_FIELDS[name].meaning,
        )
        for name, metavar in (("glue_tables", "DATABASE.TABLE"), ("delta_prefixes", "URI"))
    ),
    Option("--policies", metavar="FILE.json", help="rules for tables; the first match applies"),
    given.INPUT,
]


def _document(args: Args) -> dict[str, Any]:
    """Return the given input, from options or from a document.

    Raises:
        InvalidInput: both were given, or a document cannot be read or repeats a key.
    """
    names = (*_WHICH, "policies")
    fields = {name: getattr(args, name) for name in names if getattr(args, name)}
    fields = {name: [*v] if isinstance(v, tuple) else v for name, v in fields.items()}
    if args.input is None:
        if args.policies:
            # Wrapped in an object, so that the strict reader accepts it.
            rules = _read("--policies", args.policies, _POLICIES_ACCEPTED, '{{"policies": {}}}')
            fields["policies"] = rules["policies"]
        return fields
    if fields:
        raise InvalidInput("--input", args.input, f"either a document or {', '.join(fields)}")
    return _read("--input", args.input, _INPUT_ACCEPTED)


def _read(option: str, path: str, accepted: str, form: str = "{}") -> dict[str, Any]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
        return read_object(form.format(text))
    except (OSError, ValueError) as error:
        raise InvalidInput(option, path, f"{accepted} ({error})") from None


# plan


class Planned(NamedTuple):
    """The plan of one table, or the error that prevented it."""

    table: TableAddress
    plan: TablePlan | None
    error: CompactorError | None = None


@action(
    _TABLES,
    Option(
        "--engine",
        type=click.Choice(ENGINES),
        multiple=True,
        help="an available engine (by default all of them); may be given several times",
    ),
    given.COMMON,
)
def plan(args: Args) -> int:
    """Measure and plan tables from their metadata, and print what a run would do.

    Raises:
        InvalidInput: the input is invalid.
        Failure: a table could not be measured.
    """
    request, now = read_request(_document(args), reads_only=True), time.time()
    prices = prices_for(boto3.session.Session().region_name)
    # Reports an unreachable endpoint once, instead of once per table.
    store = open_store(args.endpoint_url, _known_bucket(request))

    def plan_one(table: TableAddress) -> Planned:
        try:
            measure = measure_table(table, store, now)
            rule = request.policies.of(table.text)
            engines = args.engine or ENGINES
            return Planned(table, plan_table(measure, rule, now, engines, prices=prices))
        except CompactorError as error:
            return Planned(table, None, error)

    tables, outcomes = _find(request, store), list[Planned]()
    with progress("planning", len(tables)) as bar, ThreadPoolExecutor(_CONCURRENT) as pool:
        for outcome in pool.map(plan_one, tables):
            outcomes.append(outcome)
            bar.advance()
    plans = [one.plan for one in outcomes if one.plan is not None]
    if args.json:
        print(json.dumps({"tables": [_planned_document(one) for one in outcomes]}, indent=2))
    elif plans:
        _show_plans(plans)
        if prices.warning:
            print_line(prices.warning)
    elif not outcomes:
        print_line(f"no table matches {', '.join((*request.glue_tables, *request.delta_prefixes))}")
    _require_all(outcomes)
    return 0


def _find(request: MaintenanceRequest, store: S3Store) -> Sequence[TableAddress]:
    with progress("looking for tables"):
        tables = find_tables(request, store, GlueCatalog())
    for name in tables.unnamed:
        print_note(f"skipped {name}: its name cannot be written as a table address")
    return tables.tables


def _known_bucket(request: MaintenanceRequest) -> str:
    """Return a bucket that the request names; empty if only a catalog knows the locations."""
    addresses = [parse_table(table).location for table in request.tables]
    places = [location for location in addresses if location is not None]
    places += [S3Uri.parse("delta_prefixes", prefix) for prefix in request.delta_prefixes]
    return places[0].bucket if places else ""


def _planned_document(planned: Planned) -> dict[str, Any]:
    if planned.plan is not None:
        return planned.plan.to_dict()
    return {
        "table": planned.table.text,
        "error": f"{type(planned.error).__name__}: {planned.error}",
    }


def _require_all(outcomes: Sequence[Planned]) -> None:
    """Check that every table has a plan.

    Raises:
        Failure: names the first error, and how many there are.
    """
    failed = [one for one in outcomes if one.error is not None]
    if not failed:
        return
    table, _, error = failed[0]
    more = f" (and {plural(len(failed) - 1, 'more table')})" if len(failed) > 1 else ""
    is_usage = isinstance(error, InvalidInput) and len(outcomes) == 1
    line = f"{table.text}: {type(error).__name__}: {error}{more}"
    raise Failure(line, EXIT_USAGE) if is_usage else Failure(line)


def _show_plans(plans: Sequence[TablePlan]) -> None:
    heads = ("Table", "Engine", "Files", "Selected", "Bytes", "Costs")
    rows = [_plan_row(one) for one in plans[:_SHOWN_ROWS]]
    print_table("What a run would do now (nothing was written)", heads, rows)
    for one in plans[:_SHOWN_ROWS]:
        print_line(f"{one.table}: {one.engine}, {one.reason} ({one.rule})")
        if one.steps:
            print_line(f"  {', '.join(one.steps)}")
        for line in _skipped(one.partitions):
            print_line(f"  {line}")
    _show_more(len(plans), "more table")
    if len(plans) == 1 and len(plans[0].partitions) > 1:
        _show_partitions(plans[0])


def _show_more(count: int, noun: str) -> None:
    if count > _SHOWN_ROWS:
        print_line(f"and {plural(count - _SHOWN_ROWS, noun)}; --json lists all")


def _plan_row(one: TablePlan) -> tuple[str, ...]:
    if one.engine == NONE:
        return one.table, NONE, f"{one.files:,}", "", "", ""
    size = human_bytes(one.rewrite.bytes)
    counts = (f"{one.files:,}", f"{one.rewrite.files:,}", size, f"${one.dollars:,.4f}")
    return one.table, one.engine, *counts


def _skipped(partitions: Sequence[PartitionPlan]) -> list[str]:
    """Return how many partitions are skipped for each reason; all ages count as one reason."""
    if len(partitions) == 1:
        return []
    reasons = Counter(
        "written recently" if one.left.startswith("written") else one.left
        for one in partitions
        if one.left
    )
    return [f"skipped: {plural(n, 'partition')}, {reason}" for reason, n in reasons.most_common()]


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
    _show_more(len(worst), "more partition")


# run


@action(
    _TABLES,
    Option(
        "--state-uri",
        metavar="URI",
        help="prefix for orders, receipts and leases; must not contain a table",
    ),
    Option("--dry-run", is_flag=True, help="plan and report without changing any table"),
    Option(
        "--only-when-due",
        is_flag=True,
        help="skip a table unless files_over, every or slower_than_seconds of its rule says it is"
        " due",
    ),
    Option(
        "--stack",
        metavar="NAME",
        section="deployed stack",
        help="start the state machine of this stack instead, and wait until it ends; without"
        " tables, with the input of its schedule",
    ),
    given.REGION,
    given.NAME,
    given.LOG,
    given.COMMON,
)
def run(args: Args) -> int:
    """Run and print the report.

    Raises:
        InvalidInput: the input is invalid, or there is no such stack.
        Failure: the run failed; its report was printed.
    """
    document, run_id = _document(args), args.name or new_run_id()
    if args.state_uri is not None:
        document["s3_state_uri"] = args.state_uri
    document |= {name: True for name in ("dry_run", "only_when_due") if getattr(args, name)}
    if args.stack is not None:
        report, execution = _run_deployed(args, document, run_id)
    else:
        request = read_request(document)
        # Reports an unreachable endpoint once, instead of once per table.
        open_store(args.endpoint_url, request.state.bucket)
        report, execution = _run_here(document, request, run_id, args), None
    if args.json:
        shown = {"run_id": run_id, "status": report.status if report else None}
        shown |= {"report": msgspec.to_builtins(report)}
        shown |= {"execution": execution.to_dict()} if execution else {}
        print(json.dumps(shown, indent=2))
    elif report is not None:
        _show_report(report)
    if execution is not None:
        execution.check()
    if report is not None and report.status == FAILED:
        raise Failure(f"TablesFailed: {report.cause}")
    return 0


def _run_deployed(
    args: Args, document: Mapping[str, Any], run_id: str
) -> tuple[TablesReport | None, Execution]:
    """Start a deployed run, and wait for its end; returns its report, if it left one."""
    aws = Aws(args.region)
    stack = find_stack(aws, args.stack)
    own = stack.tables_input
    # Given tables replace the whole selection of the stack's input; its state URI is kept.
    if any(name in document for name in _WHICH):
        own = {name: value for name, value in own.items() if name not in _WHICH}
    document = {**own, **document}
    request = read_request(document)
    execution = start(aws, stack.tables_machine_arn, document, run_id)
    try:
        with progress(f"run {run_id}") as bar:

            def show(now: DeployedProgress) -> None:
                bar.show(0, text=now.line)

            execution = Follower(aws, execution).wait(show)
    except KeyboardInterrupt:
        line = f"stopped waiting; run {run_id} continues"
        raise Failure(
            line, EXIT_INTERRUPTED, f"its report will be in {request.state.uri}"
        ) from None
    return read_report(request.state, run_id, open_store()), execution


def _run_here(
    document: Mapping[str, Any], request: MaintenanceRequest, run_id: str, args: Args
) -> TablesReport:
    """Maintain the tables one after another; a stopped run's id resumes it."""
    environment = engine_environment(table_packages(_kinds(request)), args.endpoint_url)
    store, clock = S3Store(make_client(args.endpoint_url)), SystemClock()
    started_at = instant(clock.now())
    tables = _find(request, store)
    write_worklist(request, document, run_id, tables, store=store)
    with opened_log(args.log) as output, progress("maintaining tables", len(tables)) as bar:
        spark = LocalSpark(environment, output)
        for number, table in enumerate(tables):
            bar.show(number, len(tables), table.text)
            table_run = TableRun(run_id, table, request.state, store, clock)
            _maintain(table_run, request, environment["AWS_REGION"], spark, _shown(bar, number))
    return report_on(run_id, started_at, "", state=request.state, store=store)


def _shown(bar: Bar, number: int) -> Callable[[str], None]:
    return lambda line: bar.show(number, text=line)


def _maintain(
    run: TableRun,
    request: MaintenanceRequest,
    region: str,
    spark: LocalSpark,
    show: Callable[[str], None],
) -> None:
    """Maintain one table, and store its outcome; a failure ends no other table."""
    plan: Mapping[str, Any] | None = None
    failure: Mapping[str, str] | None = None
    try:
        plan, _ = run.plan(request, [WORKER, SPARK], prices_for(region))
        if plan["engine"] != NONE:
            plan = run.begin(
                plan,
                dry_run=request.dry_run,
                optimizers_on=lambda table: GlueTables().optimizers_on(table),
            )
        if plan["engine"] == WORKER:
            order = run.order(plan)
            assert order is not None  # noqa: S101 - stored with the plan
            carry_out(
                order,
                run.state,
                run.store,
                run.clock,
                say=lambda line: None,
                watch=lambda done, files: show(
                    f"{run.table.text}: {done:,} of {files:,} files read"
                ),
            )
        elif plan["engine"] != NONE:
            arguments = order_arguments(run.run_id, plan["order"]["uri"])
            # The job's own lines begin with the table.
            fault = spark.submit(arguments, show)
            failure = {"Error": "SparkFailed", "Cause": fault} if fault else None
    except Exception as error:
        failure = {"Error": type(error).__name__, "Cause": str(error)}
    run.end(plan, failure)


def _kinds(request: MaintenanceRequest) -> Iterable[TableAddress]:
    """Yield a table of each possible kind, because each needs other Spark jars."""
    yield from (parse_table(table) for table in request.tables)
    if request.glue_tables:
        yield TableAddress("glue", name=("any", "table"))
    if request.delta_prefixes:
        yield TableAddress("delta", request.delta_prefixes[0])


def _show_report(report: TablesReport) -> None:
    """Print every table, failed ones first, and the totals."""
    tables = sorted(report.tables, key=lambda one: _ORDER.get(one.status, 0))
    heads = ("Table", "Engine", "Status", "Files", "Into", "Bytes", "Expired", "Costs", "Seconds")
    print_table(f"Run {report.run_id}", heads, [_report_row(one) for one in tables[:_SHOWN_ROWS]])
    _show_more(len(tables), "more table")
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


def _report_row(one: Outcome) -> tuple[str, ...]:
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
