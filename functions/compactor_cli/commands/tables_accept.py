"""``compactor tables accept``: resumes with a table that was rolled back or recreated."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from compactor.catalogs.opening import open_catalog
from compactor.clock import NoDeadline, SystemClock, new_run_id
from compactor.errors import InvalidInput
from compactor.log.identity import read_identity
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sinks.accept import Look, accept, look_at
from compactor.sinks.table_entries import NamedOutput
from compactor.sinks.table_log import TableLog
from compactor.sinks.table_proof import as_begun
from compactor.sinks.table_publisher import Publishing
from compactor.sizes import plural
from compactor_cli.commands import options
from compactor_cli.commands.asking import is_agreed, require_answer
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_line, progress

_SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE, DEST, what to do with missing outputs, and confirmation."""
    options.add_places(parser, options.SOURCE, options.DESTINATION)
    way = parser.add_mutually_exclusive_group()
    way.add_argument(
        "--add-missing",
        action="store_true",
        help="add the outputs that the table lacks (without this or --as-is, they are only shown)",
    )
    way.add_argument(
        "--as-is", action="store_true", help="accept the table as it is, without these outputs"
    )
    parser.add_argument(
        "--release-sources",
        action="store_true",
        help="let clean-up delete the sources of outputs that the table lacks (by default they are"
        " kept)",
    )
    parser.add_argument(
        "-y", "--yes", action="store_true", help="accept without confirmation; required in scripts"
    )
    options.add_common(parser)
    options.add_fields(parser)


def run(args: argparse.Namespace) -> int:
    """Compare the table with its log, show the differences, confirm, and accept.

    Raises:
        InvalidInput: the input is invalid, or there is no terminal to confirm on.
        Failure: the answer was no.
    """
    chosen = args.add_missing or args.as_is
    require_answer(args, dry_run=not chosen)
    work = _work(args)
    with progress("comparing the table with its log"):
        look = look_at(work)
    if not args.json:
        _show(work.catalog.address, look)
    done = None
    if chosen and _changes_anything(args, look):
        if not is_agreed(args, "Accept the table?"):
            raise Failure("nothing was changed")
        done = accept(work, look, adds=args.add_missing, releases=args.release_sources)
    if args.json:
        print(json.dumps(_document(work.catalog.address, look, done), indent=2))
    elif done is not None:
        _show_accepted(done, releases=args.release_sources)
    return 0


def _changes_anything(args: argparse.Namespace, look: Look) -> bool:
    if look.is_refused or (args.add_missing and look.absent):
        return True
    return bool(look.log.missing) and args.release_sources != look.log.releases_sources


def _work(args: argparse.Namespace) -> Publishing:
    settings = Settings.from_input(options.fields_from(args))
    store: ObjectStore = open_store(args.endpoint_url, settings.state.bucket)
    identity = read_identity(settings, store)
    log = TableLog(store, settings, identity.log_id if identity else "").load()
    if not log.last:
        accepted = "a destination whose outputs were added to a table"
        raise InvalidInput("s3_destination_uri", settings.s3_destination_uri, accepted)
    settings = as_begun(settings, log)
    catalog = open_catalog(settings, store)
    return Publishing(settings, store, catalog, SystemClock(), NoDeadline(), new_run_id())


def _show(address: str, look: Look) -> None:
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
    _show_outputs(
        "missing or rewritten (its history no longer shows which): not added",
        look.doubtful,
    )
    if look.others:
        print_line(
            f"{plural(look.others, 'data file')} with {plural(look.other_rows, 'row')} are not"
            " outputs: the table's maintenance or another writer wrote them; if they contain rows"
            " of missing outputs, adding those outputs duplicates the rows"
        )


def _show_outputs(what: str, outputs: Sequence[NamedOutput]) -> None:
    if not outputs:
        return
    rows = sum(one.rows or 0 for one in outputs)
    print_line(f"{plural(len(outputs), 'output')}, {plural(rows, 'row')}: {what}")
    for one in outputs[:_SHOWN]:
        print_line(f"  s3://{one.bucket}/{one.key}")
    if len(outputs) > _SHOWN:
        print_line(f"  and {len(outputs) - _SHOWN:,} more; --json lists all")


def _show_accepted(done: Look, *, releases: bool) -> None:
    print_line(f"accepted: entry {done.log.accepted} of the table log")
    lacking = len(done.lacking)
    if lacking:
        kept = "may be deleted by clean-up" if releases else "are kept by clean-up"
        print_line(f"the sources of the {plural(lacking, 'output')} that it lacks {kept}")


def _document(address: str, look: Look, done: Look | None) -> dict[str, Any]:
    document = {
        "table": address,
        "fault": look.fault or None,
        "outputs": len(look.outputs),
        "present": look.present,
        "rewritten_or_deleted": look.passed,
        "other_files": look.others,
        "other_rows": look.other_rows,
        "accepted": None if done is None else done.log.accepted,
    }
    lists = {
        "waiting": look.waiting,
        "missing": look.absent,
        "gone": look.gone,
        "undecided": look.doubtful,
    }
    return document | {
        name: [f"s3://{one.bucket}/{one.key}" for one in outputs] for name, outputs in lists.items()
    }
