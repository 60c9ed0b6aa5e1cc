"""``compactor adopt``: rebuilds a lost commit log, as far as outputs and sources prove it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from math import inf

from compactor.clock import SystemClock, new_run_id
from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.runs.partition_run import PartitionRun
from compactor.s3.store import S3Store
from compactor.settings.settings import Settings
from compactor.sinks.table_log import table_log_there
from compactor.sizes import plural
from compactor.verification.adopt import Adoption, adopt, begin, find_outputs
from compactor_cli.commands import options
from compactor_cli.commands.asking import is_agreed, require_answer
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_error, print_line, print_table, progress

_SHOWN_ROWS = 50


class _NoDeadline:
    def remaining_seconds(self) -> float:
        return inf


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add SOURCE, DEST, the settings that made the outputs, and confirmation options."""
    options.add_places(parser, options.SOURCE, options.DESTINATION)
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="only show what can be proven; read-only"
    )
    parser.add_argument(
        "-y", "--yes", action="store_true", help="write without confirmation; required in scripts"
    )
    options.add_common(parser)
    options.add_fields(parser)


def run(args: argparse.Namespace) -> int:
    """Find outputs without a commit, prove their content, confirm, and write their entries.

    Raises:
        InvalidInput: the input is invalid, or there is no terminal to confirm on.
        Failure: some outputs could not be proven; each was printed in one line.
    """
    require_answer(args, dry_run=args.dry_run)
    settings = Settings.from_input(options.fields_from(args))
    if settings.columnar:
        name = "output_format" if settings.converts else "formats"
        raise InvalidInput(name, "parquet", "outputs of bytes; Parquet cannot be rebuilt here")
    store = open_store(args.endpoint_url, settings.state.bucket)
    if table_log_there(store, settings):
        accepted = (
            "a destination without a table, as the table's maintenance deletes outputs: restore the"
            " state from a backup or from earlier object versions"
        )
        raise InvalidInput("s3_destination_uri", settings.s3_destination_uri, accepted)
    with progress("looking for outputs"):
        found = find_outputs(settings, store)
    decided = _adopt(settings, store, [*found], dry_run=True)
    if not args.json:
        _show(decided)
    done: list[Adoption] | None = None
    if not args.dry_run and found:
        if not is_agreed(args, "write log entries for these outputs?"):
            raise Failure("nothing was written")
        begin(settings, store, found)
        done = _adopt(settings, store, [*found], dry_run=False)
    if args.json:
        print(json.dumps(_document(decided, done), indent=2))
    elif done is not None:
        print_line(f"written: {_totals(done)}")
    _end(decided if done is None else done)
    return 0


def _adopt(
    settings: Settings, store: S3Store, paths: Sequence[str], *, dry_run: bool
) -> list[Adoption]:
    root, run_id = settings.source.root, new_run_id()
    done = []
    with progress("proving" if dry_run else "writing", len(paths)) as bar:
        for path in sorted(paths):
            partition = Partition(root.bucket, root.prefix + path, path)
            run = PartitionRun(partition, settings, store, SystemClock(), _NoDeadline(), run_id)
            done.append(adopt(run, dry_run=dry_run))
            bar.advance()
    return [one for one in done if one.outputs or one.error]


def _show(decided: Sequence[Adoption]) -> None:
    for one in decided:
        for line in _faults(one):
            print_error(" ".join(line.split()))
    if not decided:
        print_line("every output is named by a commit")
        return
    rows = [(one.path or "(root)", *_figures([one])) for one in decided[:_SHOWN_ROWS]]
    rows.append((plural(len(decided), "partition"), *_figures(decided)))
    heads = ("Partition", "Outputs", "Proven", "Sources", "Older", "Left")
    print_table("Outputs without a commit", heads, rows)
    if len(decided) > _SHOWN_ROWS:
        more = plural(len(decided) - _SHOWN_ROWS, "more partition")
        print_line(f"and {more}; --json lists all")
    print_line(
        "proven: rebuilt from its sources, byte for byte. older: than every source that is left, so"
        " it contains none of them; nothing can be restored from it. left: not changed"
    )


def _figures(decided: Sequence[Adoption]) -> tuple[str, ...]:
    return (
        f"{sum(one.outputs for one in decided):,}",
        f"{sum(len(one.proven) for one in decided):,}",
        f"{sum(one.sources for one in decided):,}",
        f"{sum(len(one.older) for one in decided):,}",
        f"{sum(len(one.left) + bool(one.error) for one in decided):,}",
    )


def _faults(one: Adoption) -> list[str]:
    return [*one.left, *([f"{one.path or '(root)'}: {one.error}"] if one.error else [])]


def _totals(done: Sequence[Adoption]) -> str:
    proven, older = sum(len(one.proven) for one in done), sum(len(one.older) for one in done)
    sources = sum(one.sources for one in done)
    return (
        f"{plural(proven, 'output')} of {plural(sources, 'source')}, and"
        f" {plural(older, 'output')} without a manifest"
    )


def _document(decided: Sequence[Adoption], done: Sequence[Adoption] | None) -> dict[str, object]:
    return {
        "partitions": [asdict(one) for one in decided],
        "done": None if done is None else [asdict(one) for one in done],
    }


def _end(adopted: Sequence[Adoption]) -> None:
    """Check that every output could be proven.

    Raises:
        Failure: some could not.
    """
    faults = sum(len(_faults(one)) for one in adopted)
    if faults:
        raise Failure(
            f"IntegrityError: {plural(faults, 'finding')}",
            advice="move the outputs that are left elsewhere, or delete those whose sources all"
            " exist, and adopt again",
        )
