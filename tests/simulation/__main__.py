"""Runs simulated schedules for as long as you like; the last line has the figures.

    python -m tests.simulation --seconds 600
    python -m tests.simulation --schedules 20000 --first 1000000
    python -m tests.simulation --story 1234        one schedule, printed line by line

Exits with 1 if a promise was broken, after printing the shortest story of how.
"""

from __future__ import annotations

import argparse
import json
import sys
from math import inf
from pathlib import Path

from tests.simulation.explore import explore, shortest_story
from tests.simulation.explored import SHOWN, Explored
from tests.simulation.schedule import play


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def main() -> int:
    """Parse the arguments, run schedules, print the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seconds", type=float, default=inf, help="for how long")
    parser.add_argument("--schedules", type=float, default=inf, help="how many")
    parser.add_argument("--first", type=int, default=0, help="seed of the first (default 0)")
    parser.add_argument("--processes", type=int, help="how many at once (default: processors)")
    parser.add_argument("--story", type=int, metavar="SEED", help="tell this one schedule")
    parser.add_argument("--figures", type=Path, metavar="FILE", help="write the figures as JSON")
    args = parser.parse_args()
    if args.story is not None:
        outcome = play(args.story, tell=True)
        say("\n".join(outcome.story))
        return bool(outcome.violation)
    if args.seconds == args.schedules == inf:
        parser.error("--seconds or --schedules is needed: there is no end of schedules")
    found = explore(
        schedules=args.schedules,
        seconds=args.seconds,
        first=args.first,
        processes=args.processes,
    )
    tell_violations(found)
    if args.figures:
        args.figures.write_text(json.dumps(found.figures), encoding="utf-8")
    say(found.line)
    return bool(found.violations)


def tell_violations(found: Explored) -> None:
    """Print the shortest stories of the first broken promises."""
    for seed, violation in found.violations[:SHOWN]:
        say(f"schedule {seed}: {violation}")
        say("\n".join(shortest_story(seed).story))
        say(f"the whole of it: python -m tests.simulation --story {seed}\n")


if __name__ == "__main__":
    sys.exit(main())
