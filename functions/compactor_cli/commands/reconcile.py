"""``compactor reconcile``: registers objects without an event, found by LIST."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from threading import Lock

from compactor.errors import InvalidInput
from compactor.orchestration.reconcile import Reconciled, Reconciliation, reconcile
from compactor.registry.streams import parse_streams, table_and_stream
from compactor.settings.settings import Settings
from compactor.sizes import plural
from compactor_cli.commands import options
from compactor_cli.commands.deployment import add_stack, find_deployment
from compactor_cli.commands.failures import EXIT_TIME_RAN_OUT
from compactor_cli.commands.store import open_store
from compactor_cli.console import Bar, print_line, progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE, DEST and the fields of a run, or the stack."""
    options.add_places(parser, options.SOURCE, options.DESTINATION, optional=True)
    parser.add_argument(
        "--start-after",
        default="",
        metavar="KEY",
        help="compare only keys after this one, where an earlier call stopped",
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="stop after this time, print the key to resume after, and end with exit code 3"
        " (by default no limit)",
    )
    add_stack(parser)
    options.add_common(parser)
    options.add_fields(parser)


def run(args: argparse.Namespace) -> int:
    """List, compare, register, and print the counts.

    Raises:
        InvalidInput: the input is invalid, or the stack has no streams.
    """
    chosen = _chosen(args)
    stop = _stop(args)
    totals = Reconciled()
    streams = []
    for settings in chosen:
        _, name = table_and_stream(settings)
        found = _reconciled(args, settings, stop)
        totals.add(found)
        streams.append({"stream": name, **asdict(found)})
        if not args.json:
            _show(name, found)
    if args.json:
        print(json.dumps({**asdict(totals), "streams": streams}, indent=2))
    return 0 if totals.complete else EXIT_TIME_RAN_OUT


def _reconciled(
    args: argparse.Namespace, settings: Settings, stop: Callable[[], bool]
) -> Reconciled:
    store = open_store(args.endpoint_url, settings.state.bucket)
    _, name = table_and_stream(settings)
    with progress(f"reconciling {name}") as bar:
        return reconcile(
            Reconciliation(
                settings,
                store,
                time.time(),
                stop=stop,
                start_after=args.start_after,
                on_compared=_Counter(bar).add,
            )
        )


class _Counter:
    """Shows how many objects were compared; thread-safe."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._objects = 0
        self._lock = Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self._objects += count
            self._bar.show(self._objects, text=plural(self._objects, "object"))


def _stop(args: argparse.Namespace) -> Callable[[], bool]:
    limit = args.time_limit
    if limit is None:
        return lambda: False
    if not 0 < limit < math.inf:
        raise InvalidInput("--time-limit", limit, "a number of seconds above 0")
    end = time.monotonic() + limit
    return lambda: time.monotonic() > end


def _chosen(args: argparse.Namespace) -> Sequence[Settings]:
    if getattr(args, options.SOURCE) is not None:
        return [Settings.from_input(options.fields_from(args))]
    outputs = find_deployment(args).stack.outputs
    if "Streams" not in outputs or "RegistryTable" not in outputs:
        accepted = "a stack that was deployed with ingest=events, or SOURCE and DEST"
        raise InvalidInput("--stack", args.stack, accepted)
    streams = parse_streams(outputs["Streams"], outputs["RegistryTable"])
    for name in ("start_after", "time_limit"):
        value = getattr(args, name)
        if value and len(streams) > 1:
            accepted = "SOURCE and DEST of one stream with it, as the stack has several"
            raise InvalidInput(f"--{name.replace('_', '-')}", value, accepted)
    return [one.settings for one in streams]


def _show(name: str, found: Reconciled) -> None:
    print_line(
        f"{name}: {plural(found.objects, 'object')} listed, {found.compacted:,} compacted,"
        f" {found.known:,} known, {found.younger:,} too recent to decide"
    )
    print_line(f"registered without an event: {plural(found.registered, 'object')}")
    if not found.complete:
        print_line("time limit reached; resume with")
        print_line(f"  --start-after {shlex.quote(found.start_after)}")
