"""A small world of sources, workers and a reader that can check after every request.

Every record has its own number, so the reader can distinguish lost records from doubled ones. The
reader only uses what S3 shows, never the commit log.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from dataclasses import replace
from typing import Any

from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.clock import NoDeadline
from compactor.log.log import CommitLog
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.settings.settings import Settings
from tests.support.examples import NOW, PARTITION, settings
from tests.support.memory_store import Call, ManualClock, MemoryStore

# A log line that contains a record.
LOG_LINE = "2026-01-02T03:04:05Z {}"
_RECORD = re.compile(rb"record-(\d+)")


def records_in(body: bytes) -> Counter[int]:
    """Return the numbers of the records in one object; none if it does not decompress."""
    if body[:4] == b"PAR1":
        body = _text_of_rows(body)
    if body[:2] == b"\x1f\x8b":
        try:
            body = gzip.decompress(body)
        except EOFError:
            return Counter()
    return Counter(int(match) for match in _RECORD.findall(body))


def _text_of_rows(body: bytes) -> bytes:
    """Return the rows of a Parquet object as JSON lines; only worlds with rows import pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pq.read_table(pa.BufferReader(body)).to_pylist()
    return "\n".join(str(one) for one in rows).encode()


class World:
    """Sources of several formats in one partition of a strict store."""

    def __init__(self, **given: object) -> None:
        self.clock = ManualClock(NOW)
        self.store = MemoryStore(self.clock)
        self.settings: Settings = settings(**given)
        self.store.add_bucket("lake")
        self.records: set[int] = set()
        self._next = 0
        self.runs = 0

    def add(self, name: str, template: str, records: int = 3, *, packed: bool = False) -> None:
        """Write a source of lines in this template, with ``{}`` replaced by the record's name."""
        lines = []
        for _ in range(records):
            lines.append(template.format(f"record-{self._next}"))
            self.records.add(self._next)
            self._next += 1
        self.put(name, "\n".join(lines).encode(), packed=packed)

    def put(self, name: str, body: bytes, *, packed: bool = False) -> None:
        """Write a source with this body."""
        content = gzip.compress(body, mtime=0) if packed else body
        self.store.seed("source", PARTITION.prefix + name, content, last_modified=NOW - 86_400)

    def add_variety(self) -> None:
        """Write sources for several groups, a misfit, a quarantined source and an empty one."""
        self.add("a.json", '{{"id": "{}"}}')
        self.add("b.json", '{{"id": "{}"}}')
        self.put("c.json", b"")
        self.put("d.csv", b"id,value\nrecord-900,1\nrecord-901,2")
        self.put("d1.csv", b"id,value\nrecord-903,3\n")
        # The same header with other line ends.
        self.put("e.csv", b"id,value\r\nrecord-902,1\r\n")
        self.records |= {900, 901, 902, 903}
        self.add("f.log.gz", LOG_LINE, packed=True)
        self.put("g.log.gz", gzip.compress(b"never read " * 50, mtime=0)[:-9])
        self.add("h.log.gz", LOG_LINE, packed=True)

    def check(self, call: Call | None = None) -> None:
        """Check that no record is doubled in the destination or missing from both places."""
        readable = self.destination()
        doubled = {number for number, count in readable.items() if count > 1}
        assert not doubled, f"after {call}: records {doubled} are readable twice"
        lost = self.records - set(readable) - set(self.sources())
        assert not lost, f"after {call}: records {lost} are gone"

    def sources(self) -> Counter[int]:
        return self._numbers("source", "")

    def destination(self) -> Counter[int]:
        return self._numbers("lake", "compacted/")

    def _numbers(self, bucket: str, prefix: str) -> Counter[int]:
        found: Counter[int] = Counter()
        for body in self.store.contents(bucket, prefix).values():
            found += records_in(body)
        return found

    def run(self) -> Receipt:
        """Run one worker on the partition."""
        self.runs += 1
        run = PartitionRun(
            PARTITION, self.settings, self.store, self.clock, NoDeadline(), f"run-{self.runs}"
        )
        return compact_partition(run, Counts())

    def clean_up(self, path: str = PARTITION.path) -> CleanUpReceipt:
        """Clean up one partition, as a run of its own."""
        self.runs += 1
        run = self.clean_up_run(path)
        return record_clean_up(run, CleanUpReceipt(path, run.run_id))

    def clean_up_run(self, path: str = PARTITION.path, **given: Any) -> CleanUpRun:
        """Return the arguments of a clean-up; ``given`` replaces some of them."""
        run = CleanUpRun(
            path, self.settings, self.store, self.clock, NoDeadline(), f"run-{self.runs}"
        )
        return replace(run, **given)

    def make_void(self, sequence: int) -> None:
        """Delete an output and all checkpoints, and void its commit as another run would."""
        log = CommitLog(self.store, self.settings, PARTITION)
        (commit,) = (one for one in log.every_commit() if one.sequence == sequence)
        if commit.output is not None:
            self.store.remove("lake", commit.output.key)
        for key in self.store.contents("lake", self.settings.state.prefix):
            if key.endswith(".checkpoint.json.gz"):
                self.store.remove("lake", key)
        log.append(log.load(), commit.voided("another"))

    def must_be_finished(self) -> None:
        """Check that every record is readable once, and another run finds nothing to do."""
        self.check()
        assert set(self.destination()) == self.records
        before = self.store.contents("lake", "compacted/")
        reads = self.store.count("read_source")
        receipt = self.run()
        assert receipt.status == "done"
        assert receipt.counts.objects_in == 0
        assert self.store.count("read_source") == reads
        assert self.store.contents("lake", "compacted/") == before
