"""Damages each object of the state between the steps of a few scenarios.

A scenario is run once to record the state after each step. Then it is run again for each of these
objects and each kind of damage, followed by more runs and a clean-up. The records that readers see
are checked after each request that can change them. In the end either every record is readable
once, or the last run has reported the reason in one line.

The loss of the newest entry goes unnoticed while no checkpoint covers it, as after a crash. It is
left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import permutations

from compactor.errors import IntegrityError
from compactor.log.log_reader import all_logs
from tests.simulation.processes import without_threads
from tests.support.cleaning import DAY, LINE
from tests.support.examples import PARTITION
from tests.support.memory_hooks import Call, Crashed
from tests.support.world import LOG_LINE, World

Step = Callable[[World], object]
_STATE = "_compactor/"
_CHANGING = frozenset({"complete_upload", "delete_source", "put", "create"})
_NUMBER = re.compile(r"\d{20}")


class Kind(StrEnum):
    """A kind of damage to the state."""

    DELETED = "deleted"
    SWAPPED = "swapped with another of its kind"
    REPLACED = "replaced by another of its kind"
    LOG_DELETED = "the whole log deleted"


@dataclass(frozen=True)
class Damage:
    """One damage, after a number of steps of a scenario."""

    scenario: str
    after: int
    kind: Kind
    key: str = ""
    other: str = ""


@dataclass
class Tried:
    """The results of many damages.

    Attributes:
        stopped: the number of damages after which the last run ended with a reported error.
        problems: each damage that broke a promise, and the promise.
    """

    damages: int = 0
    stopped: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[Damage, str]] = field(default_factory=list)


# Scenarios.


def _add(*names: str) -> Step:
    def add(world: World) -> None:
        for name in names:
            world.add(name, LINE if name.endswith(".json") else LOG_LINE, 2)

    return add


def _run(world: World) -> None:
    world.run()


def _clean_up(world: World) -> None:
    world.clock.advance(8 * DAY)
    world.clean_up()


def _deliver_again(world: World) -> None:
    key = PARTITION.prefix + "a.json"
    body = world.store.contents("source")[key]
    world.store.seed("source", key, body, etag=f"{1:032x}-1")


def _overwrite(world: World) -> None:
    """Put new records over a compacted source; they belong into no output."""
    expected = set(world.records)
    _add("a.json")(world)
    world.records = expected


def _died(when: str) -> Step:
    def run(world: World) -> None:
        hooks = world.store.hooks
        kept = [*hooks.before], [*hooks.after]
        hooks.crash("before", when)
        with suppress(Crashed):
            world.run()
        hooks.before[:], hooks.after[:] = kept

    return run


def _drop_uploads(world: World) -> None:
    for upload_id, key in world.store.unfinished_uploads("lake").items():
        world.store.abort_upload("lake", key, upload_id)


_FIRST = (_add("a.json", "b.json", "c.log"), _run)
_SECOND = (*_FIRST, _add("d.json", "e.log"), _run)
SCENARIOS: Mapping[str, Sequence[Step]] = {
    "a first run": _FIRST,
    "a second run with new sources": _SECOND,
    "a third run with nothing to do": (*_SECOND, _run),
    "clean-up": (*_FIRST, _clean_up, _add("d.json"), _run, _clean_up),
    "delivered again": (*_FIRST, _deliver_again, _run, _clean_up),
    "overwritten": (*_FIRST, _overwrite, _run, _clean_up),
    "died before it published": (_FIRST[0], _died("complete_upload"), _add("d.json"), _run),
    "died, and its upload was lost": (
        _FIRST[0],
        _died("complete_upload"),
        _drop_uploads,
        _add("d.json"),
        _run,
        _clean_up,
    ),
}


# One run of a scenario.


def _state(world: World) -> dict[str, bytes]:
    found = world.store.contents("lake", _STATE)
    return {key: body for key, body in found.items() if "/runs/" not in key}


class _Play:
    """One run of a scenario with a damage, checked after each request."""

    def __init__(self, scenario: str, after_step: Callable[[World, int], None]) -> None:
        self.world = World(delete_after="7d")
        self.world.store.add_bucket("source")
        self.line = ""
        self._steps = SCENARIOS[scenario]
        self._after_step = after_step
        self.world.store.hooks.after.append(self._after)

    def _after(self, call: Call) -> None:
        if call.name in _CHANGING:
            self.world.check(call)

    def _do(self, step: Step) -> None:
        self.line = ""
        try:
            step(self.world)
        except IntegrityError as error:
            self.line = str(error)
            assert "commit" in self.line or "s3://" in self.line, self.line
            assert "\n" not in self.line, self.line
        self.world.check()

    def steps(self) -> None:
        """Run the scenario."""
        for number, step in enumerate(self._steps, 1):
            self._do(step)
            self._after_step(self.world, number)

    def end(self) -> None:
        """Do more runs and a clean-up; no record may be missing unless a run reported an error."""
        for step in (_run, _run, _add("y.json"), _run, _clean_up, _add("z.log"), _run):
            self._do(step)
        if not self.line:
            missing = self.world.records - set(self.world.destination())
            assert not missing, f"records {sorted(missing)} are in no output, and nothing says so"


def _apply(damage: Damage, world: World) -> None:
    bodies = _state(world)
    key, other = damage.key, damage.other
    changes: Mapping[Kind, dict[str, bytes | None]] = {
        Kind.DELETED: {key: None},
        Kind.SWAPPED: {key: bodies.get(other), other: bodies.get(key)},
        Kind.REPLACED: {key: bodies.get(other)},
        Kind.LOG_DELETED: dict.fromkeys(name for name in bodies if "/commits/" in name),
    }
    for name, body in changes[damage.kind].items():
        if body is None:
            world.store.remove("lake", name)
        else:
            world.store.seed("lake", name, body)


def try_out(damage: Damage) -> str:
    """Run a scenario with a damage.

    Returns:
        The error that its last run reported, in one line; empty if there was none.

    Raises:
        AssertionError: a promise is broken.
    """

    def harm(world: World, step: int) -> None:
        if step == damage.after:
            _apply(damage, world)

    with without_threads():
        play = _Play(damage.scenario, harm)
        play.steps()
        play.end()
    return play.line


# All of them.


def damages(scenario: str) -> Iterator[Damage]:
    """Yield every possible damage to the state of a scenario, after each of its steps."""
    states: list[tuple[dict[str, bytes], set[str]]] = []

    def look(world: World, _: int) -> None:
        states.append((_state(world), _unproven(world)))

    with without_threads():
        _Play(scenario, look).steps()
    for after, (bodies, unproven) in enumerate(states, start=1):
        if any("/commits/" in key for key in bodies) and not unproven:
            yield Damage(scenario, after, Kind.LOG_DELETED)
        for key in bodies:
            if key not in unproven:
                yield Damage(scenario, after, Kind.DELETED, key)
        yield from _exchanges(scenario, after, bodies)


def _exchanges(scenario: str, after: int, keys: Iterable[str]) -> Iterator[Damage]:
    for key, other in permutations(keys, 2):
        if _NUMBER.sub("", key) == _NUMBER.sub("", other):
            yield Damage(scenario, after, Kind.REPLACED, key, other)
            if other > key:
                yield Damage(scenario, after, Kind.SWAPPED, key, other)


def _unproven(world: World) -> set[str]:
    """Return the keys of entries that no checkpoint covers."""
    return {
        key
        for log in all_logs(world.settings.state, world.store)
        for number, key in log.keys.items()
        if number > max(log.checkpoints, default=0)
    }


def try_all(every: int = 1, first: int = 0) -> Tried:
    """Try all damages, or one in ``every`` and the first of each kind."""
    tried = Tried()
    each = (damage for scenario in SCENARIOS for damage in damages(scenario))
    for number, damage in enumerate(each):
        if number % every != first and tried.kinds[damage.kind]:
            continue
        tried.damages += 1
        tried.kinds[damage.kind] += 1
        try:
            tried.stopped += bool(try_out(damage))
        except AssertionError as error:
            tried.problems.append((damage, str(error).partition("\n")[0]))
    return tried


def figures(tried: Tried) -> dict[str, object]:
    """Return the figures for ``make proof``, as JSON."""
    return {
        "damages": tried.damages,
        "stopped": tried.stopped,
        "kinds": dict(tried.kinds),
        "violations": len(tried.problems),
    }
