"""Many workers that share S3's request rate for one prefix, so that all of them are slow.

S3 serves about 5,500 GETs a second from one of its partitions until it splits it. So each of 300
workers gets 18 a second, and a group of 50,000 sources takes three invocations of 15 minutes. The
clock is virtual; all but time, rate and the other workers is the product's own code. All numbers
are scaled to a fiftieth, so the proportions are those of full groups.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from unittest import mock

import pytest
from greenlet import getcurrent, greenlet

from compactor.errors import CompactorError, InvalidInput, TransientStoreError
from compactor.limits import WorkerLimits
from compactor.model import SourceObject
from compactor.outputs.group_reading import ReadingTime
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.ports import SourceBody
from compactor.s3.retries import READ_RESERVE_SECONDS, RESERVE_SECONDS
from tests.simulation.processes import without_threads
from tests.support.examples import NOW, PARTITION, settings
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.world import records_in

SCALE = 50
GETS_PER_SECOND = 5_500 / SCALE
GROUP = 50_000 // SCALE
LIMITS = WorkerLimits(group_sources=GROUP)
SOURCES = GROUP + GROUP // 4
# A worker that is throttled more and more reads four batches of eight concurrently.
UNDER_WAY = max(1, 4 * 8 // SCALE)
INVOCATION_SECONDS = 900.0
# The number of workers that really work; the others only take their share of the rate.
WATCHED = 2
# After this many calls the state machine gives up on an invocation that always fails.
_MOST_CALLS = 6


class SlowS3:
    """Virtual time, and S3's answers at a limited rate, first come, first served."""

    def __init__(self, neighbours: int) -> None:
        self.clock = ManualClock(NOW)
        self._events: list[tuple[float, int, greenlet | None]] = []
        self._number = 0
        self._free = NOW
        self._working = 0
        for _ in range(neighbours * UNDER_WAY):
            self._at(self.answer(), None)

    def answer(self) -> float:
        """Return when a GET that is sent now is answered."""
        self._free = max(self.clock.now(), self._free) + 1 / GETS_PER_SECOND
        return self._free

    def wait_until(self, moment: float) -> None:
        """Let the calling worker wait, while the others continue."""
        process = getcurrent()
        self._at(moment, process)
        assert process.parent is not None
        process.parent.switch()

    def start(self, process: greenlet) -> None:
        self._working += 1
        self._at(self.clock.now(), process)

    def end(self) -> None:
        self._working -= 1

    def run(self) -> None:
        """Run until the last watched worker has ended."""
        while self._working:
            moment, _, process = heapq.heappop(self._events)
            self.clock.advance(moment - self.clock.now())
            if process is None:
                self._at(self.answer(), None)
            else:
                process.switch()

    def _at(self, moment: float, process: greenlet | None) -> None:
        self._number += 1
        heapq.heappush(self._events, (moment, self._number, process))


class Invocation:
    """An invocation's deadline by the virtual clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._ends_at = clock.now() + INVOCATION_SECONDS

    def remaining_seconds(self) -> float:
        return self._ends_at - self._clock.now()


class ThrottledStore(MemoryStore):
    """A store whose reads take as long as S3's, and end before the invocation does."""

    def __init__(self, s3: SlowS3) -> None:
        super().__init__(s3.clock)
        self.s3 = s3
        self.deadline = Invocation(s3.clock)
        self.gets = 0

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        rest = iter(sources)
        under_way: deque[tuple[SourceObject, float]] = deque()
        while True:
            while len(under_way) < UNDER_WAY and (source := next(rest, None)) is not None:
                self.gets += 1
                under_way.append((source, self.s3.answer()))
            if not under_way:
                return
            source, answered_at = under_way.popleft()
            self.s3.wait_until(answered_at)
            if self.deadline.remaining_seconds() < READ_RESERVE_SECONDS + RESERVE_SECONDS:
                raise TransientStoreError("the invocation ends, and not all sources are read")
            yield from super().read_sources([source])


@dataclass
class Worker:
    """The worker of one partition, called until it is done."""

    s3: SlowS3
    calls: list[tuple[str, int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = ThrottledStore(self.s3)
        self.store.add_bucket("lake")
        for number in range(SOURCES):
            body = f'{{"id": "record-{number}"}}\n'.encode()
            key = f"{PARTITION.prefix}{number:06}.json"
            self.store.seed("source", key, body, last_modified=NOW - 86_400)

    def work(self) -> None:
        counts, status = Counts(), ""
        while status != "done" and len(self.calls) < _MOST_CALLS:
            began, before = self.s3.clock.now(), len(self.outputs)
            self.store.deadline = Invocation(self.s3.clock)
            run = PartitionRun(
                PARTITION,
                settings(limits=LIMITS),
                self.store,
                self.s3.clock,
                self.store.deadline,
                "run-1",
            )
            try:
                receipt = compact_partition(run, counts)
                counts, status = receipt.counts, receipt.status
            except CompactorError as error:
                status = type(error).__name__
            committed = len(self.outputs) - before
            self.calls.append((status, committed, self.s3.clock.now() - began))
            if status == InvalidInput.__name__:
                break
        self.s3.end()

    @property
    def outputs(self) -> list[bytes]:
        return list(self.store.contents("lake", "compacted/").values())


def throttled(workers: int) -> list[Worker]:
    """Run a number of concurrent workers; return the watched ones."""
    s3 = SlowS3(workers - WATCHED)
    watched = [Worker(s3) for _ in range(WATCHED)]
    with without_threads():
        for one in watched:
            s3.start(greenlet(one.work))
        s3.run()
    return watched


@pytest.mark.parametrize("workers", [30, 100, 300])
def test_every_invocation_commits_what_it_read_and_reads_it_once(workers: int) -> None:
    for worker in throttled(workers):
        assert worker.calls[-1][0] == "done", worker.calls
        assert all(committed for _, committed, _ in worker.calls), worker.calls
        assert all(seconds < INVOCATION_SECONDS for *_, seconds in worker.calls)
        # The planned groups, and at most one more output per invocation.
        assert len(worker.outputs) <= 2 + len(worker.calls)
        assert SOURCES <= worker.store.gets <= 1.01 * SOURCES
        found = [number for body in worker.outputs for number in records_in(body).elements()]
        assert sorted(found) == list(range(SOURCES))


@pytest.mark.parametrize("workers", [100, 300])
def test_without_closing_outputs_early_no_invocation_commits_anything(workers: int) -> None:
    with (
        mock.patch.object(ReadingTime, "over", return_value=False),
        mock.patch.object(ReadingTime, "worth_keeping", return_value=False),
    ):
        for worker in throttled(workers):
            assert not worker.outputs
            assert {status for status, *_ in worker.calls} == {"TransientStoreError"}
            assert worker.store.gets > SOURCES


def test_where_a_group_fits_an_invocation_no_output_is_closed_early() -> None:
    for worker in throttled(30):
        records = sorted(len(records_in(body)) for body in worker.outputs)
        assert records == [SOURCES - GROUP, GROUP]
