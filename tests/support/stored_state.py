"""The state that a version wrote, with its outputs and sources, in an in-memory store.

``tests/state/write_state.py`` writes one zip file for each version of the documents.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_list import find_due, write_due
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.clock import NoDeadline
from compactor.discovery.discover import discover
from compactor.discovery.work_list import write_work
from compactor.log.log import CommitLog
from compactor.model import Partition, QuarantineReason, StoredPart
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.report.report import RunIdentity, RunReport, report
from compactor.settings.settings import Settings
from tests.support.memory_bucket import Stored, stored
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.memory_upload import Upload

STATES = Path(__file__).parents[1] / "state"
STATE = "_compactor/compacted/"
WHERE = ("s3://source/logs/", "s3://lake/compacted/")
_RECORD = re.compile(rb"record-(\d+)")


def versions() -> list[str]:
    """Return the versions that have a stored state."""
    return sorted(path.stem for path in STATES.glob("*.zip"))


@dataclass
class StoredState:
    """A stored state for today's code.

    Attributes:
        originals: every content that a source ever had, by key and ETag.
        runs: the runs that wrote the state.
    """

    store: MemoryStore
    clock: ManualClock
    settings: Settings
    originals: dict[tuple[str, str], bytes]
    runs: list[str]
    started: list[str] = field(default_factory=list)

    def add(self, key: str, body: bytes) -> None:
        """Add a source that arrived after the state was written."""
        arrived = self.clock.now() - 2 * 86_400
        one = self.store.seed("source", f"logs/{key}", body, last_modified=arrived)
        self.originals[one.key, one.etag] = body

    def run(self) -> RunReport:
        """Do a whole run: every partition, then clean-up, then the report."""
        run_id = f"today-{len(self.started) + 1}"
        self.started.append(run_id)
        settings, store, clock = self.settings, self.store, self.clock
        found = discover(settings, store, clock.now())
        write_work(found, settings, run_id, store)
        for item in found.partitions:
            work = PartitionRun(item, settings, store, clock, NoDeadline(), run_id)
            compact_partition(work, Counts())
        due = find_due(settings, store, clock.now())
        write_due(due, settings, run_id, store)
        for one in due:
            cleaning = CleanUpRun(one.path, settings, store, clock, NoDeadline(), run_id)
            record_clean_up(cleaning, CleanUpReceipt(one.path, run_id))
        return report(
            RunIdentity(run_id, "2026-01-01T00:00:00Z", ended_at=clock.now()), settings, store
        )

    def log(self, path: str) -> CommitLog:
        """Return the log of a partition."""
        return CommitLog(self.store, self.settings, Partition("source", f"logs/{path}", path))

    def records(self) -> Counter[int]:
        """Return the numbers of the records that readers of the destination see."""
        found: Counter[int] = Counter()
        for body in self.store.contents("lake", "compacted/").values():
            found += Counter(records_in(body))
        return found

    def expected(self) -> Counter[int]:
        """Return what readers must see: once each record of what arrived first at its key."""
        return Counter({number for body in self._first.values() for number in records_in(body)})

    def compacted(self) -> set[tuple[str, str]]:
        """Return key and ETag of every source that is empty or whose content is in an output."""
        return {
            (key, etag)
            for (key, etag), body in self._first.items()
            if not body or key.startswith("logs/rows/") or any(records_in(body))
        }

    @property
    def _first(self) -> dict[tuple[str, str], bytes]:
        """The sources without what was put over one of them."""
        etags: dict[str, str] = {}
        for key, etag in self.originals:
            etags.setdefault(key, etag)
        return {one: body for one, body in self.originals.items() if etags[one[0]] == one[1]}

    def _committed(self, partition: Partition) -> Container[bytes]:
        return CommitLog(self.store, self.settings, partition).load().committed


def load(version: str = "1") -> StoredState:
    """Load a state as it was written."""
    with zipfile.ZipFile(STATES / f"{version}.zip") as archive:
        index = json.loads(archive.read("index.json"))
        bodies = {one: archive.read(one) for one in archive.namelist()}
    clock = ManualClock(index["now"])
    store = MemoryStore(clock)
    store.endpoint_url = "http://127.0.0.1:9000"
    for bucket in ("lake", "source"):
        store.add_bucket(bucket)
    for line in index["objects"]:
        store._buckets[line["bucket"]].set(line["key"], _stored(line, bodies[line["body"]]))
    for line in index["uploads"]:
        _begin(store, line, bodies)
    for there, key, reason in index["unreadable"]:
        store.unreadable[there, key] = QuarantineReason(reason)
    # New uploads must not reuse the ids of uploads that are open in the state.
    store._started = iter(range(1_000, 10_000))  # type: ignore[assignment] # a count, too
    originals = {(one["key"], one["etag"]): bodies[one["body"]] for one in index["originals"]}
    settings = Settings.from_input(index["input"])
    return StoredState(store, clock, settings, originals, index["runs"])


def records_in(body: bytes) -> Iterator[int]:
    """Return the numbers of the records in an object; none if it does not decompress."""
    try:
        return (int(number) for number in _RECORD.findall(plain(body)))
    except (EOFError, OSError):
        return iter(())


def plain(body: bytes) -> bytes:
    """Return the decompressed content of an object."""
    if body[:2] == b"\x1f\x8b":
        return gzip.decompress(body)
    if body[:4] == b"\x28\xb5\x2f\xfd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return body


def _stored(line: dict[str, Any], body: bytes) -> Stored:
    made = stored(body, line["last_modified"], content_type=line["content_type"])
    return Stored(
        body,
        line["etag"],
        made.last_modified,
        crc32=made.crc32,
        content_type=made.content_type,
        metadata=line["metadata"],
    )


def _begin(store: MemoryStore, line: dict[str, Any], bodies: dict[str, bytes]) -> None:
    upload = Upload(
        line["key"], line["content_type"], line["began"], metadata=dict(line["metadata"])
    )
    parts: list[StoredPart] = [
        upload.add(int(number), bodies[body]) for number, body in line["parts"].items()
    ]
    assert parts
    store._buckets[line["bucket"]].uploads[line["upload_id"]] = upload
