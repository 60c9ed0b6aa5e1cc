"""``make bench ARGS="--against COMMIT"``: two versions of the worker, in turn, on one server.

A shared machine has slow minutes, and each version needs its own to be measured in. So each
round runs both, one directly after the other, and in the next round in the opposite order
(ABBA, then BAAB); what counts is the ratio within a round, and how far the rounds differ.
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
from compactor_dev.benchmark.session import Bench, in_turn
from compactor_dev.benchmark.table import figure, parts
from compactor_dev.benchmark.tools import Tools

TODAY = "today"
ROUNDS, QUICK_ROUNDS = 6, 2
QUICK_OBJECTS = 5_000
# Enough to compile all that a version imports, and to open its connections once.
_WARMING_OBJECTS = 100


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

    @property
    def executed(self) -> float | None:
        """Likewise, instructions for an object; None where nobody counts them."""
        old, today = self.old.instructions_per_object, self.today.instructions_per_object
        return today / old if old and today else None


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


class _Column(NamedTuple):
    """A figure of each version, and what today's is for each of the old one's."""

    head: str
    cell: Callable[[Measurement], str]
    ratio: Callable[[Pair], float | None]


def _cpu(one: Measurement) -> str:
    both = parts(one.user_ms_per_object, one.kernel_ms_per_object)
    return f"{figure(one.cpu_ms_per_object)} ({both})"


_COLUMNS = (
    _Column("CPU ms/object (user + kernel)", _cpu, lambda pair: pair.cpu),
    _Column(
        "Instructions/object",
        lambda one: figure(one.instructions_per_object or 0.0),
        lambda pair: pair.executed,
    ),
    _Column("Objects/s", lambda one: figure(one.objects_per_second), lambda pair: pair.speed),
)


def rows_of(result: SetResult, lane: str, commit: str) -> tuple[list[str], list[list[str]]]:
    """Heads, and a row for each round; what was not counted in every round is left out."""
    pairs = pairs_of(result, lane)
    order = [one.client for one in result.measurements if one.lane == lane]
    columns = [
        column for column in _COLUMNS if all(column.ratio(pair) is not None for pair in pairs)
    ]
    heads = [head for one in columns for head in (f"{one.head}, {commit}", "today", "Ratio")]
    rows = [
        [
            str(pair.old.round),
            order[2 * place],
            *(cell for column in columns for cell in _cells(column, pair)),
        ]
        for place, pair in enumerate(pairs)
    ]
    return ["Round", "First", *heads], rows


def _cells(column: _Column, pair: Pair) -> tuple[str, str, str]:
    return column.cell(pair.old), column.cell(pair.today), f"{column.ratio(pair):.3f}"


def summary_of(result: SetResult, lane: str, commit: str) -> str:
    """All ratios in one line: median, smallest and largest of the rounds."""
    pairs = pairs_of(result, lane)
    speed, cpu = Spread.of(one.speed for one in pairs), Spread.of(one.cpu for one in pairs)
    executed = [one.executed for one in pairs if one.executed is not None]
    instructions = f", {_ratio(Spread.of(executed))} times its instructions" if executed else ""
    return (
        f"{result.title}, {lane}: today's takes {_ratio(cpu)} times the CPU of {commit} an"
        f" object{instructions}, and has {_ratio(speed)} times its objects/s; {len(pairs)} rounds."
    )


def _ratio(spread: Spread) -> str:
    return f"{spread.median:.3f} ({spread.low:.3f} to {spread.high:.3f})"
