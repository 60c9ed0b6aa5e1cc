"""What clean-up did to one partition, in numbers, and where that is written down.

A receipt adds up the calls of one run, so that each call goes on from the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from compactor import layout
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
    """What adds up over partitions.

    Attributes:
        commits: commits of which no source is left to delete.
        deleted, deleted_bytes: sources that were deleted, but for those that the store says were
            gone before: another clean-up has counted them.
        changed: sources that stay, because another object stands at their key.
        refused: sources that the store did not delete; the next run tries them again.
        markers: deletes that only put a delete marker.
        uploads_aborted: orphans among the uploads.
    """

    commits: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    changed: int = 0
    refused: int = 0
    markers: int = 0
    uploads_aborted: int = 0


#: Names of what adds up.
SUMMED = tuple(one.name for one in fields(CleanUpSums))


def add_sums(sums: Any, more: CleanUpSums) -> None:
    """Add one partition's numbers to what has attributes of the same names."""
    for name in SUMMED:
        setattr(sums, name, getattr(sums, name) + getattr(more, name))


@dataclass(slots=True)
class CleanUpCounts(CleanUpSums):
    """Numbers of one partition's clean-up in one run.

    Attributes:
        through: sequence of the last entry of the log that this run has dealt with.
        requests: by kind, and bytes moved.
    """

    through: int = 0
    calls: int = 0
    requests: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Undeleted:
    """One source that the store did not delete, and its words."""

    key: str
    reason: str


@dataclass(slots=True)
class CleanUpReceipt:
    """The account of one partition's clean-up in one run.

    Attributes:
        status: ``done``, ``more`` (time ran out) or ``failed``.
        error, cause: class name and text of what ended a failed call.
        unsafe: one line for each commit whose output did not check out; its sources stay.
        refusals: the first sources that the store did not delete.
        warnings: one line for whatever else a person should know.
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
        """A receipt of its own, to go on from this one."""
        return _decode(msgspec.json.encode(self))

    def warn(self, line: str) -> None:
        """Note a warning, once."""
        if line not in self.warnings:
            self.warnings.append(line)

    def refuse(self, refused: Iterable[Refused]) -> None:
        """Count sources that were not deleted, and show the first."""
        lines = [Undeleted(one.key, one.reason) for one in refused]
        self.counts.refused += len(lines)
        self.refusals = (self.refusals + lines)[:SHOWN_REFUSALS]

    def add_requests(self, made: Mapping[str, int]) -> None:
        """Add the requests of one more call."""
        self.counts.requests = dict(Counter(self.counts.requests) + Counter(dict(made)))


def waiting_line(why: str) -> str:
    """The line about sources past retention that wait for the readers of a table."""
    return f"sources that are past retention wait: {why}"


_decode = decoder(CleanUpReceipt)


def write(
    receipt: CleanUpReceipt, settings: Settings, partition: Partition, store: ObjectStore
) -> None:
    """Store the receipt, over that of an earlier call of the same run."""
    place = layout.clean_up_receipt_key(settings, receipt.run_id, partition)
    leave_document(store, place, receipt, RECEIPT_VERSION)


def earlier(
    settings: Settings, run_id: str, partition: Partition, store: ObjectStore
) -> CleanUpReceipt:
    """What earlier calls of this run left; a fresh receipt for the first call."""
    bucket, key = layout.clean_up_receipt_key(settings, run_id, partition)
    try:
        return decode(store.get(bucket, key), f"s3://{bucket}/{key}")
    except ObjectMissing:
        return CleanUpReceipt(partition.path, run_id)


def decode(body: bytes, where: str = "a receipt of clean-up") -> CleanUpReceipt:
    """The receipt again.

    Raises:
        IntegrityError: a later version of this program wrote it, in a version not known here.
    """
    require_version(where, body, RECEIPT_VERSION)
    return _decode(body)
