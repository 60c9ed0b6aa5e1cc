"""Damages each object of the state after each request: no record may be doubled or lost.

    python -m tests.simulation.damage                    all combinations
    python -m tests.simulation.damage --every 50         every fiftieth of them

A scenario is run once to record the state after each request. Then it is run again for each of
these objects and each kind of damage, followed by more runs and a clean-up. The records that
readers see are checked after each request that can change them. In the end either every record is
readable once, or the last run has reported the reason in one line.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import permutations
from pathlib import Path

from compactor.errors import IntegrityError
from tests.simulation.processes import without_threads
from tests.support.cleaning import DAY, LINE
from tests.support.examples import PARTITION
from tests.support.memory_hooks import Call, Crashed
from tests.support.world import LOG_LINE, World

Step = Callable[[World], object]
_STATE = "_compactor/"
_CHANGING = frozenset({"complete_upload", "delete_source", "put", "create"})
_NUMBER = re.compile(r"\d{20}")
_SHOWN = 5


class Kind(StrEnum):
    """A kind of damage to an object of the state."""

    DELETED = "deleted"
    AWAY = "deleted, and brought back after the step"
    SWAPPED = "swapped with another of its kind"
    REPLACED = "replaced by another of its kind"
    EARLIER = "replaced by an earlier version"
    ALL_EARLIER = "the whole state restored as it was before the step"
    OVERTAKEN = "deleted, and another worker does everything at once"


@dataclass(frozen=True)
class Damage:
    """One damage to one object, after a number of requests of a scenario."""

    scenario: str
    after: int
    kind: Kind
    key: str = ""
    other: str = ""
    body: bytes = field(default=b"", repr=False)


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

    @property
    def line(self) -> str:
        """The figures in one line."""
        return (
            f"{self.damages:,} damages of {len(self.kinds)} kinds in {len(SCENARIOS)} scenarios,"
            f" {self.stopped:,} ended with their line, {len(self.problems):,} violations"
        )


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
    _add("a.json")(world)


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

    def __init__(self, scenario: str, at_request: Callable[[_Play, Call], None]) -> None:
        self.world = World(clean_up="delete", retention_days=7)
        self.world.store.add_bucket("source")
        self.requests = 0
        self.before_step: dict[str, bytes] = {}
        self.after_step: list[Callable[[], None]] = []
        self.line = ""
        self._steps = SCENARIOS[scenario]
        self._at_request = at_request
        self._busy = False
        self.world.store.hooks.after.append(self._after)

    def _after(self, call: Call) -> None:
        if call.name in _CHANGING:
            self.world.check(call)
        if not self._busy:
            self.requests += 1
            self._at_request(self, call)

    def _do(self, step: Step) -> None:
        self.line = ""
        self.before_step = _state(self.world)
        try:
            step(self.world)
        except IntegrityError as error:
            self.line = str(error)
            assert "commit" in self.line or "s3://" in self.line, self.line
            assert "\n" not in self.line, self.line
        self.world.check()
        while self.after_step:
            self.after_step.pop()()

    def steps(self) -> None:
        """Run the scenario."""
        for step in self._steps:
            self._do(step)

    def end(self) -> None:
        """Do more runs and a clean-up; no record may be missing unless a run reported an error."""
        self._busy = True
        for step in (_run, _run, _add("y.json"), _run, _clean_up, _add("z.log"), _run):
            self._do(step)
        if not self.line:
            missing = self.world.records - set(self.world.destination())
            assert not missing, f"records {sorted(missing)} are in no output, and nothing says so"

    def overtake(self) -> None:
        """Let another worker do all remaining work, and compact a new source."""
        self._busy = True
        _add("x.json")(self.world)
        with suppress(IntegrityError):
            self.world.run()
        self._busy = False


def _apply(damage: Damage, play: _Play) -> None:
    bodies = _state(play.world)
    key, other = damage.key, damage.other
    changes: Mapping[Kind, dict[str, bytes | None]] = {
        Kind.DELETED: {key: None},
        Kind.AWAY: {key: None},
        Kind.OVERTAKEN: {key: None},
        Kind.SWAPPED: {key: bodies.get(other), other: bodies.get(key)},
        Kind.REPLACED: {key: bodies.get(other)},
        Kind.EARLIER: {key: damage.body},
        Kind.ALL_EARLIER: {**dict.fromkeys(bodies), **play.before_step},
    }
    _change(play, changes[damage.kind])
    if damage.kind is Kind.AWAY:
        play.after_step.append(lambda: _change(play, {key: bodies[key]}))
    if damage.kind is Kind.OVERTAKEN:
        play.overtake()


def _change(play: _Play, bodies: Mapping[str, bytes | None]) -> None:
    for key, body in bodies.items():
        if body is None:
            play.world.store.remove("lake", key)
        else:
            play.world.store.seed("lake", key, body)


def try_out(damage: Damage) -> str:
    """Run a scenario with a damage.

    Returns:
        The error that its last run reported, in one line; empty if there was none.

    Raises:
        AssertionError: a promise is broken.
    """

    def harm(play: _Play, _: Call) -> None:
        if play.requests == damage.after:
            _apply(damage, play)

    with without_threads():
        play = _Play(damage.scenario, harm)
        play.steps()
        play.end()
    return play.line


# All of them.


def damages(scenario: str) -> Iterator[Damage]:
    """Yield every possible damage to the state of a scenario, after each of its requests."""
    seen: list[tuple[dict[str, bytes], bool]] = []

    def look(play: _Play, _: Call) -> None:
        bodies = _state(play.world)
        seen.append((bodies, play.before_step != bodies))

    with without_threads():
        _Play(scenario, look).steps()
    versions: dict[str, set[bytes]] = {}
    for after, (bodies, changed) in enumerate(seen, start=1):
        if changed:
            yield Damage(scenario, after, Kind.ALL_EARLIER)
        for key, body in bodies.items():
            versions.setdefault(key, set()).add(body)
            yield Damage(scenario, after, Kind.DELETED, key)
            yield Damage(scenario, after, Kind.AWAY, key)
            yield Damage(scenario, after, Kind.OVERTAKEN, key)
            for earlier in sorted(versions[key] - {body}):
                yield Damage(scenario, after, Kind.EARLIER, key, body=earlier)
        yield from _exchanges(scenario, after, bodies)


def _exchanges(scenario: str, after: int, keys: Iterable[str]) -> Iterator[Damage]:
    for key, other in permutations(keys, 2):
        if _kind_of(other) == _kind_of(key):
            yield Damage(scenario, after, Kind.REPLACED, key, other)
            if other > key:
                yield Damage(scenario, after, Kind.SWAPPED, key, other)


def _kind_of(key: str) -> str:
    return _NUMBER.sub("", key)


def try_all(
    every: int = 1, scenarios: Sequence[str] = tuple(SCENARIOS), *, first: int = 0
) -> Tried:
    """Try all damages, or one in ``every`` of each scenario and the first of each kind."""
    tried = Tried()
    for scenario in scenarios:
        for number, damage in enumerate(damages(scenario)):
            if number % every != first and tried.kinds[damage.kind]:
                continue
            tried.damages += 1
            tried.kinds[damage.kind] += 1
            try:
                tried.stopped += bool(try_out(damage))
            except AssertionError as error:
                tried.problems.append((damage, str(error).partition("\n")[0]))
    return tried


def main() -> int:
    """Parse the arguments, try the damages, print the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.damage", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--every", type=int, default=1, help="only each so many (default 1)")
    parser.add_argument("--scenario", choices=SCENARIOS, action="append", help="only this one")
    parser.add_argument("--figures", type=Path, metavar="FILE", help="write the figures as JSON")
    args = parser.parse_args()
    tried = try_all(args.every, args.scenario or tuple(SCENARIOS))
    for damage, problem in tried.problems[:_SHOWN]:
        sys.stdout.write(f"{damage}: {problem}\n")
    if args.figures:
        args.figures.write_text(json.dumps(figures(tried)), encoding="utf-8")
    sys.stdout.write(tried.line + "\n")
    return bool(tried.problems)


def figures(tried: Tried) -> dict[str, object]:
    """Return the figures for ``make proof``, as JSON."""
    return {
        "damages": tried.damages,
        "stopped": tried.stopped,
        "kinds": dict(tried.kinds),
        "violations": len(tried.problems),
    }


if __name__ == "__main__":
    sys.exit(main())
