"""Simulate runs over a hundred million objects, and print what they take and cost.

python -m tests.scale                 all cases, by samples; some minutes
python -m tests.scale --sample 10     ten times as many partitions are really worked on
python -m tests.scale --full          all of them; many hours
python -m tests.scale --write         the table into docs/performance.md, too
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from compactor_dev.markers import replace_between
from tests.scale import memory, table
from tests.scale.cases import CASES, Case, simulated
from tests.scale.figures import Figures
from tests.scale.services import Services

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
_GROUP = 50_000
_PROCESSES = 2
# The digests of a log are held in arrays, so that a tenth of it takes a tenth.
_LOG_SHARE = 10


def main(arguments: Sequence[str]) -> int:
    """Simulate, print, write; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--full", action="store_true", help="no sample: every partition")
    parser.add_argument("--sample", type=int, default=1, help="so many times the usual sample")
    parser.add_argument("--no-memory", action="store_true", help="leave out what is held")
    parser.add_argument("--write", action="store_true", help=f"the table into {_PAGE.name}")
    args = parser.parse_args(arguments)
    began = time.monotonic()
    services = Services()
    chosen = [_chosen(case, args.sample, full=args.full) for case in CASES]
    runs, notes = _all(chosen, services, with_memory=not args.no_memory)
    notes.append(f"Simulated in {time.monotonic() - began:,.0f} s.")
    _show(runs, notes)
    if args.write:
        made = f"\n{table.as_markdown(runs, notes)}\n"
        page = replace_between(_PAGE.read_text("utf-8"), table.BEGIN, table.END, made)
        _PAGE.write_text(page, "utf-8")
    return 0


def _chosen(case: Case, times: int, *, full: bool) -> Case:
    if full:
        return replace(case, sampled=case.partitions, share=1)
    return replace(
        case, sampled=min(case.partitions, case.sampled * times), share=max(1, case.share // times)
    )


def _all(
    cases: Sequence[Case], services: Services, *, with_memory: bool
) -> tuple[list[Figures], list[str]]:
    """The figures of all runs, and what is to be said of them; by two processes."""
    with ProcessPoolExecutor(_PROCESSES) as pool:
        found = [pool.submit(_runs_of, case, services) for case in cases]
        if not with_memory:
            return [one for case in found for one in case.result()], []
        held = pool.submit(_memory_of, cases, services)
        log = pool.submit(_log_of, cases, services)
        runs = []
        for case, of_case, mb in zip(cases, found, held.result(), strict=True):
            if case.share > 1:
                # Of the log the share has only so much.
                mb["compact_partition"] += max(log.result().values())
            for one in of_case.result():
                # What is new or not makes no difference to what is held at most.
                one.memory = mb
                runs.append(one)
        return runs, [_told(cases, log.result())]


def _runs_of(case: Case, services: Services) -> list[Figures]:
    return list(simulated(case, services))


def _memory_of(cases: Sequence[Case], services: Services) -> list[dict[str, float]]:
    return [memory.of_run(case, services) for case in cases]


def _log_of(cases: Sequence[Case], services: Services) -> dict[str, float]:
    """Of the largest partition; where that is a share, so is the log that is measured."""
    case = max(cases, key=lambda case: case.objects)
    part = _LOG_SHARE if case.share > 1 else 1
    objects = case.objects // part
    held = memory.of_log(objects, objects // _GROUP, services)
    return {name: mb * part for name, mb in held.items()}


def _told(cases: Sequence[Case], log: dict[str, float]) -> str:
    objects = max(case.objects for case in cases)
    return (
        f"The log of {objects:,} sources in one partition: {log['written']:,.0f} MB to write its"
        f" checkpoint, {log['read']:,.0f} MB to read it, beside {memory.at_start():,.0f} MB of the"
        " process."
    )


def _show(runs: Sequence[Figures], notes: Sequence[str]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    figures = Table(*table.heads(runs), header_style="bold")
    for column in figures.columns[1:]:
        column.justify = "right"
    for row in table.rows(runs):
        figures.add_row(*row)
    console.print(figures)
    goals = Table("Goal", "Found", "", header_style="bold")
    judged = table.goals(runs)
    for goal in judged:
        goals.add_row(goal.wanted, goal.found, goal.verdict.strip("*"))
    console.print(goals)
    for note in (*table.reasons(judged), *notes):
        console.print(note, highlight=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
