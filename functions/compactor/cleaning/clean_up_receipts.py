"""Receipts: what clean-up did in one partition, and where that is stored.

A receipt sums up the calls of one run, so that each call continues where the last one stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from compactor.decoding import decoder, require_version
from compactor.documents import leave_document
from compactor.errors import ObjectMissing
from compactor.model import Partition
from compactor.ports import ObjectStore, Refused
from compactor.settings.settings import Settings

RECEIPT_VERSION = 1
SHOWN_REFUSALS = 100


@dataclass(slots=True)
class CleanUpSums:
    """Counts that add up over partitions.

    Attributes:
        commits: commits with no source left to delete.
        deleted, deleted_bytes: deleted sources, except those that the store reports as already
            gone: another clean-up has counted them.
        changed: sources that stay because their key holds another object.
        refused: sources that the store did not delete; the next run tries them again.
        markers: deletes that only created a delete marker.
        uploads_aborted: orphaned uploads that were aborted.
    """

    commits: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    changed: int = 0
    refused: int = 0
    markers: int = 0
    uploads_aborted: int = 0


#: Names of the counts that add up.
SUMMED = tuple(field.name for field in fields(CleanUpSums))


def add_sums(sums: Any, more: CleanUpSums) -> None:
    """Add one partition's counts to an object with attributes of the same names."""
    for name in SUMMED:
        setattr(sums, name, getattr(sums, name) + getattr(more, name))


@dataclass(slots=True)
class CleanUpCounts(CleanUpSums):
    """Counts of one partition's clean-up in one run.

    Attributes:
        through: sequence of the last log entry that this run has processed.
        requests: by kind, and bytes moved.
    """

    through: int = 0
    calls: int = 0
    requests: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Undeleted:
    """A source that the store did not delete, and the store's reason."""

    key: str
    reason: str


@dataclass(slots=True)
class CleanUpReceipt:
    """The record of one partition's clean-up in one run.

    Attributes:
        status: ``done``, ``more`` (time ran out) or ``failed``.
        error, cause: class name and text of the error that ended a failed call.
        unsafe: one line for each commit whose output could not be proven; its sources stay.
        refusals: the first sources that the store did not delete.
        warnings: one line for anything else an operator should know.
    """

    path: str
    run_id: str
    status: str = "more"
    counts: CleanUpCounts = field(default_factory=CleanUpCounts)
    error: str = ""
    cause: str = ""
    unsafe: list[str] = field(default_factory=list)
    refusals: list[Undeleted] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def copy(self) -> CleanUpReceipt:
        """Return an independent copy to continue from."""
        return _decode(msgspec.json.encode(self))

    def warn(self, line: str) -> None:
        """Add a warning, once."""
        if line not in self.warnings:
            self.warnings.append(line)

    def refuse(self, refused: Iterable[Refused]) -> None:
        """Count sources that were not deleted, and keep the first for display."""
        lines = [Undeleted(refusal.key, refusal.reason) for refusal in refused]
        self.counts.refused += len(lines)
        self.refusals = (self.refusals + lines)[:SHOWN_REFUSALS]

    def add_requests(self, requests: Mapping[str, int]) -> None:
        """Add the requests of another call."""
        self.counts.requests = dict(Counter(self.counts.requests) + Counter(dict(requests)))


def waiting_line(why: str) -> str:
    """Return the line about sources past retention that wait for a table's readers."""
    return f"sources that are past retention wait: {why}"


_decode = decoder(CleanUpReceipt)


def write(
    receipt: CleanUpReceipt, settings: Settings, partition: Partition, store: ObjectStore
) -> None:
    """Store the receipt, replacing that of an earlier call of the same run."""
    place = settings.layout.clean_up_receipt(receipt.run_id, partition)
    leave_document(store, place, receipt, RECEIPT_VERSION)


def earlier(
    settings: Settings, run_id: str, partition: Partition, store: ObjectStore
) -> CleanUpReceipt:
    """Return the receipt of this run's earlier calls; an empty one for the first call."""
    bucket, key = settings.layout.clean_up_receipt(run_id, partition)
    try:
        return decode(store.get(bucket, key), f"s3://{bucket}/{key}")
    except ObjectMissing:
        return CleanUpReceipt(partition.path, run_id)


def decode(body: bytes, where: str = "a receipt of clean-up") -> CleanUpReceipt:
    """Return the decoded receipt.

    Raises:
        IntegrityError: a later version of this program wrote it, in a version not known here.
    """
    require_version(where, body, RECEIPT_VERSION)
    return _decode(body)
