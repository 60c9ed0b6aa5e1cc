"""Breadth-first search through every state of a model.

A model is three things: a first state, a function that gives every state one step further with the
label of that step, and a function that says what is wrong with a state. States are hashable, and
each is visited once, so the search ends when a model has finitely many; the first fault that it
meets has the shortest trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

AnyState = TypeVar("AnyState", bound=Hashable)


class Explored(NamedTuple):
    """What a search found.

    Attributes:
        states: how many different ones were visited.
        fault: what is wrong with the last one; empty where all were visited and none is wrong.
        trace: the steps that lead there; empty without a fault.
    """

    states: int
    fault: str = ""
    trace: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """The trace in Markdown, for a reader."""
        rows = [f"| {number} | {step} |" for number, step in enumerate(self.trace, 1)]
        return "\n".join(["| # | Step |", "|---|---|", *rows, f"| | **{self.fault}** |"])


def explore(
    first: AnyState,
    steps: Callable[[AnyState], Iterable[tuple[object, AnyState]]],
    fault_of: Callable[[AnyState], str],
) -> Explored:
    """Visit every state that can be reached, or stop at the first that is wrong.

    Args:
        first: the state to begin with.
        steps: gives the steps from a state: a label, and the state after it.
        fault_of: what is wrong with a state, in one line; empty where nothing is.
    """
    came_from: dict[AnyState, tuple[AnyState, object] | None] = {first: None}
    waiting = deque([first])
    while waiting:
        state = waiting.popleft()
        for label, after in steps(state):
            if after in came_from:
                continue
            came_from[after] = state, label
            fault = fault_of(after)
            if fault:
                return Explored(len(came_from), fault, _trace(came_from, after))
            waiting.append(after)
    return Explored(len(came_from))


def _trace(
    came_from: Mapping[AnyState, tuple[AnyState, object] | None], state: AnyState
) -> tuple[str, ...]:
    trace = []
    while (step := came_from[state]) is not None:
        state, label = step
        trace.append(str(label))
    return tuple(reversed(trace))
