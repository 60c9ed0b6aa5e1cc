"""``compactor table``: manages the table that query engines read. Each action is a function."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain

import msgspec

from compactor import layout
from compactor.catalogs.readers import open_readers
from compactor.clock import SystemClock
from compactor.discovery.parallel import Parallel
from compactor.discovery.search import Search, dates_of
from compactor.errors import InvalidInput
from compactor.log.identity import read_identity
from compactor.log.log_reader import each_log
from compactor.ports import ObjectStore
from compactor.readers.expired_lists import OldLists, drop_old_lists
from compactor.readers.outcome import Outcome, Outcomes
from compactor.readers.reader_status import Showing, showing
from compactor.readers.refresh import Refreshing, refresh
from compactor.settings.reader_table import READER_TABLE_ACCEPTED
from compactor.settings.settings import Settings
from compactor.sinks.table_log import TableLog, table_log_there
from compactor.sinks.unnamed_outputs import leftovers
from compactor.sizes import plural
from compactor_cli.commands import options
from compactor_cli.commands.failures import EXIT_FAILED
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_line, print_table, progress

_THREADS = 16
_BATCH = 100
_SHOWN_ROWS = 50


@dataclass(frozen=True, slots=True)
class Action:
    """One action; ``run`` takes the arguments and returns the exit code."""

    summary: str
    run: Callable[[argparse.Namespace], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions, each with SOURCE, DEST and the fields of a run."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, action in ACTIONS.items():
        description = action.summary[0].upper() + action.summary[1:] + "."
        one = actions.add_parser(name, help=action.summary, description=description)
        options.add_places(one, options.SOURCE, options.DESTINATION)
        one.add_argument(
            "--partition",
            action="append",
            metavar="PATH",
            help="only this partition, by its path below SOURCE, such as 2026/01/31/; may be given"
            " several times (by default every one with commits, and those of the window)",
        )
        if name == "expire":
            one.add_argument(
                "-y", "--yes", action="store_true", help="delete them; by default only count them"
            )
        options.add_common(one)
        options.add_fields(one)


def run(args: argparse.Namespace) -> int:
    """Carry out the requested action; returns the exit code.

    Raises:
        InvalidInput: the input is invalid.
    """
    return ACTIONS[args.action].run(args)


def _refresh(args: argparse.Namespace) -> int:
    settings, store = _begin(args)
    work = Refreshing(settings, store, SystemClock(), open_readers(_table(settings)))
    paths = _paths(args, settings, store)
    outcomes: list[Outcome] = []
    with progress("refreshing", len(paths)) as bar:
        for start in range(0, len(paths), _BATCH):
            some = refresh(paths[start : start + _BATCH], work)
            outcomes += some
            bar.advance(len(some))
    total = Outcomes()
    for one in outcomes:
        total.add(one)
    if args.json:
        print(
            json.dumps({"table": settings.reader_table, "partitions": list(map(asdict, outcomes))})
        )
    else:
        print_line(total.line)
        for line in total.warnings:
            print_line(f"warning: {line}")
    return EXIT_FAILED if total.faults else 0


def _show(args: argparse.Namespace) -> int:
    settings, store = _begin(args)
    if settings.reader_table is None:
        return _show_sink(settings, store, as_json=args.json)
    catalog, clock = open_readers(_table(settings)), SystemClock()
    found = []
    for path in _paths(args, settings, store):
        partition = layout.partition_at(settings, path)
        found.append(showing(catalog, settings, partition, store, clock))
    if args.json:
        _print_json(settings, found)
        return 0
    heads = ("Partition", "Shows", "For", "Objects", "Invisible", "Planned")
    print_table(_table(settings), heads, [_row(one) for one in found[:_SHOWN_ROWS]])
    if len(found) > _SHOWN_ROWS:
        print_line(f"and {len(found) - _SHOWN_ROWS:,} more; --json lists all")
    return 0


def _show_sink(settings: Settings, store: ObjectStore, *, as_json: bool) -> int:
    """Show the table that runs add outputs to, from its log; the table itself is not read."""
    identity = read_identity(settings, store)
    if identity is None or not table_log_there(store, settings):
        accepted = f"--reader-table {READER_TABLE_ACCEPTED}; no run added outputs to a table yet"
        raise InvalidInput("reader_table", None, accepted)
    state = TableLog(store, settings, identity.log_id).load()
    with progress("looking for outputs"):
        waiting = sum(len(one.outputs) for one in leftovers(state, settings, store))
    set_aside = [
        {"path": path, **msgspec.structs.asdict(one)}
        for path, reached in sorted(state.through.items())
        for one in reached.aside
    ]
    if as_json:
        known = {"table": state.table, "outputs": state.outputs}
        print(json.dumps({**known, "waiting": waiting, "set_aside": set_aside}))
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


def _print_json(settings: Settings, partitions: Sequence[Outcome | Showing | OldLists]) -> None:
    documents = [asdict(one) for one in partitions]
    print(json.dumps({"table": settings.reader_table, "partitions": documents}))


def _row(one: Showing) -> tuple[str, ...]:
    age = "" if one.seconds is None else f"{one.seconds:,.0f} s"
    objects = f"{one.objects:,}" if one.shows == "listed" else ""
    return one.path or "(root)", one.shows or "-", age, objects, f"{one.invisible:,}", one.wanted


def _expire(args: argparse.Namespace) -> int:
    settings, store = _begin(args)
    catalog, clock = open_readers(_table(settings)), SystemClock()
    paths = _paths(args, settings, store)
    found: list[OldLists] = []
    with progress("expiring", len(paths)) as bar:
        for path in paths:
            partition = layout.partition_at(settings, path)
            found.append(
                drop_old_lists(partition, settings, catalog, store, clock, deletes=args.yes)
            )
            bar.advance()
    faults = [one for one in found if one.fault]
    if args.json:
        _print_json(settings, [one for one in found if one != OldLists(one.path)])
        return EXIT_FAILED if faults else 0
    done = "deleted" if args.yes else "would be deleted (--yes deletes them)"
    later = sum(one.kept for one in found)
    print_line(
        f"{plural(sum(one.lists for one in found), 'unused list')} {done}; {later:,} kept for now"
    )
    for one in faults:
        print_line(f"warning: {one.path or '(root)'}: {one.fault}")
    return EXIT_FAILED if faults else 0


def _begin(args: argparse.Namespace) -> tuple[Settings, ObjectStore]:
    given = options.fields_from(args)
    if args.action in ("refresh", "expire") and "reader_table" not in given:
        raise InvalidInput("reader_table", None, f"--reader-table {READER_TABLE_ACCEPTED}")
    settings = Settings.from_input(given)
    return settings, open_store(args.endpoint_url, settings.state.bucket)


def _table(settings: Settings) -> str:
    return settings.reader_table or ""


def _paths(args: argparse.Namespace, settings: Settings, store: ObjectStore) -> Sequence[str]:
    """Return the given partitions; else those with a log, or in the window."""
    if args.partition:
        return [f"{path.strip('/')}/" for path in args.partition]
    with progress("discovering"), Parallel(_THREADS) as parallel:
        search = Search(settings, store, parallel)
        there = (one.path for one in search.partitions(dates_of(settings, time.time())))
        logs = (log.path for log in each_log(settings.state, store) if log.entries)
        return sorted(set(chain(logs, there)))


ACTIONS: Mapping[str, Action] = {
    "show": Action(
        "show what readers see of each partition; without --reader-table"
        " which outputs the run's own table has, and which do not fit",
        _show,
    ),
    "refresh": Action("let readers see each record once, as it is now", _refresh),
    "expire": Action("delete lists that no partition uses", _expire),
}
