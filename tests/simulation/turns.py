"""What every schedule has: processes that take turns, faults, and what came of it.

A kind of schedule says how it begins and ends, what else may happen, and what must hold; see
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
    """What one schedule came to.

    Attributes:
        turns: requests made.
        faults: by kind, and what else was done to the world.
        violation: the broken promise; empty when all held.
        story: what happened, a line each; only where it was asked for.
        recorded: the decisions, to play it again.
    """

    turns: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    violation: str = ""
    story: list[str] = field(default_factory=list)
    recorded: list[int] = field(default_factory=list)


class Schedule(ABC):
    """Who goes on at each step, what fails, and what else happens; then the end.

    Args:
        clock: of the world.
        choices: every decision.
        outcome: what is told of it.
        tell: also the story.
    """

    #: Turns before the end begins.
    TURNS: ClassVar[int]
    EVENT_RATE: ClassVar[float]
    SWITCH_RATE: ClassVar[float]
    MOST_PROCESSES: ClassVar[int]
    FAULT_RATES: ClassVar[tuple[float, ...]] = (0.0, 0.01, 0.04, 0.12)
    #: Requests behind which every promise is looked at.
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

    # What each kind says.

    @abstractmethod
    def _begin(self) -> None:
        """The first sources, and the first process."""

    @abstractmethod
    def _more(self) -> bool:
        """Nothing is under way: begin something; False to come to the end."""

    @abstractmethod
    def _events(self) -> dict[str, Callable[[], object]]:
        """What may happen now, by name."""

    @abstractmethod
    def end(self) -> None:
        """No more faults: come to rest, and check that it is the right place.

        Raises:
            Violation: it is not.
        """

    @abstractmethod
    def _look(self) -> None:
        """Check every promise; raises Violation."""

    def _judge(self, process: Process) -> None:
        """Tell how a process ended: at its end, killed, or because a store did not answer.

        Raises:
            Violation: it ended otherwise, or met with a broken promise.
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
        """What may happen to a request."""
        return faults_of(call)

    def _fault_rate_of(self, process: Process) -> float:
        """How likely the request that waits is to fail."""
        return self._fault_rate

    def _next(self) -> Process:
        """Whose turn it is."""
        if self._choices.chance(self.SWITCH_RATE):
            return self._choices.one_of(self._processes)
        return self._processes[0]

    def _likely(self, events: Sequence[str]) -> Sequence[str]:
        """Events to choose from, often those that are seldom possible."""
        return events

    def _line(self, process: Process, call: Call, fault: Fault) -> str:
        """A request in the story."""
        return told(process.name, call, fault)

    def _stamp(self) -> str:
        """The time, before each line of the story."""
        return ""

    # Turns.

    def tell(self, line: str) -> None:
        if self._telling:
            number = len(self.outcome.story) + 1
            self.outcome.story.append(f"{number:>4}  {self._stamp()}{line}")

    def disturbed(self) -> None:
        """Everything at once, with faults."""
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
        """Let it alone do all that it does."""
        self._processes.append(process)
        while not process.ended:
            self._turn(process)
        return process

    def _start(self, process: Process, why: str = "") -> None:
        if len(self._processes) < self.MOST_PROCESSES:
            self._processes.append(process)
            self.tell(f"{process.name} starts{why}")


def played(choices: Choices, make: Callable[[Outcome], Schedule]) -> Outcome:
    """Play one schedule to its end, or to the first broken promise."""
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
