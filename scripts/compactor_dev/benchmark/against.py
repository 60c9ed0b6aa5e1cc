"""``make bench ARGS="--against COMMIT"``: two versions of the worker, in turn, on one server.

A shared machine has slow minutes, and each version needs its own to be measured in. So each
round runs both, one directly after the other, and in the next round in the opposite order
(ABBA); what counts is the ratio within a round, and how far the rounds differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from compactor.errors import CompactorError, IntegrityError, InvalidInput
from compactor_dev import REPOSITORY
from compactor_dev.benchmark.checkout import OPTION, Checkout, checked_out
from compactor_dev.benchmark.clients import Client, version
from compactor_dev.benchmark.datasets import DataSet
from compactor_dev.benchmark.front import Lane
from compactor_dev.benchmark.machine import describe
from compactor_dev.benchmark.results import Measurement, SetResult, Spread
from compactor_dev.benchmark.server import bench_server
from compactor_dev.benchmark.session import Bench
from compactor_dev.benchmark.table import figure
from compactor_dev.benchmark.tools import Tools

TODAY = "today"
ROUNDS, QUICK_ROUNDS = 6, 2
QUICK_OBJECTS = 5_000
# Enough to compile all that a version imports, and to open its connections once.
_WARMING_OBJECTS = 100
HEADS = ("Round", "First", "Objects/s, {}", "today", "Ratio", "CPU ms/object, {}", "today", "Ratio")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared, and how often.

    Attributes:
        commit: as it was given.
        lanes: one or more.
        settings: fields of the run's input, for both versions.
        on_step: told what comes next.
    """

    commit: str
    sets: Sequence[DataSet]
    lanes: Sequence[Lane]
    rounds: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    on_step: Callable[[str], None] = lambda text: None

    def steps(self) -> int:
        """How often :attr:`on_step` is told something."""
        return len(self.sets) * (2 + len(self.lanes) * 2 * self.rounds)


class Pair(NamedTuple):
    """One round: the same work by both versions."""

    old: Measurement
    today: Measurement

    @property
    def speed(self) -> float:
        """Objects a second of today's, for each of the old one's."""
        return self.today.objects_per_second / self.old.objects_per_second

    @property
    def cpu(self) -> float:
        """Likewise, CPU time for an object."""
        return self.today.cpu_ms_per_object / self.old.cpu_ms_per_object


def compare(
    wanted: Comparison, tools: Tools, directory: Path
) -> tuple[Checkout, dict[str, SetResult]]:
    """Measure both versions on every data set, each on a server of its own.

    Args:
        wanted: what, and how often.
        tools: the programs.
        directory: for servers, logs and temporary data.

    Returns:
        The old version, whose tree is gone by then, and what was measured, by set.

    Raises:
        InvalidInput: there is no such commit, or its worker cannot be started.
        CompactorError: a server or a worker failed.
    """
    with checked_out(REPOSITORY, wanted.commit) as old:
        both = (
            version(old.commit, old.subject, old.tree / "functions"),
            version(TODAY, "what is checked out here", REPOSITORY / "functions"),
        )
        return old, {
            one.name: _compare_on(one, both, wanted, tools, directory) for one in wanted.sets
        }


def _compare_on(
    data_set: DataSet,
    both: tuple[Client, Client],
    wanted: Comparison,
    tools: Tools,
    directory: Path,
) -> SetResult:
    now = datetime.now(UTC)
    result = SetResult(
        data_set.title, data_set.objects, now.isoformat(timespec="seconds"), describe(tools)
    )
    plain = Lane(0.0)
    lanes = list(dict.fromkeys([plain, *wanted.lanes]))
    with bench_server(data_set, tools, directory / "server", lanes) as server:
        wanted.on_step(f"{data_set.title}: storing")
        server.fill([_WARMING_OBJECTS], now.timestamp())
        wanted.on_step(f"{data_set.title}: warming the cache and both versions")
        server.warm(plain)
        bench = Bench(server, tools, directory, wanted.settings)
        for client in both:
            _warm(bench, client, plain)
        for lane in wanted.lanes:
            for number in range(1, wanted.rounds + 1):
                for client in in_turn(both, number):
                    wanted.on_step(f"{data_set.title}: {client.name}, {lane.name}, round {number}")
                    result.measurements.append(own(client, bench.measurement(client, lane, number)))
    return result


def in_turn(both: tuple[Client, Client], number: int) -> tuple[Client, Client]:
    """The order of one round, from 1: ABBA, so that no version is always the second."""
    return both if number % 2 else (both[1], both[0])


def _warm(bench: Bench, client: Client, lane: Lane) -> None:
    few = Client(client.name, client.title, client.command, _WARMING_OBJECTS, client.functions)
    try:
        own(client, bench.measurement(few, lane, 0))
    except IntegrityError:
        raise
    except CompactorError as error:
        accepted = f"a commit whose worker runs here ({' '.join(str(error).split())})"
        raise InvalidInput(OPTION, client.name, accepted) from error


def own(client: Client, measured: Measurement) -> Measurement:
    """The measurement, if it is that of the version meant.

    Raises:
        IntegrityError: another version's handler ran, as one that is installed could.
    """
    handler = measured.detail.get("handler", "")
    tree = os.path.realpath(client.functions or "")
    if not handler.startswith(tree + os.sep):
        raise IntegrityError(
            f"the worker of {client.name} was imported from {handler or 'nowhere'}"
        )
    return measured


def first_of(data_set: DataSet) -> DataSet:
    """What ``--quick`` takes of a set."""
    few = min(QUICK_OBJECTS, data_set.objects)
    return replace(data_set, objects=few, title=f"the first {few:,} of {data_set.title}")


def pairs_of(result: SetResult, lane: str) -> list[Pair]:
    """The rounds of one lane that both versions finished."""
    found = []
    measured = [one for one in result.measurements if one.lane == lane]
    for number in sorted({one.round for one in measured}):
        of_round = {one.client == TODAY: one for one in measured if one.round == number}
        if len(of_round) == 2:
            found.append(Pair(of_round[False], of_round[True]))
    return found


def rows_of(result: SetResult, lane: str) -> list[list[str]]:
    """A row for each round, for :data:`HEADS`."""
    order = [one.client for one in result.measurements if one.lane == lane]
    rows = []
    for place, pair in enumerate(pairs_of(result, lane)):
        speeds, costs = _both(pair, "objects_per_second"), _both(pair, "cpu_ms_per_object")
        first = order[2 * place]
        rows.append(
            [str(pair.old.round), first, *speeds, f"{pair.speed:.3f}", *costs, f"{pair.cpu:.3f}"]
        )
    return rows


def summary_of(result: SetResult, lane: str, commit: str) -> str:
    """Both ratios in one line: median, smallest and largest of the rounds."""
    pairs = pairs_of(result, lane)
    speed, cpu = Spread.of(one.speed for one in pairs), Spread.of(one.cpu for one in pairs)
    return (
        f"{result.title}, {lane}: today's has {_ratio(speed)} times the objects/s of {commit},"
        f" and takes {_ratio(cpu)} times its CPU an object; {len(pairs)} rounds."
    )


def _both(pair: Pair, name: str) -> list[str]:
    return [figure(getattr(one, name)) for one in pair]


def _ratio(spread: Spread) -> str:
    return f"{spread.median:.3f} ({spread.low:.3f} to {spread.high:.3f})"
