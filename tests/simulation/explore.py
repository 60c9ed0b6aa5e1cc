"""Runs schedules on all processors until a number or a time is reached."""

from __future__ import annotations

from functools import partial
from math import inf

from tests.simulation.explored import Explored, explore_in_batches, explored, shortest
from tests.simulation.mutations import MUTATIONS, Mutation, unchanged
from tests.simulation.schedule import play
from tests.simulation.turns import Outcome

BATCH = 200


def explore_batch(first: int, count: int, mutation: str = "") -> Explored:
    """Run schedules sequentially; with a mutation, stop at the first broken promise."""
    chosen = MUTATIONS[mutation] if mutation else unchanged
    with chosen.applied():
        return explored(
            lambda seed: play(seed, without=chosen.without), first, count, all_of_them=not mutation
        )


def explore(
    *, schedules: float = inf, seconds: float = inf, first: int = 0, processes: int | None = None
) -> Explored:
    """Run schedules of successive seeds until a number or a time is reached.

    Args:
        schedules: the number of schedules.
        seconds: the time limit; batches in progress are finished.
        first: the first seed.
        processes: the number of processes; by default one per processor.
    """
    return explore_in_batches(
        explore_batch, first, schedules, batch=BATCH, seconds=seconds, processes=processes
    )


def shortest_story(seed: int, mutation: Mutation = unchanged, *, plays: float = inf) -> Outcome:
    """Return a schedule that breaks a promise, reduced to what is needed for that.

    Args:
        seed: the seed of the schedule.
        mutation: the mutation that it was run with.
        plays: the number of attempts at reducing it.
    """
    with mutation.applied():
        return shortest(partial(play, without=mutation.without), seed, plays=plays)
