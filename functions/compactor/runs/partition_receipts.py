"""What one partition's calls did, in numbers, and where that is written down.

A receipt adds up the calls of one partition in one run. What was compacted is counted from
the commit log, so that a call that died after its commits is not missed.
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
    """Numbers of one partition in one run; bytes and seconds where the names say so.

    ``records`` leaves out the records of server-side copies, which were not counted, and those
    that were ``rejected`` because they do not fit the schema of a Parquet output; those that an
    earlier run rejected and that fit by now are among ``records``, and ``replayed``. Of all that
    any run rejected, ``rejects_waiting`` are in no output. Sources with
    content that an earlier commit of their key has are ``delivered_again`` and not compacted;
    those with other content are ``overwritten``, and compacted beside the old. ``gb_seconds`` and
    ``invocations`` are of Lambda functions, shared by the partitions of a batch; ``expected`` is
    what the plans estimated: requests by kind, and ``gb_seconds``.
    """

    objects_in: int = 0
    bytes_in: int = 0
    objects_out: int = 0
    bytes_out: int = 0
    records: int = 0
    copied: int = 0
    rejected: int = 0
    replayed: int = 0
    rejects_waiting: int = 0
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
    expected: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Receipt:
    """The account of one partition in one run.

    Attributes:
        status: ``done``, ``more`` (time ran out) or ``failed``.
        error, cause: class name and text of what ended a failed partition.
        left_alone: what the quarantined sources are, by reason.
        skipped: objects not compacted, by reason, as the last plan saw them.
        overwritten: of what was compacted, the objects at whose key there was other content before.
        place: where the next call begins, while there is one to come; None for the first key.
        shown: what query engines see of it; None where the settings name no table for them.
        sizes: of the objects that the run compacted, and of its outputs.
        rejects: the prefix with the records that are in no output; empty where there are none.
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
    rejects: str = ""


_decode = decoder(Receipt)


def count_commits(counts: Counts, state: LogState, run_id: str) -> list[QuarantineLine]:
    """Fill in what this run committed; returns the first sources it quarantined."""
    totals = state.totals(run_id)
    counts.objects_in = totals.sources
    counts.bytes_in = totals.source_bytes
    counts.objects_out = totals.outputs
    counts.bytes_out = totals.output_bytes
    counts.records = totals.records
    counts.copied = totals.copied
    counts.rejected = totals.rejected
    counts.replayed = totals.replayed
    counts.rejects_waiting = state.rejects.records
    counts.quarantined = totals.quarantined
    counts.delivered_again = totals.again.objects
    counts.overwritten = totals.overwritten.objects
    return totals.lines


def add_requests(counts: Counts, made: Mapping[str, int]) -> None:
    """Add the requests of one more call."""
    counts.requests = dict(Counter(counts.requests) + Counter(dict(made)))


def write(receipt: Receipt, settings: Settings, partition: Partition, store: ObjectStore) -> None:
    """Store the receipt, over that of an earlier call of the same run."""
    place = layout.receipt_key(settings, receipt.run_id, partition)
    leave_document(store, place, receipt, RECEIPT_VERSION)


def read(
    settings: Settings, run_id: str, partition: Partition, store: ObjectStore
) -> Receipt | None:
    """What the call before wrote; None where none came so far.

    Raises:
        IntegrityError: see :func:`decode`.
    """
    bucket, key = layout.receipt_key(settings, run_id, partition)
    try:
        return decode(store.get(bucket, key), f"s3://{bucket}/{key}")
    except ObjectMissing:
        return None


def decode(body: bytes, where: str = "a receipt") -> Receipt:
    """The receipt again.

    Raises:
        IntegrityError: a later version of this program wrote it, in a version not known here.
    """
    require_version(where, body, RECEIPT_VERSION)
    return _decode(body)


def counts_from(document: Mapping[str, Any] | None) -> Counts:
    """Counts of earlier calls, as the state machine carries them; none for the first call."""
    return msgspec.convert(document, Counts) if document else Counts()
