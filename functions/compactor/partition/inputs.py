"""What one call for a partition is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from compactor.catalogs.readers import open_readers
from compactor.destination import Destination
from compactor.log.entries import Commit
from compactor.log.identity import StateIdentity
from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.ports import Clock, Deadline, ObjectStore
from compactor.registry.pending_listing import EventListing
from compactor.settings.settings import Settings
from compactor.settings.tables import require_readable_key

if TYPE_CHECKING:
    from compactor.readers.reader_catalog import ReaderCatalog


class Paid(msgspec.Struct, frozen=True):
    """What a call costs apart from its requests; nothing outside Lambda.

    Attributes:
        memory_gb: memory of the Lambda function.
        share: this partition's share of the invocation, 0 to 1.
    """

    memory_gb: float = 0.0
    share: float = 0.0


NOT_LAMBDA = Paid()


@dataclass(frozen=True, slots=True)
class PartitionRun:
    """The input of one partition's run.

    Attributes:
        reserve_seconds: no new group is started with less than this left, plus 1.5 times what
            the longest group took.
        on_group: called after each published group.
        identity: that of the state, shared by the partitions of a call; by default, its own.
        listing: the objects that events named, trusted until a source shows that it is out of
            date; None to list the store.
        readers: opens the catalog of the readers' table, if the settings name one.
        paid: what the call costs apart from its requests.
    """

    partition: Partition
    settings: Settings
    store: ObjectStore
    clock: Clock
    deadline: Deadline
    run_id: str
    reserve_seconds: float = 30.0
    on_group: Callable[[Commit], None] = lambda commit: None
    identity: StateIdentity | None = None
    listing: EventListing | None = None
    readers: Callable[[str], ReaderCatalog] = open_readers
    paid: Paid = NOT_LAMBDA

    def __post_init__(self) -> None:
        if self.identity is None:
            object.__setattr__(self, "identity", StateIdentity(self.settings, self.store))

    @property
    def listed_at(self) -> float:
        """When the objects were listed, in UNIX seconds; their ages are measured at this time."""
        return self.clock.now() if self.listing is None else self.listing.at

    @property
    def log(self) -> CommitLog:
        """The partition's commit log."""
        return CommitLog(self.store, self.settings, self.partition, self.identity)

    @property
    def destination(self) -> Destination:
        """Where this partition's outputs go.

        Raises:
            InvalidInput: readers of the run's table would not find outputs with such keys.
        """
        bucket, prefix = self.settings.outputs_of(self.partition)
        table = self.settings.table_address
        if table is not None and not self.settings.upsert_key:
            require_readable_key(table, "s3_source_uri", prefix)
        return Destination(bucket, prefix)
