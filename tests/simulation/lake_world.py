"""The world from events to a table: producers, a queue, the registry, started runs, and a table.

Each process here waits for its turn before each request to the store, the registry, the starter of
executions or the table's catalog. A dead process makes no more requests.
"""

from __future__ import annotations

import copy
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count
from unittest.mock import patch

from compactor.cleaning.clean_up_list import find_due
from compactor.clock import NoDeadline
from compactor.errors import TransientStoreError
from compactor.model import Partition
from compactor.orchestration.discovery_step import begin
from compactor.orchestration.reconcile import Reconciliation, reconcile
from compactor.partition.events import event_listing
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.registry.items import OPEN_STATES
from compactor.registry.registering import register
from compactor.registry.starting import start_due
from compactor.registry.streams import Stream, parse_streams
from compactor.sinks.table_publisher import record_publish
from tests.simulation.choices import Choices
from tests.simulation.faults import DIES, Client, Fault, faults_of
from tests.simulation.ledger import DATA, LAKE, SOURCE, Violation, records_in
from tests.simulation.processes import Inline, Process, without_threads
from tests.simulation.tables import TableWorld
from tests.support.memory_registry import MemoryExecutions, MemoryRegistry
from tests.support.memory_store import Call, Crashed
from tests.support.memory_tables import ADDRESS, TableGuard
from tests.support.s3_events import notification

REGISTRY, EXECUTIONS, CATALOG = "registry", "executions", "catalog"
_TABLE, _STREAM = "pending", "logs"
_LEVELS = ("a", "b", "c")
_NAMES = 4
_DONE = frozenset(
    {Fault.NONE, Fault.CRASH_AFTER, Fault.TIME_OUT, Fault.LOST_ANSWER, Fault.TRUNCATED}
)
# Faults that a retry of the client resolves are invisible from outside, so they are left out.
_OF_THE_REGISTRY = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.OUTAGE, Fault.TIME_OUT)

_numbers = lru_cache(maxsize=10_000)(records_in)


def possible_faults(call: Call) -> tuple[Fault, ...]:
    """Return the faults that can happen to a request in this world."""
    if call.bucket in {REGISTRY, EXECUTIONS}:
        return _OF_THE_REGISTRY
    return tuple(one for one in faults_of(call) if one is not Fault.FLIPPED)


class _Steps:
    """The hook of a registry: waits for a turn before a request, and raises its fault."""

    def __init__(self, process: Process, where: str) -> None:
        self._process = process
        self._where = where
        self._late = False

    def __call__(self, step: str) -> None:
        if step.endswith(" done"):
            self._answer(step)
            return
        call = Call(step, self._where, _STREAM)
        fault = self._process.ask(call)
        if fault is Fault.CRASH_BEFORE:
            raise Crashed(f"{fault}: {call}")
        if fault is Fault.OUTAGE:
            raise TransientStoreError(f"{fault}: {call}")
        self._late = fault is Fault.TIME_OUT

    def _answer(self, step: str) -> None:
        late, self._late = self._late, False
        if self._process.dead:
            raise Crashed(f"after {step}")
        if late:
            raise TransientStoreError(f"no answer: {step}")


class LakeWorld(TableWorld):
    """A world in which objects that events announce end up in a table.

    Attributes:
        queue: messages that were not delivered yet, or will be delivered again.
        registry: the registry of pending objects, without a process's hooks.
        executions: the started executions.
        optional: records that their producer withdrew before they were readable in an output.
    """

    def __init__(self, choices: Choices, left_out: frozenset[TableGuard]) -> None:
        super().__init__(choices, frozenset(), left_out)
        document = {
            "s3_source_uri": "s3://source/logs/",
            "s3_destination_uri": "s3://lake/compacted/",
            "depth": 1,
            "delete_after": "1d",
            "settle_seconds": 0,
        }
        thresholds = {"objects": choices.one_of((1, 3)), "bytes": 10**9, "seconds": 600}
        streams = json.dumps([{"name": _STREAM, "input": document, **thresholds}])
        parsed = parse_streams(streams, _TABLE)[0]
        self.settings = replace(parsed.settings, table=ADDRESS)
        self.stream = Stream(_STREAM, self.settings, parsed.objects, parsed.bytes, parsed.seconds)
        self.registry = MemoryRegistry()
        self.executions = MemoryExecutions(self.clock.now)
        self.born = self.registry.claim(self.stream.identity, self.clock.now())
        self.queue: list[str] = []
        self.optional: set[int] = set()
        self._delivered: dict[tuple[str, bytes], None] = {}
        # Keys at which an object stands that stood there before; clean-up may have deleted it.
        self._back: set[str] = set()
        self._sequencers = count(1)
        self.s3.hooks.after.append(self._tell_of_delete)

    # Producers, and the events that S3 sends.

    def produce(self) -> str:
        """Put an object, new or over an existing one."""
        name = f"{self.choices.one_of(_LEVELS)}/{self.choices.below(_NAMES)}.json"
        lines = [f'{{"a":"record-{self._next + n}"}}\n' for n in range(2)]
        self.written |= {self._next, self._next + 1}
        self._next += 2
        return self._put(f"logs/{name}", "".join(lines).encode())

    def withdraw(self) -> str:
        """Delete a source, as its producer."""
        there = sorted(self.s3.contents(SOURCE))
        if not there:
            return "a producer has nothing to delete"
        key = self.choices.one_of(there)
        self._take_back(key)
        self.s3.remove(SOURCE, key)
        self._tell(key, "ObjectRemoved:Delete")
        return f"a producer deletes {key}"

    def deliver_again(self) -> str:
        """Put an earlier object again, at the same key."""
        if not self._delivered:
            return "a producer has nothing to put again"
        key, body = self.choices.one_of(list(self._delivered))
        return self._put(key, body) + " once more"

    def _put(self, key: str, body: bytes) -> str:
        self._take_back(key)
        (self._back.add if (key, body) in self._delivered else self._back.discard)(key)
        self._delivered[key, body] = None
        self.optional -= set(_numbers(body))
        self.s3.seed(SOURCE, key, body)
        self._tell(key, "ObjectCreated:Put")
        return f"a producer puts {key}"

    def _take_back(self, key: str) -> None:
        body = self.s3.contents(SOURCE, key).get(key)
        if body is not None:
            self.optional |= set(_numbers(body)) - set(self.table.records()) - set(self.outputs())

    def _tell(self, key: str, name: str) -> None:
        head = self.s3.head(SOURCE, key)
        told = {"etag": head.etag, "size": head.size} if head is not None else {}
        sequencer = f"{next(self._sequencers):016X}"
        body = notification(key, name, time=self.clock.now(), sequencer=sequencer, **told)
        self.queue.append(body)

    def _tell_of_delete(self, call: Call) -> None:
        """Send the event of a delete by clean-up."""
        if call.name == "delete_source" and not self.s3.contents(SOURCE, call.key).get(call.key):
            self._tell(call.key, "ObjectRemoved:Delete")

    # Processes.

    def registrar(self, bodies: Sequence[str]) -> Process:
        """Return a process of the function register; its answer names the failed messages."""

        def work(process: Process) -> object:
            messages = ((str(number), body) for number, body in enumerate(bodies))
            registry = self._registry_of(process)
            return register(messages, [self.stream], registry, self.clock.now())

        return self._process("registrar", work)

    def sweep(self) -> Process:
        """Return a sweep; its answer names the runs that it started."""

        def work(process: Process) -> object:
            steps = _Steps(process, EXECUTIONS)
            executions = replace(self.executions, hook=steps)
            registry = self._registry_of(process)
            return start_due(self.stream, registry, executions, self.born, self.clock.now())

        return self._process("sweep", work)

    def reconciler(self) -> Process:
        """Return a process that registers, by LIST, objects that no event announced."""

        def work(process: Process) -> object:
            at = partial(self._registry_at, process)
            client = self._client(process)
            return reconcile(Reconciliation(self.settings, client, self.clock.now(), at, workers=1))

        return self._process("reconciler", work)

    def discoverer(self, run_id: str) -> Process:
        """Return the discovery of a run; its answer is the work items."""

        def work(process: Process) -> object:
            at = partial(self._registry_at, process)
            client = self._client(process)
            begun = begin(self.settings, run_id, client, self.clock.now(), at=at)
            return begun.found.partitions

        return self._process(f"discovery of {run_id}", work)

    def compactor(self, run_id: str, partition: Partition) -> Process:
        """Return a worker of a run."""

        def work(process: Process) -> object:
            client, now = self._client(process), self.clock.now()
            at = partial(self._registry_at, process)
            run = PartitionRun(
                partition,
                self.settings,
                client,
                self.clock,
                NoDeadline(),
                run_id,
                listing=event_listing(self.settings, now, at),
            )
            return compact_partition(run, Counts())

        return self._process(f"worker of {partition.path} ({run_id})", work)

    def table_publisher(self, run_id: str) -> Process:
        """Return a publisher of the run's outputs and of unpublished earlier ones."""

        def work(process: Process) -> object:
            return record_publish(self._publishing(process, run_id))

        return self._process(f"publisher of {run_id}", work)

    def due(self) -> list[str]:
        """Return the paths of the partitions that are due for clean-up."""
        return [one.path for one in find_due(self.settings, self.s3, self.clock.now())]

    def clean_up(self, run_id: str, path: str) -> Process:
        """Return a clean-up of a partition."""

        def work(process: Process) -> object:
            return self._cleaned_up(process, run_id, path)

        return self._process(f"clean-up of {path} ({run_id})", work)

    def _process(self, name: str, work: Callable[[Process], object]) -> Process:
        process = Process(name, lambda: work(process), self.choices.below)
        return process

    def _client(self, process: Process) -> Client:
        return Client(self.s3, process.ask)

    def _registry_at(self, process: Process, name: str) -> MemoryRegistry:
        assert name == _TABLE
        return self._registry_of(process)

    def _registry_of(self, process: Process) -> MemoryRegistry:
        """Return the registry with this process's hook."""
        own = copy.copy(self.registry)
        own.hook = _Steps(process, REGISTRY)
        return own

    def _asks(
        self, process: Process, asks: Callable[[Call], Fault] | None = None
    ) -> Callable[[str, Callable[[], object]], object]:
        asks = asks or process.ask

        def ask(name: str, request: Callable[[], object]) -> object:
            call = Call(name, CATALOG, ADDRESS)
            fault = asks(call)
            answer = request() if fault in _DONE else None
            if fault in DIES:
                raise Crashed(f"{fault}: {call}")
            if fault is not Fault.NONE:
                raise TransientStoreError(f"{fault}: {call}")
            return answer

        return ask

    def done_items(self) -> list[tuple[str, str, str]]:
        """Return the places of items that are no longer pending."""
        items = self.registry.items.items()
        return [place for place, one in items if one.state not in OPEN_STATES]

    # What must hold.

    def outputs(self) -> Counter[int]:
        """Return the records of readable outputs, in the table or not."""
        return _all_numbers(self.s3.contents(LAKE, DATA))

    def _overwritten(self, compacted: set[int]) -> set[int]:
        """Return the records of objects that were put over compacted ones."""
        earlier: defaultdict[str, set[int]] = defaultdict(set)
        for key, body in self._delivered:
            earlier[key] |= set(_numbers(body))
        bodies = ((key, set(_numbers(body))) for key, body in self.s3.contents(SOURCE).items())
        return {n for key, own in bodies if (earlier[key] - own) & compacted for n in own}

    def in_sources(self) -> set[int]:
        return set(_all_numbers(self.s3.contents(SOURCE)))

    def must_be_cleaned_up(self) -> None:
        there = self.s3.contents(SOURCE)
        back = _all_numbers({key: there[key] for key in self._back & there.keys()})
        left = self.in_sources() - self._overwritten(set(self.table.records())) - set(back)
        if left and not (self.acts or self.table.forgot):
            raise Violation(f"clean-up left {sorted(left)}")

    def look(self) -> None:
        """Check every promise against what a query finds now.

        Raises:
            Violation: a promise is broken; names the records.
        """
        try:
            found = self.table.records()
        except AssertionError as error:
            raise Violation(str(error)) from error
        outputs = self.outputs()
        twice = sorted(n for n in {*found, *outputs} if found[n] > 1 or outputs[n] > 1)
        if twice:
            raise Violation(f"records {twice} are readable twice")
        lost = self.written - self.optional - set(found) - set(outputs) - self.in_sources()
        if lost:
            raise Violation(f"records {sorted(lost)} are nowhere to be read")
        foreign = self.foreign_records() - set(found)
        if foreign:
            raise Violation(f"what somebody else wrote is gone: {sorted(foreign)}")

    def must_be_in_the_table(self) -> None:
        """Check that every record is in the table and nothing is pending.

        Raises:
            Violation: this is not the case.
        """
        self.look()
        compacted = set(self.table.records())
        missing = self.written - self.optional - compacted - self._overwritten(compacted)
        if missing:
            raise Violation(f"records {sorted(missing)} never came into the table")
        items = self.registry.items.values()
        pending = [one.source.key for one in items if one.state in OPEN_STATES]
        if pending:
            raise Violation(f"{pending} are pending still")
        heads = [head.path for head in self.registry.heads(_STREAM)]
        if heads:
            raise Violation(f"partitions {heads} have nothing pending, and are looked at still")
        batches = self.registry.batch(_STREAM).number - 1
        # The start of the last batch may not have been noted.
        if len(self.executions.order) - batches not in {0, 1}:
            raise Violation("a batch was started twice")


def _all_numbers(contents: Mapping[str, bytes]) -> Counter[int]:
    return Counter(number for body in contents.values() for number in _numbers(body))


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Make the product use no threads within the block."""
    with without_threads(), patch("compactor.discovery.parallel.ThreadPoolExecutor", Inline):
        yield
