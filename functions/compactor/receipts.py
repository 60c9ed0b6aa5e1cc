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
from compactor.commit_log import LogState
from compactor.model import Partition, Skipped
from compactor.ports import ObjectStore
from compactor.settings import Settings

SHOWN_QUARANTINED = 100


class QuarantineLine(msgspec.Struct, frozen=True):
    """One source left alone."""

    key: str
    reason: str
    detail: str


@dataclass(slots=True)
class Counts:
    """Numbers of one partition in one run; bytes and seconds where the names say so.

    ``records`` leaves out the records of server-side copies, which nobody counted.
    """

    objects_in: int = 0
    bytes_in: int = 0
    objects_out: int = 0
    bytes_out: int = 0
    records: int = 0
    copied: int = 0
    quarantined: int = 0
    conflicts: int = 0
    changed: int = 0
    repaired: int = 0
    calls: int = 0
    seconds: float = 0.0
    requests: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Receipt:
    """The account of one partition in one run.

    Attributes:
        status: ``done``, ``more`` (time ran out) or ``failed``.
        error, cause: class name and text of what ended a failed partition.
        skipped: objects not compacted, by reason, as the last plan saw them.
    """

    path: str
    run_id: str
    status: str
    counts: Counts = field(default_factory=Counts)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    quarantined: list[QuarantineLine] = field(default_factory=list)
    error: str = ""
    cause: str = ""


def count_commits(counts: Counts, state: LogState, run_id: str) -> list[QuarantineLine]:
    """Fill in what this run committed; returns the first sources it quarantined."""
    lines: list[QuarantineLine] = []
    counts.quarantined = 0
    mine = [summary for summary in state.summaries.values() if summary.run_id == run_id]
    counts.objects_in = sum(s.sources for s in mine)
    counts.bytes_in = sum(s.source_bytes for s in mine)
    counts.objects_out = sum(s.outputs for s in mine)
    counts.bytes_out = sum(s.output_bytes for s in mine)
    counts.records = sum(s.records or 0 for s in mine)
    counts.copied = sum(s.outputs for s in mine if s.copied)
    for summary in mine:
        counts.quarantined += len(summary.quarantined)
        lines += [QuarantineLine(q.source.key, q.reason, q.detail) for q in summary.quarantined]
    return lines[:SHOWN_QUARANTINED]


def add_requests(counts: Counts, made: Mapping[str, int]) -> None:
    """Add the requests of one more call."""
    counts.requests = dict(Counter(counts.requests) + Counter(dict(made)))


def write(receipt: Receipt, settings: Settings, partition: Partition, store: ObjectStore) -> None:
    """Store the receipt, over that of an earlier call of the same run."""
    bucket, key = layout.receipt_key(settings, receipt.run_id, partition)
    store.put(bucket, key, msgspec.json.encode(receipt), content_type="application/json")


def decode(body: bytes) -> Receipt:
    """The receipt again."""
    return msgspec.json.decode(body, type=Receipt)


def counts_from(document: Mapping[str, Any] | None) -> Counts:
    """Counts of earlier calls, as the state machine carries them; none for the first call."""
    return msgspec.convert(document, Counts) if document else Counts()
