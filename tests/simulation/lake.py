"""Schedules from events to a table: messages in any order, and every process may fail.

Producers write, overwrite, delete and write again; messages are duplicated, late, reordered or
lost; sweeps, runs, workers, publishers, clean-ups and reconcilers run concurrently, may fail or die
at any request to the store, the registry, the starter of executions or the catalog, and are called
again; others append to the table, compact it and expire its snapshots. After each write, a query of
the table is checked. In the end each record is in the table once, nothing is pending, sources are
gone, and another run changes nothing.

    python -m tests.simulation.lake --schedules 5000
    python -m tests.simulation.lake --story 1234
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from unittest.mock import patch

from compactor.model import Partition
from compactor.registry.registering import Registration
from compactor.registry.starting import Looked
from tests.simulation.choices import Choices
from tests.simulation.explored import Explored, explore_in_batches, explored
from tests.simulation.faults import Fault
from tests.simulation.lake_world import (
    EXECUTIONS,
    REGISTRY,
    LakeWorld,
    in_one_thread,
    possible_faults,
)
from tests.simulation.ledger import Violation
from tests.simulation.playing import command_line
from tests.simulation.processes import Process
from tests.simulation.tables import DisturbedCommits, events_at
from tests.simulation.turns import Outcome, Schedule, played
from tests.support.memory_store import Call
from tests.support.memory_tables import TableGuard

_DAY, _HOUR = 86_400.0, 3_600.0
# Calls of a failing step before its run fails; the state machine allows a few more.
_CALLS = 3
_LAST_STAGE = 3
_ROUNDS = 12
_BATCH = 100


@dataclass
class _Step:
    """A run's call of a function, which may be repeated."""

    make: Callable[[], Process]
    then: Callable[[object], None]
    calls: int = 0


@dataclass
class _Run:
    """A run as the state machine executes it: step by step, with retries.

    Attributes:
        stage: 0 discovers, 1 compacts, 2 publishes to the table, 3 cleans up.
        steps: steps of this stage that have not started.
        under_way: running steps, by their process.
    """

    name: str
    stage: int = 0
    steps: deque[_Step] = field(default_factory=deque)
    under_way: dict[Process, _Step] = field(default_factory=dict)
    done: list[_Step] = field(default_factory=list)
    items: Sequence[Partition] = ()
    failed: bool = False


@dataclass(frozen=True)
class LakeMutation:
    """A way to remove one guard; like :class:`tests.simulation.mutations.Mutation`."""

    left_out: frozenset[TableGuard] = frozenset()
    applied: Callable[[], AbstractContextManager[object]] = nullcontext


class _Schedule(DisturbedCommits):
    TURNS = 260
    EVENT_RATE = 0.1
    SWITCH_RATE = 0.35
    MOST_PROCESSES = 5
    FAULT_RATES = (0.0, 0.005, 0.02, 0.06)
    WRITES = frozenset({"put", "create", "complete_upload", "delete_source", "table_commit"})
    world: LakeWorld

    def __init__(self, world: LakeWorld, choices: Choices, outcome: Outcome, *, tell: bool) -> None:
        super().__init__(world.clock, choices, outcome, tell=tell)
        self.world = world
        self._batches: dict[Process, list[str]] = {}
        self._runs: dict[str, _Run] = {}
        self._by_hand = 0
        # If no message is lost, there is no reconcile.
        self._loses = choices.chance(0.4)
        self._lost = False
        # The sweep restarts its own runs, but a failed run that a person started stays failed.
        self._failed_by_hand = False

    def _begin(self) -> None:
        for _ in range(2 + self._choices.below(3)):
            self.tell(self.world.produce())

    def _more(self) -> bool:
        while not self._processes:
            self._event()
        return True

    def _look(self) -> None:
        self.world.look()

    def _faults_of(self, call: Call) -> Sequence[Fault]:
        return possible_faults(call)

    def _line(self, process: Process, call: Call, fault: Fault) -> str:
        if call.bucket not in {REGISTRY, EXECUTIONS}:
            return super()._line(process, call, fault)
        line = f"{process.name}: {call.bucket}, {call.name}"
        return line if fault is Fault.NONE else f"{line}   <-- {fault}"

    # Events.

    def _events(self) -> dict[str, Callable[[], object]]:
        usual: dict[str, Callable[[], object]] = {
            "produced": lambda: self.tell(self.world.produce()),
            "delivered": self._deliver,
            "sweep": lambda: self._start(self.world.sweep()),
            "run goes on": self._go_on,
        }
        seldom: dict[str, Callable[[], object]] = {
            "delivered again by its producer": lambda: self.tell(self.world.deliver_again()),
            "withdrawn by its producer": lambda: self.tell(self.world.withdraw()),
            "step called once more": self._call_once_more,
            "run given up": self._give_up,
            "run by hand": self._run_by_hand,
            "an hour passes": lambda: self.world.clock.advance(_HOUR),
            "retention passes": lambda: self.world.clock.advance(2 * _DAY),
            "done item expires": self._forget,
            "message lost": self._lose,
        }
        if self._loses:
            seldom["reconciled"] = lambda: self._start(self.world.reconciler())
        return usual | seldom | events_at(self.world, self.tell)

    def _likely(self, events: Sequence[str]) -> Sequence[str]:
        # Progress of runs is likely, so that the others have something to disturb.
        usual = ["produced", "delivered", "sweep", "run goes on"]
        weights = ["run goes on"] * 3 + ["delivered", "sweep"]
        if self._choices.chance(0.7):
            return [*usual, *weights]
        return [name for name in events if name not in usual]

    def _another_publisher(self) -> Process:
        return self.world.table_publisher("by-hand")

    def _deliver(self) -> None:
        """Deliver a batch of any messages, some of them twice."""
        queue = self.world.queue
        if not queue or len(self._processes) >= self.MOST_PROCESSES:
            return
        bodies = [self._choices.one_of(queue) for _ in range(1 + self._choices.below(4))]
        process = self.world.registrar(bodies)
        self._batches[process] = bodies
        self._start(process)

    def _delivered(self, process: Process) -> None:
        """Remove handled messages from the queue; some stay and are delivered again."""
        bodies = self._batches.pop(process)
        if isinstance(process.answer, Registration):
            failed = {bodies[int(one)] for one in process.answer.failed}
            for body in dict.fromkeys(bodies):
                if (
                    body not in failed
                    and not self._choices.chance(0.2)
                    and body in self.world.queue
                ):
                    self.world.queue.remove(body)

    def _lose(self) -> None:
        if self.world.queue and self._loses:
            self.world.queue.remove(self._choices.one_of(self.world.queue))
            self._lost = True
            self.tell("a message is lost")

    def _forget(self) -> None:
        """Let a finished item expire."""
        place = self._choices.one_of([None, *self.world.done_items()])
        if place is not None:
            del self.world.registry.items[place]
            self.tell(f"the item of {place} expires")

    # Runs.

    def _run_by_hand(self) -> None:
        self._by_hand += 1
        name = f"by-hand-{self._by_hand}"
        self._runs[name] = self._begun(name)
        self.tell(f"somebody starts {name}")

    def _begun(self, name: str) -> _Run:
        run = _Run(name)

        def found(items: object) -> None:
            assert isinstance(items, Sequence)
            run.items = items

        run.steps.append(_Step(lambda: self.world.discoverer(name), found))
        return run

    def _known_runs(self) -> list[_Run]:
        for name in self.world.executions.running:
            if name not in self._runs:
                self._runs[name] = self._begun(name)
        return list(self._runs.values())

    def _go_on(self) -> None:
        """Start the next step of a run, while its other steps may be running."""
        runs = self._known_runs()
        if runs:
            self._advance(self._choices.one_of(runs))

    def _advance(self, run: _Run) -> None:
        if not run.steps and not run.under_way:
            self._next_stage(run)
        if run.steps and len(self._processes) < self.MOST_PROCESSES:
            self._call(run, run.steps.popleft())

    def _call(self, run: _Run, step: _Step) -> None:
        process = step.make()
        step.calls += 1
        run.under_way[process] = step
        self._start(process)

    def _next_stage(self, run: _Run) -> None:
        run.stage += 1
        run.done.clear()
        if run.stage == 1 and not run.failed:
            for item in run.items:
                self._add(run, partial(self.world.compactor, run.name, item))
        elif run.stage == 2 and not (run.failed and not run.items):
            self._add(run, partial(self.world.table_publisher, run.name))
        elif run.stage == 3 and not run.failed:
            assert self.world.settings.deletes
            for path in self.world.due():
                self._add(run, partial(self.world.clean_up, run.name, path))
        if run.stage > _LAST_STAGE:
            self._end_run(run)
        elif not run.steps:
            self._next_stage(run)

    def _add(self, run: _Run, make: Callable[[], Process]) -> None:
        run.steps.append(_Step(make, lambda _: None))

    def _end_run(self, run: _Run) -> None:
        self._runs.pop(run.name, None)
        if run.name in self.world.executions.running:
            self.world.executions.end(run.name, failed=run.failed)
        else:
            self._failed_by_hand = run.failed or self._failed_by_hand
        self.tell(f"{run.name} has {'failed' if run.failed else 'come to its end'}")

    def _step_ended(self, run: _Run, process: Process) -> None:
        step = run.under_way.pop(process)
        if process.error is None:
            step.then(process.answer)
            run.done.append(step)
        elif step.calls < _CALLS:
            run.steps.append(step)
        else:
            run.failed = True

    def _call_once_more(self) -> None:
        """Call a running or finished step a second time, as Lambda may."""
        found = [
            (run, step)
            for run in self._runs.values()
            for step in [*run.under_way.values(), *run.done]
        ]
        if found and len(self._processes) < self.MOST_PROCESSES:
            run, step = self._choices.one_of(found)
            self.tell(f"a step of {run.name} is called once more")
            self._start(step.make())

    def _give_up(self) -> None:
        """Abort a run; the functions that it called continue."""
        runs = self._known_runs()
        if runs:
            run = self._choices.one_of(runs)
            run.failed = True
            self._end_run(run)

    def _judge(self, process: Process) -> None:
        super()._judge(process)
        if process in self._batches:
            self._delivered(process)
        if isinstance(process.answer, Looked) and process.answer.started is not None:
            self.outcome.faults["run started"] += 1
        for run in list(self._runs.values()):
            if process in run.under_way:
                self._step_ended(run, process)

    # The end.

    def end(self) -> None:
        """Run without faults until everything is at rest, and check the final state.

        Raises:
            Violation: the final state is wrong.
        """
        self.tell("no more faults from here on")
        while self._processes:
            self._turn(self._processes[-1])
        for run in self._known_runs():
            self._carry_out(run)
        self.world.clock.advance(_HOUR)
        self._drain()
        if self._lost:
            self._finish(self.world.reconciler())
        self._until_nothing_is_due()
        if self._failed_by_hand:
            # The alarms RunFailed and RunAborted ask the operator to do this.
            self._by_hand_to_its_end()
        self.world.must_be_in_the_table()
        if self._choices.chance(0.5):
            self.tell(self.world.rewrite_and_expire())
        self.world.look()
        self.world.clock.advance(2 * _DAY)
        self._by_hand_to_its_end()
        self._drain()
        self.world.must_be_cleaned_up()
        self._until_nothing_is_due()
        before = self.world.kept()
        self._by_hand_to_its_end()
        self.world.must_be_in_the_table()
        if self.world.kept() != before:
            raise Violation("a run with nothing to do changed something")

    def _until_nothing_is_due(self) -> None:
        for _ in range(_ROUNDS):
            self.world.clock.advance(_HOUR)
            looked = self._finish(self.world.sweep()).answer
            for run in self._known_runs():
                self._carry_out(run)
            self._drain()
            if isinstance(looked, Looked) and looked.started is None:
                return
        raise Violation(f"runs are still started after {_ROUNDS} rounds")

    def _by_hand_to_its_end(self) -> None:
        self._run_by_hand()
        for run in self._known_runs():
            self._carry_out(run)

    def _drain(self) -> None:
        """Deliver all that is left in the queue."""
        while self.world.queue:
            self._finish(self.world.registrar([self.world.queue.pop(0)]))

    def _carry_out(self, run: _Run) -> None:
        while run.name in self._runs:
            self._advance(run)
            while self._processes:
                self._turn(self._processes[-1])


#: The guards without which records are doubled or lost on the way into the table.
LAKE_MUTATIONS: Mapping[str, LakeMutation] = {
    **{
        guard.value: LakeMutation(frozenset({guard}))
        for guard in TableGuard
        # In these schedules no user deletes rows.
        if guard is not TableGuard.DELETES
    },
    "the condition of a put": LakeMutation(
        applied=lambda: patch("tests.support.memory_registry.supersedes", lambda new, old: True)
    ),
}


#: Seeds of schedules that noticed; an outdated one only costs time.
LAKE_NOTICED: Mapping[str, int] = {
    "condition of the table's commit": 9,
    "look at the table's number before each commit": 9,
    "the condition of a put": 20,
}


def play_lake(
    seed: int,
    *,
    replay: Sequence[int] | None = None,
    mutation: LakeMutation | None = None,
    tell: bool = False,
) -> Outcome:
    """Run one schedule to its end, or to the first broken promise."""
    mutation = mutation or LakeMutation()
    choices = Choices(seed, replay)

    def make(outcome: Outcome) -> Schedule:
        return _Schedule(LakeWorld(choices, mutation.left_out), choices, outcome, tell=tell)

    with in_one_thread(), mutation.applied():
        return played(choices, make)


def explore_lakes(first: int, count: int, name: str = "") -> Explored:
    """Run schedules sequentially; with a mutation, stop at the first broken promise."""
    mutation = LAKE_MUTATIONS[name] if name else None
    return explored(partial(play_lake, mutation=mutation), first, count, all_of_them=not name)


def explore_many_lakes(first: int, count: int, processes: int | None = None) -> Explored:
    """Run schedules on all processors."""
    return explore_in_batches(explore_lakes, first, count, batch=_BATCH, processes=processes)


if __name__ == "__main__":
    sys.exit(command_line("tests.simulation.lake", play_lake, explore_many_lakes))
