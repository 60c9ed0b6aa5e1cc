"""Breadth-first search through every state of a model.

A model consists of a first state, a function that yields the steps from a state (label and next
state), and a function that returns what is wrong with a state. States are hashable and each is
visited once, so the search ends if there are finitely many. The first fault found has the shortest
trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

AnyState = TypeVar("AnyState", bound=Hashable)


class Explored(NamedTuple):
    """The result of a search.

    Attributes:
        states: the number of distinct states visited.
        fault: what is wrong with the last state; empty if all were visited and none is wrong.
        trace: the steps that lead to the fault; empty without one.
    """

    states: int
    fault: str = ""
    trace: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """The trace as a Markdown table."""
        rows = [f"| {number} | {step} |" for number, step in enumerate(self.trace, 1)]
        return "\n".join(["| # | Step |", "|---|---|", *rows, f"| | **{self.fault}** |"])


def explore(
    first: AnyState,
    steps: Callable[[AnyState], Iterable[tuple[object, AnyState]]],
    fault_of: Callable[[AnyState], str],
) -> Explored:
    """Visit every reachable state, or stop at the first that is wrong.

    Args:
        first: the state to start from.
        steps: yields the steps from a state: a label, and the next state.
        fault_of: returns what is wrong with a state in one line; empty if nothing is.
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
