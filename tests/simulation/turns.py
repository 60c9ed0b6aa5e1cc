"""The base of all schedules: processes that take turns, faults, and the outcome.

A kind of schedule defines how it starts and ends, which events may happen, and what must hold; see
:mod:`tests.simulation.schedule` (a partition), :mod:`tests.simulation.tables` (a table) and
:mod:`tests.simulation.lake` (events and a table).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from compactor.errors import CompactorError, TransientStoreError
from tests.simulation.choices import Choices
from tests.simulation.faults import Fault, faults_of
from tests.simulation.ledger import Violation
from tests.simulation.processes import Process, without_threads
from tests.simulation.story import told
from tests.support.memory_store import Call, Crashed, ManualClock


@dataclass
class Outcome:
    """The result of one schedule.

    Attributes:
        turns: the number of requests.
        faults: faults and events by kind.
        violation: the broken promise; empty if all held.
        story: what happened, line by line; only if requested.
        recorded: the decisions, to replay it.
    """

    turns: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    violation: str = ""
    story: list[str] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)


class Schedule(ABC):
    """Decides who continues at each step, what fails, and what else happens; then the end.

    Args:
        clock: the world's clock.
        choices: the decisions.
        outcome: collects the result.
        tell: also record the story.
    """

    #: The number of turns before the end.
    TURNS: ClassVar[int]
    EVENT_RATE: ClassVar[float]
    SWITCH_RATE: ClassVar[float]
    MOST_PROCESSES: ClassVar[int]
    FAULT_RATES: ClassVar[tuple[float, ...]] = (0.0, 0.01, 0.04, 0.12)
    #: Requests after which every promise is checked.
    WRITES: ClassVar[frozenset[str]]

    def __init__(
        self, clock: ManualClock, choices: Choices, outcome: Outcome, *, tell: bool
    ) -> None:
        self.outcome = outcome
        self._clock = clock
        self._choices = choices
        self._telling = tell
        self._processes: list[Process] = []
        self._fault_rate = choices.one_of(self.FAULT_RATES)

    # What each kind of schedule defines.

    @abstractmethod
    def _begin(self) -> None:
        """Create the first sources and the first process."""

    @abstractmethod
    def _more(self) -> bool:
        """Start something, because no process is running; return False to end the schedule."""

    @abstractmethod
    def _events(self) -> dict[str, Callable[[], object]]:
        """Return the events that may happen now, by name."""

    @abstractmethod
    def end(self) -> None:
        """Run without faults until everything is at rest, and check the final state.

        Raises:
            Violation: the final state is wrong.
        """

    @abstractmethod
    def _look(self) -> None:
        """Check every promise; raises Violation."""

    def _judge(self, process: Process) -> None:
        """Record how a process ended: done, killed, or because a store did not answer.

        Raises:
            Violation: it ended otherwise, or found a broken promise.
        """
        error = process.error
        self.tell(f"{process.name} ends: {error!r}" if error else f"{process.name} is done")
        if error is None or isinstance(error, (Crashed, TransientStoreError)):
            return
        if isinstance(error, Violation):
            raise error
        why = "" if isinstance(error, CompactorError) else " (no error of ours)"
        raise Violation(f"{process.name} ended with {error!r}{why}") from error

    def _faults_of(self, call: Call) -> Sequence[Fault]:
        """Return the faults that may happen to a request."""
        return faults_of(call)

    def _fault_rate_of(self, process: Process) -> float:
        """Return the probability that the process's next request fails."""
        return self._fault_rate

    def _next(self) -> Process:
        """Choose the process whose turn it is."""
        if self._choices.chance(self.SWITCH_RATE):
            return self._choices.one_of(self._processes)
        return self._processes[0]

    def _likely(self, events: Sequence[str]) -> Sequence[str]:
        """Return the events to choose from; rarely possible ones may be repeated."""
        return events

    def _line(self, process: Process, call: Call, fault: Fault) -> str:
        """Return the story's line about a request."""
        return told(process.name, call, fault)

    def _stamp(self) -> str:
        """Return the time to put before each line of the story."""
        return ""

    # Turns.

    def tell(self, line: str) -> None:
        if self._telling:
            number = len(self.outcome.story) + 1
            self.outcome.story.append(f"{number:>4}  {self._stamp()}{line}")

    def disturbed(self) -> None:
        """Run the processes concurrently, with faults and events."""
        self._begin()
        while self.outcome.turns < self.TURNS:
            self._clock.advance(1)
            if not self._processes and not self._more():
                return
            if self._choices.chance(self.EVENT_RATE):
                self._event()
            process = self._next()
            self._turn(process, self._fault_for(process))

    def _event(self) -> None:
        events = self._events()
        name = self._choices.one_of(self._likely(list(events)))
        self.outcome.faults[name] += 1
        events[name]()
        self._look()

    def _fault_for(self, process: Process) -> Fault:
        if process.waiting is None or not self._choices.chance(self._fault_rate_of(process)):
            return Fault.NONE
        fault = self._choices.one_of(self._faults_of(process.waiting))
        self.outcome.faults[fault] += 1
        return fault

    def _turn(self, process: Process, fault: Fault = Fault.NONE) -> None:
        call = process.waiting
        process.turn(fault)
        self.outcome.turns += 1
        if call is not None and self._telling:
            self.tell(self._line(process, call, fault))
        if call is None or call.name in self.WRITES:
            self._look()
        if process.ended:
            self._processes.remove(process)
            self._judge(process)

    def _finish(self, process: Process) -> Process:
        """Run only this process, to its end."""
        self._processes.append(process)
        while not process.ended:
            self._turn(process)
        return process

    def _start(self, process: Process, why: str = "") -> None:
        if len(self._processes) < self.MOST_PROCESSES:
            self._processes.append(process)
            self.tell(f"{process.name} starts{why}")


def played(choices: Choices, make: Callable[[Outcome], Schedule]) -> Outcome:
    """Run one schedule to its end, or to the first broken promise."""
    outcome = Outcome()
    with without_threads():
        schedule = make(outcome)
        try:
            schedule.disturbed()
            schedule.end()
        except Violation as violation:
            outcome.violation = str(violation)
            schedule.tell(f"VIOLATION: {violation}")
    outcome.recorded = choices.recorded
    return outcome
