"""Many schedules, on all processors, until a number or a time is reached."""

from __future__ import annotations

from functools import partial
from math import inf

from tests.simulation.explored import Explored, explore_in_batches, explored, shortest
from tests.simulation.mutations import MUTATIONS, Mutation, unchanged
from tests.simulation.schedule import play
from tests.simulation.turns import Outcome

BATCH = 200


def explore_batch(first: int, count: int, mutation: str = "") -> Explored:
    """Play schedules one after the other, until the first broken promise of a mutation."""
    chosen = MUTATIONS[mutation] if mutation else unchanged
    with chosen.applied():
        return explored(
            lambda seed: play(seed, without=chosen.without), first, count, all_of_them=not mutation
        )


def explore(
    *, schedules: float = inf, seconds: float = inf, first: int = 0, processes: int | None = None
) -> Explored:
    """Play schedules of successive seeds until there are so many, or time is up.

    Args:
        schedules: how many.
        seconds: for how long; batches under way are finished.
        first: seed of the first one.
        processes: how many at once; by default one a processor.
    """
    return explore_in_batches(
        explore_batch, first, schedules, batch=BATCH, seconds=seconds, processes=processes
    )


def shortest_story(seed: int, mutation: Mutation = unchanged, *, plays: float = inf) -> Outcome:
    """The schedule of a seed that breaks a promise, with all taken out that does not matter.

    Args:
        seed: of the schedule.
        mutation: what it was played with.
        plays: after so many, what is left must do.
    """
    with mutation.applied():
        return shortest(partial(play, without=mutation.without), seed, plays=plays)
