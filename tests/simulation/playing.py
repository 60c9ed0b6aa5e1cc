"""What the tests of all kinds of schedules share, and their command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.simulation.explored import Explored, Player, shortest
from tests.support.proof_figures import note_mutation
from tests.support.sample import sample

_TOLD = 5


class Exploring(Protocol):
    """Runs a number of schedules from a seed, in a number of processes."""

    def __call__(self, first: int, count: int, processes: int | None = None) -> Explored: ...


def played_to_the_end(
    explore: Callable[[int, int], Explored], proof: Path | None, *, all_of_them: int, some: int
) -> Explored:
    """Run schedules and assert that no promise is broken.

    Args:
        explore: runs a number of schedules from a seed.
        proof: the directory of ``make proof``, which runs all; None to run a sample.
        all_of_them: the number of all schedules.
        some: the number of schedules in a sample.
    """
    count = all_of_them if proof else some
    found = explore(0 if proof else sample() * some, count)
    assert not found.violations, found.violations
    assert found.schedules == count, found.line
    return found


def notice_without_guard(
    explore: Callable[[int, int, str], Explored],
    name: str,
    *,
    kind: str,
    most: int,
    proof: Path | None,
    known: int | None = None,
) -> None:
    """Assert that a schedule breaks a promise when a guard is removed.

    Args:
        explore: runs a number of schedules from a seed, without the guard of this name.
        name: the name of the guard.
        kind: the kind of schedules, as ``make proof`` calls it.
        most: the number of schedules, from the first, of which one must notice.
        proof: the directory of ``make proof``, which starts from the first schedule; None to try
            the known one first.
        known: the seed of a schedule that noticed; an outdated one only costs time.
    """
    found = explore(known, 1, name) if known is not None and not proof else Explored()
    if not found.violations:
        found = explore(0, most, name)
    assert found.violations, f"{found.schedules} schedules did not notice"
    assert "no error of ours" not in found.violations[0][1], "the mutation itself is broken"
    if proof:
        note_mutation(proof, kind, name, found.schedules)


def command_line(name: str, play: Player, explore: Exploring) -> int:
    """Run schedules, or print the story of one; return 1 if a promise was broken.

    Args:
        name: the name of the module.
        play: runs one schedule.
        explore: runs many.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {name}")
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first (default 0)")
    parser.add_argument("--processes", type=int, help="how many at once (default: processors)")
    parser.add_argument("--story", type=int, metavar="SEED", help="tell this one schedule")
    parser.add_argument("--shortest", type=int, metavar="SEED", help="tell it as short as it gets")
    args = parser.parse_args()
    if args.story is not None or args.shortest is not None:
        one = play(args.story, tell=True) if args.story is not None else None
        outcome = one or shortest(play, args.shortest)
        sys.stdout.write("\n".join(outcome.story) + "\n")
        return bool(outcome.violation)
    found = explore(args.first, args.schedules, args.processes)
    for seed, violation in found.violations[:_TOLD]:
        sys.stdout.write(f"schedule {seed}: {violation}\n")
    sys.stdout.write(found.line + "\n")
    return bool(found.violations)
