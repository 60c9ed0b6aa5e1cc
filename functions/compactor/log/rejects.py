"""Which rejects of a partition wait for a schema that their records fit.

A later entry that names the rejects among its sources takes them over: its output holds the records
that fit by then, and its own rejects hold the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Self

import msgspec

from compactor.log.columnar import Rejects
from compactor.log.entries import Commit
from compactor.model import SourceObject
from compactor.sizes import plural


class Waiting(msgspec.Struct, frozen=True):
    """The rejects of one entry.

    Attributes:
        sequence: sequence of the entry.
        schema: digest of the columns that the records did not fit.
    """

    sequence: int
    schema: str
    rejects: Rejects

    @property
    def source(self) -> SourceObject:
        """The rejects as the source of another entry.

        Identified by checksum, not ETag: a late run may store the same object again, which with KMS
        gets another ETag.
        """
        one = self.rejects
        return SourceObject(one.bucket, one.key, f"{one.crc32:08x}", one.size, 0.0)


class WaitingRejects(msgspec.Struct):
    """The rejects that no valid entry has taken over, as a fold over a log's entries.

    Attributes:
        waiting: waiting rejects by key.
        taken: by the sequence of the entry that took them over, as long as its output may be lost.
    """

    waiting: dict[str, Waiting] = msgspec.field(default_factory=dict)
    taken: dict[int, list[Waiting]] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, waiting: Iterable[Waiting]) -> Self:
        """Rebuild the state that a checkpoint holds."""
        return cls({one.rejects.key: one for one in waiting})

    @property
    def in_order(self) -> list[Waiting]:
        """All waiting rejects, the oldest entry first."""
        return sorted(self.waiting.values(), key=lambda one: one.sequence)

    @property
    def records(self) -> int:
        """Number of records that wait."""
        return sum(one.rejects.records for one in self.waiting.values())

    def add(self, commit: Commit) -> None:
        """Apply the next entry of the log; if it replaces one, call :meth:`replaced` first."""
        if commit.replays:
            named = (self.waiting.pop(row.source.key, None) for row in commit.rows)
            self.taken[commit.sequence] = [one for one in named if one is not None]
        if commit.rejects is not None and commit.output and commit.output.columnar:
            digest = schema_digest(commit.output.columnar.schema)
            one = Waiting(commit.sequence, digest, commit.rejects)
            self.waiting[one.rejects.key] = one

    def replaced(self, sequence: int) -> None:
        """Void an entry: the rejects it took over wait again, and its own rejects no longer do."""
        kept = [one for one in self.waiting.values() if one.sequence != sequence]
        again = [*kept, *self.taken.pop(sequence, ())]
        self.waiting = {one.rejects.key: one for one in again}

    def published(self, sequence: int) -> None:
        """Record that an entry's output is readable, so the entry stays valid."""
        self.taken.pop(sequence, None)


class RejectsSeen:
    """Collects the waiting rejects from a log's valid entries, read newest first."""

    def __init__(self) -> None:
        self.waiting: list[Rejects] = []
        self._taken: set[str] = set()

    def add(self, commit: Commit) -> None:
        """Apply the next older entry."""
        if commit.replays:
            self._taken |= {row.source.key for row in commit.rows}
        if commit.rejects is not None and commit.rejects.key not in self._taken:
            self.waiting.append(commit.rejects)


def schema_digest(schema: str) -> str:
    """Return a short digest of an output's columns as its commit has them."""
    return hashlib.blake2b(schema.encode(), digest_size=8).hexdigest()


def describe(waiting: Iterable[Rejects]) -> str:
    """Return how many records wait and where, for display; empty for none."""
    every = list(waiting)
    if not every:
        return ""
    records = sum(one.records for one in every)
    places = sorted({f"s3://{one.bucket}/{one.key.rpartition('/')[0]}/" for one in every})
    more = f" and {len(places) - 1:,} more prefixes" if len(places) > 1 else ""
    return f"{plural(records, 'rejected record')} in no output: see {places[0]}{more}"
