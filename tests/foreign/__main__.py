"""Foreign readers judge what became of CSV, JSON and text.

python -m tests.foreign --groups 100000        rightly declared data sets, until so many groups
python -m tests.foreign --wrong 20000          wrongly declared ones: what becomes of each kind
python -m tests.foreign --processes 2 ...      in so many processes
python -m tests.foreign --seed 7 ...           other ones
python -m tests.foreign --seed 7 --set 42      one data set, with its sources

Exits with 1 if anything is wrong that is declared rightly.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from tests.foreign.data_sets import drawn_set
from tests.foreign.readers import DuckDb
from tests.foreign.trial import Tally, judged, right, table
from tests.foreign.wrong import WRONGS, WrongTally, wrong, wrong_table


def main(arguments: list[str]) -> int:
    """Print the figures; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--groups", type=int, default=0, help="joined groups to read")
    parser.add_argument("--wrong", type=int, default=0, help="data sets with wrong declarations")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", type=int, help="number of one data set")
    args = parser.parse_args(arguments)
    began = time.monotonic()
    faults = []
    if args.set is not None:
        each = drawn_set(args.seed, args.set)
        sys.stdout.writelines(f"{source}\n" for source in (each.kind, each.declared, *each.sources))
        tallies = judged([each], DuckDb())
        faults += [text for tally in tallies.values() for text in tally.shown]
    if args.groups:
        totals = dict[str, Tally]()
        for kind, tally in _in_processes(right, args.groups, args.seed, args.processes):
            totals.setdefault(kind, Tally()).add(tally)
        sys.stdout.write(table(totals))
        faults += [text for tally in totals.values() for text in tally.shown]
    if args.wrong:
        wrongs = {name: WrongTally() for name in WRONGS}
        for kind, wrong_tally in _in_processes(wrong, args.wrong, args.seed, args.processes):
            wrongs[kind].add(wrong_tally)
        sys.stdout.write(wrong_table(wrongs))
        faults += [text for wrong_tally in wrongs.values() for text in wrong_tally.faults]
    sys.stderr.writelines(f"WRONG {text}\n" for text in faults)
    sys.stdout.write(f"{time.monotonic() - began:,.0f} s\n")
    return 1 if faults else 0


def _in_processes(work, amount: int, seed: int, processes: int) -> Iterator:
    parts = [(number, processes) for number in range(processes)]
    share = partial(work, -(-amount // processes), seed)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for tallies in pool.map(share, parts):
            yield from tallies.items()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
