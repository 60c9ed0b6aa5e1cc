"""A world of generated sources, and the checks of it after a run."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable
from typing import Any

import zstandard

from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.outputs.restore import Wanted, find, restore
from compactor.outputs.verify import check_commit
from compactor.partition.receipts import Receipt
from compactor.planning.partition_listing import listing_of, take_listing
from compactor.planning.plan import Knowledge, plan
from tests.support.examples import NOW, PARTITION
from tests.support.memory_store import MemoryStore
from tests.support.records import Made, Records, all_records, read_object
from tests.support.world import World

WRITES = ("create_upload", "upload_part", "copy_part", "complete_upload")


class Sources(World):
    """A world with generated sources in its only partition."""

    def __init__(
        self, sources: Iterable[Made], store: dict[str, Any] | None = None, **given: Any
    ) -> None:
        super().__init__(**given)
        self.store = MemoryStore(self.clock, **(store or {}))
        self.store.add_bucket("lake")
        self.store.add_bucket("source")
        self.made = {f"{PARTITION.prefix}{n:03}{one.name}": one for n, one in enumerate(sources)}
        for key, one in reversed(self.made.items()):
            self.store.seed("source", key, one.stored, last_modified=NOW - 86_400)

    @property
    def log(self) -> CommitLog:
        return CommitLog(self.store, self.settings, PARTITION)

    @property
    def outputs(self) -> dict[str, bytes]:
        return self.store.contents("lake", "compacted/")

    def commits(self) -> list[Commit]:
        return list(self.log.every_commit())

    def check_everything(self) -> None:
        """Check compaction, verification, restore and another run against the sources."""
        receipt = self.run()
        assert receipt.status == "done"
        self.check_records(receipt)
        assert sum(check_commit(one, self.store) for one in self.commits()) == len(self.expected())
        self.check_restore()
        self.check_idle_again()

    def expected(self) -> list[tuple[str, bytes]]:
        total: Records = Counter()
        for one in self.made.values():
            total += one.records
        return sorted(total.elements())

    def check_records(self, receipt: Receipt) -> None:
        assert sorted(all_records(list(self.outputs.items())).elements()) == self.expected()
        assert receipt.counts.records == len(self.expected())
        named = Counter(row.source.key for one in self.commits() for row in one.rows)
        left = Counter(q.source.key for one in self.commits() for q in one.quarantined)
        assert set(named.values()) | set(left.values()) <= {1}
        assert set(left) == {key for key, one in self.made.items() if one.damaged}
        sound = {key for key, one in self.made.items() if not one.damaged}
        assert set(named) <= sound
        assert {key for key in sound if self.made[key].stored} <= set(named)

    def check_restore(self) -> None:
        commits = self.commits()
        named = {row.source.key for one in commits for row in one.rows}
        restored = given_back(self, *commits)
        assert restored == {key: self.made[key].plain for key in named}

    def check_idle_again(self) -> None:
        """Check that another run reads no source and writes no output, and a plan is empty."""
        outputs, reads = self.outputs, self.store.count("read_source")
        writes = self.store.count(*WRITES)
        receipt = self.run()
        assert receipt.status == "done"
        assert receipt.counts.objects_in == receipt.counts.quarantined == 0
        assert self.store.count("read_source") == reads
        assert self.store.count(*WRITES) == writes
        assert self.outputs == outputs
        state = self.log.load()
        listing = take_listing(listing_of(self.store, PARTITION), PARTITION, state.committed)
        known = Knowledge(state.committed, state.quarantined)
        assert plan(listing, self.settings, known, self.clock.now()).empty


def given_back(world: Sources, *newest_first: Commit) -> dict[str, bytes]:
    named = frozenset(row.source.key for one in newest_first for row in one.rows)
    return {
        row.source.key: b"".join(pieces)
        for found in find(newest_first, Wanted(named))
        for row, pieces in restore(found, world.store)
    }


def of(name: str, content: bytes, **given_: Any) -> Made:
    stored = content
    if name.endswith(".gz"):
        stored = gzip.compress(content, mtime=0)
    if name.endswith(".zst"):
        stored = zstandard.ZstdCompressor(write_checksum=True).compress(content)
    return Made(name, content, stored, read_object(name, stored), **given_)
