"""``compactor repair``: what no run does by itself, for a registry of events and for a table."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from threading import Lock
from typing import Any

from compactor.catalogs.opening import open_catalog
from compactor.clock import NoDeadline, SystemClock, new_run_id
from compactor.errors import InvalidInput
from compactor.log.identity import read_identity
from compactor.orchestration.reconcile import Reconciled, Reconciliation, reconcile
from compactor.registry.streams import parse_streams, table_and_stream
from compactor.settings.settings import Settings
from compactor.sinks.accept import Look, accept, look_at
from compactor.sinks.table_entries import NamedOutput
from compactor.sinks.table_log import TableLog
from compactor.sinks.table_proof import as_begun
from compactor.sinks.table_publisher import Publishing
from compactor.sizes import plural
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Number, Option, action
from compactor_cli.commands.runs import deployed_stack
from compactor_cli.console import Bar, is_agreed, print_line, progress, require_answer
from compactor_cli.failures import EXIT_TIME_RAN_OUT, Failure
from compactor_cli.store import open_store

_SHOWN = 10

# events


@action(
    given.places("s3_source_uri", "s3_destination_uri"),
    Option(
        "--start-after",
        default="",
        metavar="KEY",
        help="compare only keys after this one, where an earlier call stopped",
    ),
    Option(
        "--time-limit",
        type=Number(0, 10_000_000, min_open=True),
        metavar="SECONDS",
        help="stop after this time, print the key to resume after, and end with exit code 3",
    ),
    given.STACK,
    given.COMMON,
    given.fields(
        "date_format", "depth", "include", "exclude", "listing", "settle_seconds", "s3_state_uri"
    ),
)
def events(args: Args) -> int:
    """List, compare, register objects without an event, and print the counts.

    Raises:
        InvalidInput: the input is invalid, or the stack has no streams.
    """
    ends_at = None if args.time_limit is None else time.monotonic() + args.time_limit
    totals, streams = Reconciled(), []
    for settings in _streams(args):
        _, name = table_and_stream(settings)
        store = open_store(args.endpoint_url, settings.state.bucket)
        with progress(f"comparing {name}") as bar:
            reconciled = reconcile(
                Reconciliation(
                    settings,
                    store,
                    time.time(),
                    stop=lambda: ends_at is not None and time.monotonic() > ends_at,
                    start_after=args.start_after,
                    on_compared=_counter(bar),
                )
            )
        totals.add(reconciled)
        streams.append({"stream": name, **asdict(reconciled)})
        if not args.json:
            _show_stream(name, reconciled)
    if args.json:
        print(json.dumps({**asdict(totals), "streams": streams}, indent=2))
    return 0 if totals.complete else EXIT_TIME_RAN_OUT


def _counter(bar: Bar) -> Callable[[int], None]:
    """Return a function that shows how many objects were compared, called by several threads."""
    lock, objects = Lock(), 0

    def add(count: int) -> None:
        nonlocal objects
        with lock:
            objects += count
            bar.show(objects, text=plural(objects, "object"))

    return add


def _streams(args: Args) -> Sequence[Settings]:
    if args.s3_source_uri is not None:
        return [Settings.from_input(given.fields_from(args))]
    _, stack = deployed_stack(args)
    if "Streams" not in stack.outputs or "RegistryTable" not in stack.outputs:
        accepted = "a stack that was deployed with ingest=events, or SOURCE and DEST"
        raise InvalidInput("--stack", stack.name, accepted)
    streams = parse_streams(stack.outputs["Streams"], stack.outputs["RegistryTable"])
    for name in ("start_after", "time_limit"):
        value = getattr(args, name)
        if value and len(streams) > 1:
            accepted = "SOURCE and DEST of one stream with it, as the stack has several"
            raise InvalidInput(f"--{name.replace('_', '-')}", value, accepted)
    return [stream.settings for stream in streams]


def _show_stream(name: str, reconciled: Reconciled) -> None:
    print_line(
        f"{name}: {plural(reconciled.objects, 'object')} listed,"
        f" {reconciled.compacted:,} compacted, {reconciled.known:,} known,"
        f" {reconciled.younger:,} too recent to decide"
    )
    print_line(f"registered without an event: {plural(reconciled.registered, 'object')}")
    if not reconciled.complete:
        print_line("time limit reached; resume with")
        print_line(f"  --start-after {shlex.quote(reconciled.start_after)}")


# table


@action(
    given.places("s3_source_uri", "s3_destination_uri"),
    Option(
        "--add-missing",
        is_flag=True,
        help="add the outputs that the table lacks (without this or --as-is, they are only shown)",
    ),
    Option("--as-is", is_flag=True, help="accept the table as it is, without these outputs"),
    Option(
        "--release-sources",
        is_flag=True,
        help="let clean-up delete the sources of outputs that the table lacks (by default they are"
        " kept)",
    ),
    given.YES,
    given.COMMON,
    given.fields("table", "s3_state_uri"),
)
def table(args: Args) -> int:
    """Compare the table with its log, show the differences, confirm, and accept.

    Raises:
        InvalidInput: the input is invalid, or there is no terminal to confirm on.
        Failure: the answer was no.
    """
    if args.add_missing and args.as_is:
        raise InvalidInput("--as-is", True, "not --add-missing with it")
    chosen = args.add_missing or args.as_is
    require_answer(args, dry_run=not chosen)
    work = _work(args)
    with progress("comparing the table with its log"):
        look = look_at(work)
    if not args.json:
        _show_look(work.catalog.address, look)
    accepted = None
    if chosen and _changes_anything(args, look):
        if not is_agreed(args, "Accept the table?"):
            raise Failure("nothing was changed")
        accepted = accept(work, look, adds=args.add_missing, releases=args.release_sources)
    if args.json:
        print(json.dumps(_look_document(work.catalog.address, look, accepted), indent=2))
    elif accepted is not None:
        _show_accepted(accepted, releases=args.release_sources)
    return 0


def _changes_anything(args: Args, look: Look) -> bool:
    if look.is_refused or (args.add_missing and look.absent):
        return True
    return bool(look.log.missing) and args.release_sources != look.log.releases_sources


def _work(args: Args) -> Publishing:
    settings = Settings.from_input(given.fields_from(args))
    store = open_store(args.endpoint_url, settings.state.bucket)
    identity = read_identity(settings, store)
    log = TableLog(store, settings, identity.log_id if identity else "").load()
    if not log.last:
        accepted = "a destination whose outputs were added to a table"
        raise InvalidInput("s3_destination_uri", settings.s3_destination_uri, accepted)
    settings = as_begun(settings, log)
    catalog = open_catalog(settings, store)
    return Publishing(settings, store, catalog, SystemClock(), NoDeadline(), new_run_id())


def _show_look(address: str, look: Look) -> None:
    if look.fault:
        print_line(f"{address} {look.fault}")
    elif look.is_interrupted:
        print_line(f"{address}: an earlier acceptance did not finish")
    elif look.log.missing:
        print_line(f"{address} was accepted without some outputs; runs continue with it")
    else:
        print_line(f"{address} matches its log; there is nothing to accept")
    print_line(
        f"of {plural(len(look.outputs), 'output')}, {look.present:,} are in the table, and it has"
        f" rewritten or deleted {look.passed:,}"
    )
    _show_outputs("not in it yet; the next run adds them", look.waiting)
    _show_outputs("missing", look.absent)
    _show_outputs("missing, and no longer in the destination: cannot be added", look.gone)
    unsure = "missing or rewritten (its history no longer shows which): not added"
    _show_outputs(unsure, look.doubtful)
    if look.others:
        print_line(
            f"{plural(look.others, 'data file')} with {plural(look.other_rows, 'row')} are not"
            " outputs: the table's maintenance or another writer wrote them; if they contain rows"
            " of missing outputs, adding those outputs duplicates the rows"
        )


def _show_outputs(what: str, outputs: Sequence[NamedOutput]) -> None:
    if not outputs:
        return
    rows = sum(output.rows or 0 for output in outputs)
    print_line(f"{plural(len(outputs), 'output')}, {plural(rows, 'row')}: {what}")
    for output in outputs[:_SHOWN]:
        print_line(f"  s3://{output.bucket}/{output.key}")
    if len(outputs) > _SHOWN:
        print_line(f"  and {len(outputs) - _SHOWN:,} more; --json lists all")


def _show_accepted(accepted: Look, *, releases: bool) -> None:
    print_line(f"accepted: entry {accepted.log.accepted} of the table log")
    if lacking := len(accepted.lacking):
        fate = "may be deleted by clean-up" if releases else "are kept by clean-up"
        print_line(f"the sources of the {plural(lacking, 'output')} that it lacks {fate}")


def _look_document(address: str, look: Look, accepted: Look | None) -> dict[str, Any]:
    outputs = {
        "waiting": look.waiting,
        "missing": look.absent,
        "gone": look.gone,
        "undecided": look.doubtful,
    }
    return {
        "table": address,
        "fault": look.fault or None,
        "outputs": len(look.outputs),
        "present": look.present,
        "rewritten_or_deleted": look.passed,
        "other_files": look.others,
        "other_rows": look.other_rows,
        "accepted": None if accepted is None else accepted.log.accepted,
        **{
            name: [f"s3://{output.bucket}/{output.key}" for output in named]
            for name, named in outputs.items()
        },
    }
