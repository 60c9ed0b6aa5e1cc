"""The zoo from the command line.

python -m tests.zoo                          every kind, as a table; what is wrong, below it
python -m tests.zoo KIND ...                 some kinds, with every way to store them
python -m tests.zoo --write docs/zoo.md      the table into a document
python -m tests.zoo --fuzz 600 [--seed 1]    mixed, cut and re-ordered sources, for so many seconds

Ends with 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.zoo.encodings import ENCODINGS
from tests.zoo.families import KINDS
from tests.zoo.fuzz import fuzz
from tests.zoo.table import summary, table
from tests.zoo.trial import Outcome, judged


def main(arguments: list[str]) -> int:
    """Do what was asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.zoo", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="names, or parts of them")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table there")
    parser.add_argument("--fuzz", type=float, metavar="SECONDS", help="so long")
    parser.add_argument("--seed", type=int, default=0, help="of the fuzz run")
    parser.add_argument("--schedules", type=int, help="end the fuzz run after so many")
    args = parser.parse_args(arguments)
    if args.fuzz is not None:
        return fuzz(args.fuzz, args.seed, args.schedules, sys.stdout)
    if args.kinds:
        return _some(args.kinds)
    outcomes = {kind.name: judged(kind) for kind in KINDS.values()}
    made = table(outcomes, KINDS)
    if args.write is not None:
        args.write.parent.mkdir(exist_ok=True)
        args.write.write_text(made, encoding="utf-8")
    else:
        sys.stdout.write(made)
    return _wrong(outcomes)


def _some(names: list[str]) -> int:
    found = [kind for kind in KINDS.values() if any(name in kind.name for name in names)]
    outcomes = {
        f"{kind.name}, {encoding}": judged(kind, encoding)
        for kind in found
        for encoding in ENCODINGS
    }
    for name, outcome in outcomes.items():
        sys.stdout.write(f"{name}: {outcome.decided} {outcome.reasons}\n")
    return _wrong(outcomes)


def _wrong(outcomes: dict[str, Outcome]) -> int:
    wrong = {name: outcome.faults for name, outcome in outcomes.items() if outcome.faults}
    for name, faults in wrong.items():
        sys.stderr.write(f"WRONG {name}: {faults[0]}\n")
    sys.stderr.write(f"{summary(outcomes)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
