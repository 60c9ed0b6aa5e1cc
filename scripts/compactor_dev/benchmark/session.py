"""Rounds over lanes and clients, so that a slow minute of the machine meets all clients."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from compactor_cli.local.child import python_environment
from compactor_dev import IMPORT_ROOTS
from compactor_dev.benchmark.clients import LOOP, PROVING, WORKER, Client
from compactor_dev.benchmark.datasets import DataSet
from compactor_dev.benchmark.front import Lane
from compactor_dev.benchmark.load import ceiling
from compactor_dev.benchmark.machine import describe
from compactor_dev.benchmark.measure import Measured, measure
from compactor_dev.benchmark.results import Measurement, SetResult
from compactor_dev.benchmark.server import BUCKET, SOURCE_BUCKET, BenchServer, bench_server
from compactor_dev.benchmark.task import Task
from compactor_dev.benchmark.tools import Tools

_LIMIT_SECONDS = 900.0
_RETRYING = (WORKER, "boto3")
_OVER_TLS = (WORKER, LOOP, PROVING)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run of the benchmark measures.

    Attributes:
        lanes: without faults and TLS, in order.
        faults: the worker and boto3 also go through a lane with faults.
        tls: names of the sets for which the worker and the bare loop also go over TLS.
        settings: fields of the run's input, for the worker.
        on_step: told what comes next.
    """

    clients: Sequence[Client]
    lanes: Sequence[Lane]
    rounds: int
    faults: bool = False
    tls: Collection[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    on_step: Callable[[str], None] = lambda text: None

    def clients_by_lane(self, data_set: DataSet) -> dict[Lane, list[Client]]:
        """Who is measured on a set, by lane; no lane is without a client."""
        clients = list(self.clients)
        found = dict.fromkeys(self.lanes, clients)
        last = self.lanes[-1].latency_ms
        if self.faults:
            found[Lane(last, faults=True)] = [one for one in clients if one.name in _RETRYING]
        if data_set.name in self.tls:
            found[Lane(last, tls=True)] = [one for one in clients if one.name in _OVER_TLS]
        return {lane: chosen for lane, chosen in found.items() if chosen}

    def steps(self, data_set: DataSet) -> int:
        """How often :attr:`on_step` is told something of a set."""
        return 2 + self.rounds * sum(map(len, self.clients_by_lane(data_set).values()))


def in_turn(clients: Sequence[Client], number: int) -> list[Client]:
    """The order of one round, from 1: forwards, then backwards (ABBA), then from the next one on.

    So none is always the first, or always after the same one, and of two each is as often first.
    """
    turns, backwards = divmod(number - 1, 2)
    first = turns % len(clients)
    order = [*clients[first:], *clients[:first]]
    return order[::-1] if backwards else order


def measure_set(data_set: DataSet, wanted: Wanted, tools: Tools, directory: Path) -> SetResult:
    """Measure one data set on a server of its own.

    Args:
        data_set: what to compact.
        wanted: by whom, how, and how often.
        tools: the programs.
        directory: for servers, logs and temporary data.

    Raises:
        CompactorError: a server or a client failed.
    """
    by_lane = wanted.clients_by_lane(data_set)
    lanes = list(dict.fromkeys([Lane(0.0), *by_lane]))
    now = datetime.now(UTC)
    result = SetResult(
        data_set.title, data_set.objects, now.isoformat(timespec="seconds"), describe(tools)
    )
    with bench_server(data_set, tools, directory / "server", lanes) as server:
        wanted.on_step(f"{data_set.title}: storing")
        server.fill([one.sample for some in by_lane.values() for one in some], now.timestamp())
        wanted.on_step(f"{data_set.title}: warming the cache")
        server.warm(Lane(0.0))
        keys = server.keys()
        for lane in lanes:
            if not lane.faults:
                found = ceiling(tools, directory, server.lanes[lane], SOURCE_BUCKET, keys)
                result.ceiling[lane.name] = {
                    "gets_per_second": found.gets_per_second,
                    "bytes_per_second": found.bytes_per_second,
                }
        result.upload_bytes_per_second = server.upload_bytes_per_second()
        bench = Bench(server, tools, directory, wanted.settings)
        for number in range(1, wanted.rounds + 1):
            for lane, clients in by_lane.items():
                for client in in_turn(clients, number):
                    wanted.on_step(f"{data_set.title}: {client.name}, {lane.name}, round {number}")
                    result.measurements.append(bench.measurement(client, lane, number))
    return result


class Bench:
    """Runs one client after the other against a filled server."""

    def __init__(
        self, server: BenchServer, tools: Tools, directory: Path, settings: Mapping[str, Any]
    ) -> None:
        self._server = server
        self._tools = tools
        self._directory = directory
        self._settings = settings
        self._scratch = directory / "scratch"

    def measurement(self, client: Client, lane: Lane, number: int) -> Measurement:
        """Run a client once, read back what it left, and delete that."""
        sources = self._server.sources(client.sample)
        task = self._task(client, lane, sources.prefix)
        self._prepare(client, lane, task)
        taken, told = self._run(client, lane, task)
        detail = dict(told)
        if client.name == WORKER:
            # Over unchanged data: it must find nothing to do.
            again, told = self._run(client, lane, task)
            detail["second_run_requests"] = told["counts"]["requests"]
            detail["second_run_seconds"] = again.seconds
        left = self._server.outputs(task.prefix, self._scratch)
        self._server.clear()
        return Measurement(
            data_set=self._server.data_set.name,
            client=client.name,
            lane=lane.name,
            round=number,
            objects=sources.objects,
            of_objects=self._server.data_set.objects,
            bytes_in=sources.bytes,
            outputs=left.objects,
            bytes_out=left.bytes,
            seconds=taken.seconds,
            user_seconds=taken.user_seconds,
            kernel_seconds=taken.kernel_seconds,
            start_seconds=detail.pop("start_seconds", 0.0),
            start_user_seconds=detail.pop("start_user_seconds", 0.0),
            start_kernel_seconds=detail.pop("start_kernel_seconds", 0.0),
            peak_bytes=max(taken.peak_bytes, detail.pop("peak_bytes", 0)),
            instructions=taken.instructions,
            others=taken.others,
            equal=left.records == sources.records,
            detail=detail,
        )

    def _task(self, client: Client, lane: Lane, prefix: str) -> Task:
        return Task(
            endpoint_url=self._server.lanes[lane],
            source_bucket=SOURCE_BUCKET,
            source_prefix=prefix,
            bucket=BUCKET,
            prefix=f"{client.name}/",
            extension=self._server.data_set.extension,
            scratch=str(self._scratch),
            settings=self._settings,
            answer=str(self._directory / "answer.json"),
        )

    def _prepare(self, client: Client, lane: Lane, task: Task) -> None:
        command = client.before(task, self._tools)
        if command is not None:
            ours = python_environment(self._base(lane), *IMPORT_ROOTS)
            measure(command, ours, self._directory / "before.log", _LIMIT_SECONDS)

    def _base(self, lane: Lane) -> dict[str, str]:
        """The environment of every client."""
        return {**os.environ, **self._server.environment(lane), **self._compiled_once()}

    def _run(self, client: Client, lane: Lane, task: Task) -> tuple[Measured, dict[str, Any]]:
        answer = Path(task.answer)
        answer.unlink(missing_ok=True)
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(parents=True)
        environment = environment_of(client, self._base(lane))
        log = self._directory / f"{client.name}.log"
        command = client.command(task, self._tools)
        taken = measure(command, environment, log, _LIMIT_SECONDS)
        told = json.loads(answer.read_bytes()) if answer.exists() else {}
        return taken, told

    def _compiled_once(self) -> dict[str, str]:
        """What lets Python clients keep what they compiled, whatever this process may do."""
        cache = self._directory / "bytecode"
        return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(cache.absolute())}


def environment_of(client: Client, base: Mapping[str, str]) -> dict[str, str]:
    """What a client's process has for an environment, of which ``base`` is the rest."""
    if client.functions is not None:
        # Nothing of another version is to be in reach: it would be taken where this one has none.
        # What is compiled stays beside it, and goes with it.
        alone = {**base, "PYTHONPATH": "", "PYTHONPYCACHEPREFIX": ""}
        return python_environment(alone, str(client.functions))
    return python_environment(base, *IMPORT_ROOTS)
