"""``compactor table``: the table from which query engines read each record once."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

import click
import msgspec

from compactor.catalogs.readers import open_readers
from compactor.clock import SystemClock
from compactor.discovery.parallel import Parallel
from compactor.discovery.search import Search, dates_of
from compactor.errors import InvalidInput
from compactor.log.identity import read_identity
from compactor.log.log_reader import each_log
from compactor.ports import ObjectStore
from compactor.readers.expired_lists import drop_old_lists
from compactor.readers.outcome import Outcome, Outcomes
from compactor.readers.reader_status import Showing, showing
from compactor.readers.refresh import Refreshing
from compactor.readers.refresh import refresh as refresh_partitions
from compactor.settings.reader_table import READER_TABLE_ACCEPTED
from compactor.settings.settings import Settings
from compactor.sinks.table_log import TableLog, table_log_there
from compactor.sinks.unnamed_outputs import leftovers
from compactor.sizes import plural
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Option, action
from compactor_cli.console import print_line, print_table, progress
from compactor_cli.failures import EXIT_FAILED
from compactor_cli.store import open_store

_THREADS = 16
_BATCH = 100
_SHOWN_ROWS = 50
_PARAMETERS: list[click.Parameter] = [
    *given.places("s3_source_uri", "s3_destination_uri"),
    Option(
        "--partition",
        multiple=True,
        metavar="PATH",
        help="only this partition, by its path below SOURCE, such as 2026/01/31/; may be given"
        " several times (by default every one with commits, and those of the window)",
    ),
    *given.COMMON,
    *given.fields(),
]


@action(_PARAMETERS)
def show(args: Args) -> int:
    """Show what readers see of each partition; without a readers' table, the runs' own table.

    Raises:
        InvalidInput: the input is invalid.
    """
    settings, store = _begin(args)
    if settings.reader_table is None:
        return _show_sink(settings, store, as_json=args.json)
    catalog, clock = open_readers(settings.reader_table), SystemClock()
    partitions = (settings.partition_at(path) for path in _paths(args, settings, store))
    shown = [showing(catalog, settings, partition, store, clock) for partition in partitions]
    if args.json:
        documents = [asdict(one) for one in shown]
        print(json.dumps({"table": settings.reader_table, "partitions": documents}))
        return 0
    heads = ("Partition", "Shows", "For", "Objects", "Invisible", "Planned")
    print_table(settings.reader_table, heads, [_row(one) for one in shown[:_SHOWN_ROWS]])
    if len(shown) > _SHOWN_ROWS:
        print_line(f"and {len(shown) - _SHOWN_ROWS:,} more; --json lists all")
    return 0


def _show_sink(settings: Settings, store: ObjectStore, *, as_json: bool) -> int:
    """Show the table that runs add outputs to, from its log; the table itself is not read."""
    identity = read_identity(settings, store)
    if identity is None or not table_log_there(store, settings):
        accepted = f"--reader-table {READER_TABLE_ACCEPTED}; no run added outputs to a table yet"
        raise InvalidInput("reader_table", None, accepted)
    state = TableLog(store, settings, identity.log_id).load()
    with progress("looking for outputs"):
        waiting = sum(len(some.outputs) for some in leftovers(state, settings, store))
    set_aside = [
        {"path": path, **msgspec.structs.asdict(output)}
        for path, reached in sorted(state.through.items())
        for output in reached.aside
    ]
    if as_json:
        counts = {"table": state.table, "outputs": state.outputs, "waiting": waiting}
        print(json.dumps({**counts, "set_aside": set_aside}))
        return 0
    print_line(f"{state.table}: {plural(state.outputs, 'output')} added")
    print_line(f"{plural(waiting, 'output')} waiting for the next run")
    if set_aside:
        print_line(
            f"{plural(len(set_aside), 'output')} set aside; their sources are kept, and a run"
            " retries them when the table or the settings change"
        )
    for at, line in sorted(state.aside_lines.items()):
        print_line(f"  {at[0] or '(root)'}: {line}")
    return 0


def _row(one: Showing) -> tuple[str, ...]:
    age = "" if one.seconds is None else f"{one.seconds:,.0f} s"
    objects = f"{one.objects:,}" if one.shows == "listed" else ""
    return one.path or "(root)", one.shows or "-", age, objects, f"{one.invisible:,}", one.wanted


@action(
    _PARAMETERS,
    Option(
        "--delete-old-lists",
        is_flag=True,
        help="also delete lists that no partition has shown for an hour",
    ),
)
def refresh(args: Args) -> int:
    """Let readers see each record once, as it is now.

    Raises:
        InvalidInput: the input is invalid.
    """
    settings, store = _begin(args)
    if settings.reader_table is None:
        raise InvalidInput("reader_table", None, f"--reader-table {READER_TABLE_ACCEPTED}")
    work = Refreshing(settings, store, SystemClock(), open_readers(settings.reader_table))
    paths = _paths(args, settings, store)
    outcomes: list[Outcome] = []
    with progress("refreshing", len(paths)) as bar:
        for start in range(0, len(paths), _BATCH):
            outcomes += refresh_partitions(paths[start : start + _BATCH], work)
            bar.show(len(outcomes), len(paths))
    total = Outcomes()
    for outcome in outcomes:
        total.add(outcome)
    old_lists = _delete_old_lists(work, paths) if args.delete_old_lists else None
    if args.json:
        document: dict[str, Any] = {"table": settings.reader_table, "old_lists": old_lists}
        print(json.dumps({**document, "partitions": list(map(asdict, outcomes))}))
    else:
        print_line(total.line)
        if old_lists is not None:
            deleted = plural(old_lists["deleted"], "old list")
            print_line(f"{deleted} deleted; {old_lists['kept']:,} kept for now")
        for line in (*total.warnings, *(old_lists["faults"] if old_lists else ())):
            print_line(f"warning: {line}")
    return EXIT_FAILED if total.faults or (old_lists and old_lists["faults"]) else 0


def _delete_old_lists(work: Refreshing, paths: Sequence[str]) -> dict[str, Any]:
    """Delete the lists that no partition uses; returns how many, and what went wrong."""
    deleted, kept, faults = 0, 0, []
    with progress("deleting old lists", len(paths)) as bar:
        for path in paths:
            partition = work.settings.partition_at(path)
            lists = drop_old_lists(partition, work.settings, work.catalog, work.store, work.clock)
            deleted, kept = deleted + lists.lists, kept + lists.kept
            faults += [f"{path or '(root)'}: {lists.fault}"] if lists.fault else []
            bar.advance()
    return {"deleted": deleted, "kept": kept, "faults": faults}


def _begin(args: Args) -> tuple[Settings, ObjectStore]:
    settings = Settings.from_input(given.fields_from(args))
    return settings, open_store(args.endpoint_url, settings.state.bucket)


def _paths(args: Args, settings: Settings, store: ObjectStore) -> Sequence[str]:
    """Return the given partitions; else those with a log, or in the window."""
    if args.partition:
        return [f"{path.strip('/')}/" for path in args.partition]
    with progress("discovering"), Parallel(_THREADS) as parallel:
        search = Search(settings, store, parallel)
        there = (one.path for one in search.partitions(dates_of(settings, time.time())))
        logs = (log.path for log in each_log(settings.state, store) if log.entries)
        return sorted(set(chain(logs, there)))
