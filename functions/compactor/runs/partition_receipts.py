"""The receipt of one partition in one run: its counts, and how it is stored.

A receipt adds up the calls of one partition in one run. What was compacted is counted from
the commit log, so that commits of a call that died later are included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from compactor import layout
from compactor.decoding import decoder, require_version
from compactor.documents import leave_document
from compactor.errors import ObjectMissing
from compactor.log.entries import NOTHING
from compactor.log.left_alone import LeftAlone
from compactor.log.size_counts import SizeCounts
from compactor.log.state import LogState, QuarantineLine
from compactor.model import Partition, Skipped
from compactor.ports import ObjectStore
from compactor.readers.outcome import Outcome
from compactor.runs.resume_point import Place
from compactor.settings.settings import Settings

RECEIPT_VERSION = 1


@dataclass(slots=True)
class Counts:
    """Counts of one partition in one run; bytes and seconds where the names say so.

    ``records`` excludes the records of server-side copies, which are not counted, and
    ``dead_letters``, which fit no row of a Parquet output. Sources with the same content as an
    earlier commit of their key are ``delivered_again`` and not compacted; those with other content
    are ``overwritten`` and compacted in addition to the old content. ``gb_seconds`` and
    ``invocations`` are those of Lambda functions, divided among the partitions of a batch.
    """

    objects_in: int = 0
    bytes_in: int = 0
    objects_out: int = 0
    bytes_out: int = 0
    records: int = 0
    copied: int = 0
    dead_letters: int = 0
    quarantined: int = 0
    delivered_again: int = 0
    overwritten: int = 0
    conflicts: int = 0
    changed: int = 0
    repaired: int = 0
    marked: int = 0
    calls: int = 0
    seconds: float = 0.0
    requests: dict[str, int] = field(default_factory=dict)
    gb_seconds: float = 0.0
    invocations: float = 0.0


@dataclass(slots=True)
class Receipt:
    """What one run did in one partition.

    Attributes:
        status: ``done``, ``more`` (time ran out) or ``failed``.
        error, cause: class name and text of the error that ended a failed partition.
        left_alone: the quarantined sources, by reason.
        skipped: objects not compacted, by reason, as the last plan saw them.
        overwritten: compacted objects whose key had other content before.
        place: where the next call begins, if one is needed; None for the first key.
        shown: what the readers' table shows of the partition; None if the settings name no table.
        sizes: sizes of the objects that the run compacted, and of its outputs.
        dead_letters: the prefix with the dead-letter records; empty if the run has none here.
    """

    path: str
    run_id: str
    status: str
    counts: Counts = field(default_factory=Counts)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    quarantined: list[QuarantineLine] = field(default_factory=list)
    left_alone: dict[str, LeftAlone] = field(default_factory=dict)
    error: str = ""
    cause: str = ""
    overwritten: Skipped = NOTHING
    place: Place | None = None
    shown: Outcome | None = None
    sizes: SizeCounts = field(default_factory=SizeCounts)
    dead_letters: str = ""


_decode = decoder(Receipt)


def count_commits(counts: Counts, state: LogState, run_id: str) -> list[QuarantineLine]:
    """Fill in what this run committed; return the first sources it quarantined."""
    totals = state.totals(run_id)
    counts.objects_in = totals.sources
    counts.bytes_in = totals.source_bytes
    counts.objects_out = totals.outputs
    counts.bytes_out = totals.output_bytes
    counts.records = totals.records
    counts.copied = totals.copied
    counts.dead_letters = totals.dead_letters
    counts.quarantined = totals.quarantined
    counts.delivered_again = totals.again.objects
    counts.overwritten = totals.overwritten.objects
    return totals.lines


def add_requests(counts: Counts, made: Mapping[str, int]) -> None:
    """Add the requests of another call."""
    counts.requests = dict(Counter(counts.requests) + Counter(dict(made)))


def write(receipt: Receipt, settings: Settings, partition: Partition, store: ObjectStore) -> None:
    """Store the receipt, replacing that of an earlier call of the same run."""
    place = layout.receipt_key(settings, receipt.run_id, partition)
    leave_document(store, place, receipt, RECEIPT_VERSION)


def read(
    settings: Settings, run_id: str, partition: Partition, store: ObjectStore
) -> Receipt | None:
    """Return the receipt of this run's previous call; None if there is no receipt yet.

    Raises:
        IntegrityError: see :func:`decode`.
    """
    bucket, key = layout.receipt_key(settings, run_id, partition)
    try:
        return decode(store.get(bucket, key), f"s3://{bucket}/{key}")
    except ObjectMissing:
        return None


def decode(body: bytes, where: str = "a receipt") -> Receipt:
    """Decode a stored receipt.

    Raises:
        IntegrityError: a later version of this program wrote it, in a format unknown here.
    """
    require_version(where, body, RECEIPT_VERSION)
    return _decode(body)


def counts_from(document: Mapping[str, Any] | None) -> Counts:
    """Return the counts of earlier calls from the state machine's input; zeros without any."""
    return msgspec.convert(document, Counts) if document else Counts()
