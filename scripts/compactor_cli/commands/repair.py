"""``compactor repair``: what the version before lost or glued, built again or given back."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from compactor.clock import SystemClock
from compactor.errors import InvalidInput
from compactor.model import Format
from compactor.settings.settings import Settings
from compactor_cli.commands import options
from compactor_cli.commands.failures import Failure, nobody_to_ask
from compactor_cli.commands.store import open_store
from compactor_cli.console import counted, print_error, print_line, progress
from compactor_cli.old_outputs import ROWS_DROPPED, examine, lost_rows
from compactor_cli.repairing import LEAVE, LOST, PASS, UNDO, Case, Decision, Done, Repairing
from compactor_cli.restored_files import write_new
from compactor_cli.runs import new_run_id

_DONE_ABOUT_IT = {
    UNDO: "every source still stands: the commit is taken back, and the next run compacts them",
    LOST: "sources are gone: compactor restore gives each of them back from the output",
    LEAVE: "nobody can tell: say --first-lines headers or --first-lines rows",
    PASS: "recorded as sound",
}


_LOST_ROWS = "sources are gone: --lost-rows gives back what is in the manifest alone"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SOURCE, DEST, what to do, and what nobody but the caller knows."""
    options.add_places(parser, options.SOURCE, options.DESTINATION)
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="only show the decision; reads, never writes"
    )
    parser.add_argument(
        "-y", "--yes", action="store_true", help="repair without asking first; needed in scripts"
    )
    parser.add_argument(
        "--first-lines",
        choices=("headers", "rows", "leave"),
        default="leave",
        help="what the first lines of CSV and TSV sources are that cannot be told from rows"
        " (%(default)s)",
    )
    parser.add_argument(
        "--lost-rows",
        action="store_true",
        help="write the rows that are in manifests alone, because their sources are gone, to files"
        " below --output, one for each commit, and do nothing else",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="with --lost-rows: where to")
    options.add_common(parser)
    options.add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Examine, show the decision, ask, act.

    Raises:
        InvalidInput: the input is at fault, or nobody can be asked.
        Failure: something is left that is wrong; each was told in one line.
    """
    _check(args)
    settings = Settings.from_input(options.fields_from(args))
    store = open_store(args.endpoint_url, settings.state.bucket)
    repairing = Repairing(
        settings,
        store,
        SystemClock(),
        new_run_id(),
        examine=partial(examine, settings=settings),
        undecided=args.first_lines,
    )
    with progress("listing the commit logs"):
        logs = repairing.logs()
    with progress("examining", sum(len(log.entries) for log in logs)) as bar:
        decision = repairing.decide(logs, bar)
    if not args.json:
        _show(decision)
    if args.lost_rows:
        return _give_back(args, repairing, decision)
    done = None
    if not args.dry_run and _wanted(decision):
        if not args.yes and not _agreed(decision):
            raise Failure("nothing was repaired")
        with progress("repairing", len(decision.cases)) as bar:
            done = repairing.act(decision, bar)
    _show_done(args, decision, done)
    _end(decision, done)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse to decide for nothing.

    Raises:
        InvalidInput: there will be nobody to ask, or options contradict each other.
    """
    if args.lost_rows != (args.output is not None):
        raise InvalidInput("--output", args.output, "a directory, together with --lost-rows")
    asked = not args.json and sys.stdin.isatty() and sys.stderr.isatty()
    if not (args.dry_run or args.yes or args.lost_rows or asked):
        raise nobody_to_ask()


def _wanted(decision: Decision) -> bool:
    return bool(decision.passed) or any(one.action in (UNDO, PASS) for one in decision.cases)


def _agreed(decision: Decision) -> bool:
    undone = sum(one.action == UNDO for one in decision.cases)
    sys.stderr.write(f"take {counted(undone, 'commit')} back, and record the sound ones? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _show(decision: Decision) -> None:
    for line in decision.failures:
        print_error(_one_line(line))
    for one in decision.cases:
        dropped = one.action == LOST and one.finding.kind == ROWS_DROPPED
        remedy = _LOST_ROWS if dropped else _DONE_ABOUT_IT[one.action]
        print_line(_one_line(f"{one.line}; {remedy}"))
    passed = sum(map(len, decision.passed.values()))
    print_line(
        f"examined {counted(decision.examined, 'commit')}: {len(decision.cases):,} in doubt or"
        f" wrong, {passed:,} of the version before newly found sound"
    )


def _give_back(args: argparse.Namespace, repairing: Repairing, decision: Decision) -> int:
    written: list[dict[str, Any]] = []
    for case, commit in repairing.lost(decision):
        tab = commit.output is not None and commit.output.format is Format.TSV
        name = f"lost-rows-{case.sequence}-{commit.group_id}.{'tsv' if tab else 'csv'}"
        path = Path(args.output) / case.path / name
        rows = list(lost_rows(commit))
        size = write_new(path, rows)
        written.append({"path": str(path), "rows": len(rows), "bytes": size})
    if args.json:
        print(json.dumps(_document(decision, None) | {"lost_rows": written}, indent=2))
    else:
        for one in written:
            print_line(f"{one['path']}: {counted(one['rows'], 'row')}")
    return 0


def _show_done(args: argparse.Namespace, decision: Decision, done: Done | None) -> None:
    if args.json:
        print(json.dumps(_document(decision, done), indent=2))
    elif done is not None:
        for line in done.failures:
            print_error(_one_line(line))
        print_line(
            f"taken back: {counted(len(done.undone), 'commit')}; recorded as sound:"
            f" {done.recorded:,}"
        )
        for path in sorted({one.path for one in done.undone}):
            print_line(f"run again: {path or '(root)'}, its sources are waiting to be compacted")


def _document(decision: Decision, done: Done | None) -> dict[str, Any]:
    return {
        "examined": decision.examined,
        "sound": sum(map(len, decision.passed.values())),
        "findings": [one.to_dict() for one in decision.cases],
        "failures": decision.failures,
        "done": None
        if done is None
        else {
            "undone": [one.to_dict() for one in done.undone],
            "recorded": done.recorded,
            "failures": done.failures,
        },
    }


def _end(decision: Decision, done: Done | None) -> None:
    """Do nothing when all is well.

    Raises:
        Failure: it is not.
    """
    left = _left(decision.cases, done)
    failures = len(decision.failures) + (len(done.failures) if done is not None else 0)
    if left or failures:
        found = counted(left + failures, "finding")
        raise Failure(f"IntegrityError: {found} left")


def _left(cases: Sequence[Case], done: Done | None) -> int:
    """How many are wrong or in doubt, and stay so; failures are told beside them."""
    stay = sum(one.action in (LOST, LEAVE) for one in cases)
    return stay if done is not None else sum(one.action != PASS for one in cases)


def _one_line(text: str) -> str:
    return " ".join(text.split())
