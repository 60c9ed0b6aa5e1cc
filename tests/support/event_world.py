"""A world whose runs compact announced objects: sources, a queue, the registry, and named runs.

Every record has its own number, as in :mod:`tests.support.world`. Writing an object returns the
message that S3 would send, and the test delivers it when it likes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Any

from compactor.clock import NoDeadline
from compactor.model import Partition
from compactor.orchestration.discovery_step import begin
from compactor.partition.events import event_listing
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.registry.items import OPEN_STATES, Item
from compactor.registry.registering import Registration, register
from compactor.registry.starting import Looked, start_due
from compactor.registry.streams import Stream, parse_streams
from compactor.settings.settings import Settings
from tests.support.examples import NOW
from tests.support.memory_registry import MemoryExecutions, MemoryRegistry
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.s3_events import notification
from tests.support.world import records_in

URIS = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/compacted/"}
# Objects are compacted immediately, and partitions are never open, as for freshness.
AT_ONCE = {"settle_seconds": 0}
TABLE = "pending"


class EventWorld:
    """One stream, ``logs``, with a partition for each level below the source.

    Args:
        objects, bytes, seconds: thresholds that start a run.
        given: settings of the runs.
    """

    def __init__(
        self, *, objects: int = 2, bytes: int = 10**9, seconds: int = 600, **given: Any
    ) -> None:
        self.clock = ManualClock(NOW)
        self.store = MemoryStore(self.clock)
        self.registry = MemoryRegistry()
        self.executions = MemoryExecutions(self.clock.now)
        document = {**URIS, "depth": 1, **AT_ONCE, **given}
        thresholds = {"objects": objects, "bytes": bytes, "seconds": seconds}
        streams = [{"name": "logs", "input": document, **thresholds}]
        self.stream: Stream = parse_streams(json.dumps(streams), TABLE)[0]
        self.store.add_bucket("lake")
        self.store.add_bucket("source")
        self.born = self.registry.claim(self.stream.identity, self.clock.now())
        self.records: set[int] = set()
        # Records of objects that were overwritten or deleted, by key.
        self._earlier: defaultdict[str, set[int]] = defaultdict(set)
        self._next = count()
        self._sequencer = count(1)

    @property
    def settings(self) -> Settings:
        return self.stream.settings

    def put(self, name: str, records: int = 2) -> str:
        """Write a source with new records; return its message."""
        numbers = [next(self._next) for _ in range(records)]
        self.records.update(numbers)
        return self.write(name, "".join(f'{{"id": "record-{n}"}}\n' for n in numbers).encode())

    def write(self, name: str, body: bytes, **given: Any) -> str:
        """Write a source with this body, possibly over another one."""
        key = f"logs/{name}"
        self._taken_back(key)
        at = self.clock.now()
        self.store.seed("source", key, body, last_modified=at)
        head = self.store.head("source", key)
        assert head is not None
        sequencer = f"{next(self._sequencer):016X}"
        told = {"etag": head.etag, "size": len(body), "time": at, "sequencer": sequencer}
        return notification(key, **{**told, **given})

    def remove(self, name: str) -> str:
        """Delete a source; return its message."""
        key = f"logs/{name}"
        self._taken_back(key)
        self.store.remove("source", key)
        sequencer = f"{next(self._sequencer):016X}"
        given = {"sequencer": sequencer, "time": self.clock.now()}
        return notification(key, "ObjectRemoved:Delete", **given)

    def _taken_back(self, key: str) -> None:
        """No longer expect the records at a key; those in an output stay readable."""
        body = self.store.contents("source", key).get(key)
        if body is not None:
            self.records -= set(records_in(body)) - set(self.destination())
            self._earlier[key] |= set(records_in(body))

    def _overwritten(self) -> set[int]:
        """Return the records of objects that were put over compacted ones."""
        compacted = set(self.destination())
        found: set[int] = set()
        for key, body in self.store.contents("source").items():
            if self._earlier[key] & compacted:
                found |= set(records_in(body))
        return found

    def deliver(self, *bodies: str) -> Registration:
        """Register a batch of messages, as the function does."""
        messages = ((f"m{n}", body) for n, body in enumerate(bodies))
        return register(messages, [self.stream], self.registry, self.clock.now())

    def sweep(self) -> Looked:
        return start_due(self.stream, self.registry, self.executions, self.born, self.clock.now())

    def run_started(self) -> list[Receipt]:
        """Run all started executions sequentially."""
        return [one for name in list(self.executions.running) for one in self.run(name)]

    def run(self, name: str) -> list[Receipt]:
        """Run one execution to its end."""
        items = self.begin(name)
        found = [self.compact(name, item) for item in items]
        if name in self.executions.running:
            self.executions.end(name)
        return found

    def begin(self, run_id: str) -> Iterable[Partition]:
        """Do the discovery of a run; return its work items."""
        at = self.clock.now()
        found = begin(self.settings, run_id, self.store, at, at=self.table)
        return found.found.partitions

    def compact(self, run_id: str, item: Partition) -> Receipt:
        """Compact one partition with one worker."""
        return compact_partition(self.run_of(run_id, item), Counts())

    def run_of(self, run_id: str, item: Partition) -> PartitionRun:
        at = self.clock.now()
        return PartitionRun(
            item,
            self.settings,
            self.store,
            self.clock,
            NoDeadline(),
            run_id,
            listing=event_listing(self.settings, at, self.table),
        )

    def table(self, name: str) -> MemoryRegistry:
        assert name == TABLE
        return self.registry

    def open_items(self) -> dict[str, Item]:
        """Return the pending and deferred items, by key."""
        found = [one for one in self.registry.items.values() if one.state in OPEN_STATES]
        return {one.source.key: one for one in found}

    def states(self) -> dict[str, str]:
        """Return the state of each known key."""
        return {one.source.key: one.state.value for one in self.registry.items.values()}

    def destination(self) -> Counter[int]:
        return self._numbers("lake", "compacted/")

    def check(self) -> None:
        """Check that no record is doubled in the destination or missing from both places."""
        readable = self.destination()
        doubled = {number for number, many in readable.items() if many > 1}
        assert not doubled, f"records {doubled} are readable twice"
        lost = self.records - set(readable) - set(self._numbers("source", ""))
        assert not lost, f"records {lost} are gone"

    def must_be_finished(self) -> None:
        """Check that every record is readable once, and nothing is pending."""
        self.check()
        assert self.records <= set(self.destination()) | self._overwritten()
        assert self.open_items() == {}
        # Late events of finished objects have made partitions active again.
        self.sweep()
        assert list(self.registry.heads("logs")) == []

    def _numbers(self, bucket: str, prefix: str) -> Counter[int]:
        found: Counter[int] = Counter()
        for body in self.store.contents(bucket, prefix).values():
            found += records_in(body)
        return found

    def lists_of_the_source(self) -> int:
        """Return the number of LIST pages below the source, without the check of read access."""
        calls = [one for one in self.store.calls if one.bucket == "source"]
        return sum(one.name == "list_objects" for one in calls)
