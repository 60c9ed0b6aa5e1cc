"""``compactor reconcile``: register by LIST what no event told of."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict

from compactor.errors import InvalidInput
from compactor.registry.streams import parse_streams, table_and_stream
from compactor.settings.settings import Settings
from compactor.whole.reconcile import Reconciled, Reconciliation, reconcile
from compactor_cli.commands import options
from compactor_cli.commands.deployment import add_stack, find_deployment
from compactor_cli.commands.store import open_store
from compactor_cli.console import counted, print_line, progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SOURCE, DEST and the fields of a run; or the streams of a stack."""
    options.add_places(parser, options.SOURCE, options.DESTINATION, optional=True)
    add_stack(parser)
    options.add_common(parser)
    options.add_fields(parser)


def run(args: argparse.Namespace) -> int:
    """List, compare, register, tell.

    Raises:
        InvalidInput: the input is at fault, or the stack has no streams.
    """
    chosen = _chosen(args)
    totals = Reconciled()
    told = []
    for settings in chosen:
        store = open_store(args.endpoint_url, settings.state.bucket)
        _, name = table_and_stream(settings)
        with progress(f"reconciling {name}"):
            found = reconcile(Reconciliation(settings, store, time.time()))
        totals.add(found)
        told.append({"stream": name, **asdict(found)})
        if not args.json:
            _show(name, found)
    if args.json:
        print(json.dumps({**asdict(totals), "streams": told}, indent=2))
    return 0


def _chosen(args: argparse.Namespace) -> Sequence[Settings]:
    if getattr(args, options.SOURCE) is not None:
        return [Settings.from_input({"listing": "events", **options.fields_from(args)})]
    outputs = find_deployment(args).stack.outputs
    if "Streams" not in outputs or "RegistryTable" not in outputs:
        accepted = "a stack that was deployed with ingest=events, or SOURCE and DEST"
        raise InvalidInput("--stack", args.stack, accepted)
    return [one.settings for one in parse_streams(outputs["Streams"], outputs["RegistryTable"])]


def _show(name: str, found: Reconciled) -> None:
    print_line(
        f"{name}: {counted(found.objects, 'object')} listed, {found.compacted:,} compacted,"
        f" {found.known:,} known, {found.younger:,} too young to tell"
    )
    print_line(f"registered, as no event had told of them: {counted(found.registered, 'object')}")
