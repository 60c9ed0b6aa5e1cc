"""Schedules of events: duplicate, late, lost and reordered messages; any process may die.

A schedule is drawn from a seed. Producers write, overwrite and delete; messages are delivered at
least once, in any order, or get lost; sweeps and runs start at any time, also between each other's
requests, and die before or after any request. Then the remaining messages are delivered, lost
objects are found by reconciling (only if messages were lost), and runs continue until nothing is
due. Each record must then be readable exactly once, with nothing pending.

    python -m tests.simulation.events --schedules 5000
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import current_thread, main_thread

from compactor.errors import CompactorError
from compactor.model import Partition
from compactor.orchestration.reconcile import Reconciliation, reconcile
from compactor.registry.items import OPEN_STATES
from compactor.registry.starting import Looked
from tests.simulation.processes import without_threads
from tests.support.event_world import EventWorld
from tests.support.memory_store import Call, Crashed

_PARTITIONS = ("a", "b", "c", "d")
_NAMES = 3
_STEPS = (20, 60)
# Probabilities at a request: the actor dies there, or others act in between.
_DIES, _MEANWHILE, _AT_THE_TABLE = 0.012, 0.02, 0.1
_DEEPEST = 2
_BATCH = 100
_LAST_ROUNDS = 12
# Longer than every threshold.
_ROUND_SECONDS = 3_600.0


@dataclass
class Outcome:
    """The result of a schedule.

    Attributes:
        violation: the broken promise; empty if all held.
        counts: how often each kind of thing happened.
    """

    violation: str = ""
    counts: Counter[str] = field(default_factory=Counter)


class Schedule:
    """One schedule.

    Args:
        seed: determines all of the schedule.
    """

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        few = self._draw.random() < 0.5
        self.world = EventWorld(objects=1 if few else 3, seconds=600)
        self.counts: Counter[str] = Counter()
        # If no message is lost, nothing needs to be reconciled.
        self._loses = self._draw.random() < 0.4
        self._queue: list[str] = []
        self._begun: list[tuple[str, Partition]] = []
        self._depth = 0
        self._calm = False
        self.world.registry.hook = lambda step: self._at(f"table: {step}")
        self.world.executions.hook = lambda step: self._at(f"executions: {step}")
        self.world.store.hooks.before.append(lambda call: self._at_store("before", call))
        self.world.store.hooks.after.append(lambda call: self._at_store("after", call))

    def play(self) -> Outcome:
        """Run the schedule; the outcome names the broken promise, if any."""
        try:
            for _ in range(self._draw.randint(*_STEPS)):
                self._step()
                self.world.check()
            self._end()
        except AssertionError as broken:
            return Outcome(str(broken) or repr(broken), self.counts)
        return Outcome("", self.counts)

    def _step(self) -> None:
        act = self._draw.choices(
            [
                self._produce,
                self._deliver,
                self._sweep,
                self._run,
                self._lose,
                self._wait,
                self._forget,
            ],
            [6, 6, 4, 8, 1, 2, 1],
        )[0]
        self._alive(act)

    def _alive(self, act: Callable[[], None]) -> None:
        """Let one actor work until it finishes, fails or dies."""
        self._depth += 1
        try:
            act()
        except Crashed:
            self.counts["died"] += 1
        except CompactorError as error:
            # The state machine or the queue retries it.
            self.counts[type(error).__name__] += 1
        finally:
            self._depth -= 1

    def _produce(self) -> None:
        draw, world = self._draw, self.world
        name = f"{draw.choice(_PARTITIONS)}/{draw.randrange(_NAMES)}.json"
        with self._calmly():
            there = world.store.head("source", f"logs/{name}")
            if there is not None and draw.random() < 0.35:
                told = world.remove(name)
            elif there is not None and draw.random() < 0.2:
                # The same bytes again: the same ETag, but a new event.
                body = world.store.contents("source", f"logs/{name}")[f"logs/{name}"]
                records = set(world.records)
                told = world.write(name, body)
                world.records = records
            else:
                told = world.put(name, 1)
        self.counts["produced"] += 1
        self._queue.append(told)

    def _deliver(self) -> None:
        draw = self._draw
        count = draw.randint(1, 4)
        chosen = draw.sample(self._queue, min(count, len(self._queue)))
        if not chosen:
            return
        if draw.random() < 0.3:
            chosen.append(chosen[0])
        done = self.world.deliver(*chosen)
        self.counts["delivered"] += len(chosen)
        for body in dict.fromkeys(chosen):
            # Delivery is at least once: some messages stay in the queue.
            if not done.failed and draw.random() < 0.75 and body in self._queue:
                self._queue.remove(body)

    def _lose(self) -> None:
        if self._queue and self._loses:
            self._queue.remove(self._draw.choice(self._queue))
            self.counts["lost"] += 1

    def _wait(self) -> None:
        self.world.clock.advance(self._draw.choice([1.0, 60.0, 700.0, 4_000.0]))

    def _forget(self) -> None:
        """Let a finished item expire."""
        items = self.world.registry.items
        done = [place for place, one in items.items() if one.state not in OPEN_STATES]
        if done:
            del items[self._draw.choice(done)]
            self.counts["expired"] += 1

    def _sweep(self) -> None:
        looked: Looked = self.world.sweep()
        self.counts["started"] += looked.started is not None

    def _run(self) -> None:
        """Do a part of an execution: discovery, one of its partitions, or its end."""
        world, draw = self.world, self._draw
        running = list(world.executions.running)
        if not running:
            return
        name = draw.choice(running)
        if not any(one[0] == name for one in self._begun) or draw.random() < 0.2:
            self._begun += [(name, item) for item in world.begin(name)]
        mine = [one for one in self._begun if one[0] == name]
        if not mine:
            world.executions.end(name)
            return
        run_id, item = draw.choice(mine)
        world.compact(run_id, item)
        self.counts["compacted"] += 1
        with suppress(ValueError):
            self._begun.remove((run_id, item))
        if draw.random() < 0.4 and name in world.executions.running:
            world.executions.end(name, failed=draw.random() < 0.3)

    def _at_store(self, when: str, call: Call) -> None:
        self._at(f"store {when}: {call.name}")

    def _at(self, place: str) -> None:
        """At a request, let its actor die or others act, by chance."""
        if self._calm or not self._depth:
            return
        assert current_thread() is main_thread(), f"{place}: a thread draws in no known order"
        if self._draw.random() < _DIES:
            raise Crashed(place)
        often = _AT_THE_TABLE if place.startswith("table") else _MEANWHILE
        if self._depth < _DEEPEST and self._draw.random() < often:
            self.counts["meanwhile"] += 1
            self._step()

    def _end(self) -> None:
        """Finish everything undisturbed, and check the final state."""
        self._calm = True
        world = self.world
        world.clock.advance(_ROUND_SECONDS)
        for body in self._queue:
            world.deliver(body)
        for name in list(world.executions.running):
            world.executions.end(name)
        if self._loses:
            now = world.clock.now()
            given = Reconciliation(world.settings, world.store, now, world.table, workers=1)
            self.counts["reconciled"] += reconcile(given).registered
        for _ in range(_LAST_ROUNDS):
            world.clock.advance(_ROUND_SECONDS)
            world.check()
            started = world.sweep().started
            world.run_started()
            if started is None:
                break
        world.must_be_finished()
        # Each batch has one execution; the last one's start may not have been noted.
        batches = world.registry.batch("logs").number - 1
        assert len(world.executions.order) - batches in {0, 1}, "a batch was started twice"

    def _calmly(self) -> _Calm:
        return _Calm(self)


class _Calm:
    """No actor dies or acts within the block: producers are not part of the product."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._before = False

    def __enter__(self) -> None:
        self._before, self._schedule._calm = self._schedule._calm, True

    def __exit__(self, *error: object) -> None:
        self._schedule._calm = self._before


def play(seed: int) -> Outcome:
    """Run the schedule of a seed; it is the same in every process."""
    with without_threads():
        return Schedule(seed).play()


def explore(first: int, schedules: int) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Run schedules; return their counts, and the seeds that broke a promise."""
    counts: Counter[str] = Counter()
    broken = []
    for seed in range(first, first + schedules):
        outcome = play(seed)
        counts += outcome.counts
        if outcome.violation:
            broken.append((seed, outcome.violation))
    return counts, broken


def explore_many(first: int, schedules: int) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Do the same as :func:`explore` on all processors."""
    total: Counter[str] = Counter()
    broken = []
    starts = range(first, first + schedules, _BATCH)
    sizes = [min(_BATCH, first + schedules - start) for start in starts]
    # Spawn, because a fork would copy the parent's threads and servers.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for counts, found in pool.map(explore, starts, sizes):
            total += counts
            broken += found
    return total, broken


def main() -> int:
    """Run schedules; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.events")
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    args = parser.parse_args()
    began = time.monotonic()
    counts, broken = explore_many(args.first, args.schedules)
    for seed, violation in broken[:5]:
        sys.stdout.write(f"schedule {seed}: {violation}\n")
    told = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
    seconds = time.monotonic() - began
    line = f"{args.schedules:,} schedules in {seconds:.0f} s, {len(broken)} broken; {told}"
    sys.stdout.write(line + "\n")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
