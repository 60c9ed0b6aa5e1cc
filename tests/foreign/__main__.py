"""Foreign readers judge what became of CSV data sets.

python -m tests.foreign                        each named shape, 12 data sets of it, as a table
python -m tests.foreign --groups 100000        named and drawn ones, until so many groups are joined
python -m tests.foreign --processes 2 ...      in so many processes
python -m tests.foreign --seed 7 ...           other ones
python -m tests.foreign --shapes WORD ...      shapes with such names alone
python -m tests.foreign --seed 7 --drawn 42    the drawn data set of a key such as drawn0042/

Ends with 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from tests.foreign.drawn import drawn_set
from tests.foreign.figures import EACH_SHAPE, added, failures, in_batches, table, until
from tests.foreign.structures import SHAPES


def main(arguments: list[str]) -> int:
    """Do what was asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--groups", type=int, help="joined groups to read")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drawn", type=int, help="number of one drawn data set")
    parser.add_argument("--shapes", nargs="*", default=[""], metavar="WORD")
    args = parser.parse_args(arguments)
    began = time.monotonic()
    if args.groups:
        parts = [(number, args.processes) for number in range(args.processes)]
        work = partial(until, -(-args.groups // args.processes), args.seed)
        with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
            tallies = added(pool.map(work, parts))
    elif args.drawn is not None:
        tallies = in_batches([drawn_set(args.seed, args.drawn)])
    else:
        shapes = [one for name, one in SHAPES.items() if any(word in name for word in args.shapes)]
        first = args.seed * 1_000_003
        variants = range(first, first + EACH_SHAPE)
        tallies = in_batches(shape.data_set(n) for shape in shapes for n in variants)
    sys.stdout.write(table(tallies))
    wrong = failures(tallies)
    for text in wrong:
        sys.stderr.write(f"{text}\n")
    groups = sum(one.groups for one in tallies.values())
    sys.stdout.write(f"{groups:,} groups joined and read in {time.monotonic() - began:,.0f} s\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
