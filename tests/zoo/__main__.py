"""The zoo from the command line.

python -m tests.zoo                          what becomes of every kind; what is wrong, below it
python -m tests.zoo KIND ...                 kinds of such names, with every way to store them
python -m tests.zoo --fuzz 600 [--seed 1]    mixed, cut and re-ordered sources, for so many seconds

Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import sys

from tests.zoo.encodings import ENCODINGS
from tests.zoo.families import KINDS
from tests.zoo.fuzz import fuzz
from tests.zoo.trial import judged


def main(arguments: list[str]) -> int:
    """Print what was asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.zoo", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="names, or parts of them")
    parser.add_argument("--fuzz", type=float, metavar="SECONDS", help="how long to fuzz")
    parser.add_argument("--seed", type=int, default=0, help="of the fuzz run")
    parser.add_argument("--schedules", type=int, help="end the fuzz run after so many")
    args = parser.parse_args(arguments)
    if args.fuzz is not None:
        return fuzz(args.fuzz, args.seed, args.schedules, sys.stdout)
    kinds = [
        kind for name, kind in KINDS.items() if any(word in name for word in args.kinds or [""])
    ]
    faults = []
    for kind in kinds:
        for encoding in ENCODINGS if args.kinds else ["plain"]:
            outcome = judged(kind, encoding)
            name = kind.name if encoding == "plain" else f"{kind.name}, {encoding}"
            declared = f"; formats: {dict(kind.declared)}" if kind.declared else ""
            sys.stdout.write(f"{name}: {outcome.became or 'nothing to do'}{declared}\n")
            faults += [f"WRONG {name}: {fault}\n" for fault in outcome.faults]
    sys.stderr.writelines(faults)
    sys.stdout.write(f"{len(kinds)} kinds, {len(faults)} faults\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
