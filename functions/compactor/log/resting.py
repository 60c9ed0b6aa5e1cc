"""Partitions at rest: records of partitions in which a worker found nothing to do.

A record says that a worker which sees the same listing, log and settings before a given time has
nothing to do. That depends on those alone, so an old or late record is still valid; once the
partition changes, the record no longer applies. It only saves work and is no part of the log: if it
is missing, damaged or of another version, the worker examines the partition.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import msgspec

from compactor import layout
from compactor.decoding import decoder
from compactor.errors import ObjectMissing, TransientStoreError
from compactor.fingerprint import Seen
from compactor.log.log import CommitLog
from compactor.model import Partition, Skipped
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

RECORD_VERSION = 1
#: Version of the planning rules: increment on any change to which sources a plan leaves alone.
PLAN_RULES = 1
# Settings that select partitions or name another engine, and do not affect the work in a partition.
_BESIDE = frozenset({"start", "end", "duration", "engine", "spark_engine"})


class RestRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a partition at rest.

    Attributes:
        run_id: the run that looked. That run itself ignores the record and counts the partition as
            worked on.
        by: the settings and rules that the record depends on, see :func:`looked_by`.
        at: when a worker looked; UNIX seconds.
        until: when there will be something to do because of the age of objects alone, UNIX seconds;
            None for never.
        sources: what was listed.
        log: digest of the log as listed, see :meth:`compactor.log.log.CommitLog.outline`.
        skipped: the objects left alone, by reason.
    """

    version: int = RECORD_VERSION
    run_id: str
    by: str
    at: float
    until: float | None
    sources: Seen
    log: str
    skipped: dict[str, Skipped]

    def is_of(self, by: str, now: float) -> bool:
        """Return True if the record applies to these settings and is valid at this time."""
        if self.version != RECORD_VERSION or self.by != by or now < self.at:
            return False
        return self.until is None or now < self.until


_decode = decoder(RestRecord)


@dataclass(frozen=True, slots=True)
class Resting:
    """Partitions that were found at rest.

    Attributes:
        partitions: number of partitions.
        objects: number of objects in them, as listed.
        bytes: total size of these objects.
        skipped: those left alone, by reason.
    """

    partitions: int = 0
    objects: int = 0
    bytes: int = 0
    skipped: Mapping[str, Skipped] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """One line for display."""
        partitions = f"{self.partitions:,} partition{'s' if self.partitions != 1 else ''}"
        objects = f"{self.objects:,} object{'s' if self.objects != 1 else ''}"
        return f"at rest: {partitions} ({objects}), not looked at further"

    def plus(self, other: Resting) -> Resting:
        """Return the sum of both."""
        skipped = dict(self.skipped)
        for reason, one in other.skipped.items():
            skipped[reason] = skipped[reason].plus(one) if reason in skipped else one
        return Resting(
            self.partitions + other.partitions,
            self.objects + other.objects,
            self.bytes + other.bytes,
            skipped,
        )


NONE_AT_REST = Resting()


def looked_by(settings: Settings) -> str:
    """Return 32 hex digits that identify the settings and rules which decide what is to be done.

    Excludes time, listing and log, which also decide it.
    """
    asked = {name: one for name, one in settings.to_dict().items() if name not in _BESIDE}
    text = json.dumps([PLAN_RULES, asdict(settings.limits), asked], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def read_rest(settings: Settings, partition: Partition, store: ObjectStore) -> RestRecord | None:
    """Return a partition's record, or None if there is no readable one."""
    try:
        return _decode(store.get(*layout.rest_key(settings, partition)))
    except (ObjectMissing, msgspec.MsgspecError, ValueError):
        return None


def write_rest(
    settings: Settings, partition: Partition, record: RestRecord, store: ObjectStore
) -> None:
    """Write the record, replacing any earlier one."""
    place = layout.rest_key(settings, partition)
    store.put(*place, msgspec.json.encode(record), content_type="application/json")


class Rests(msgspec.Struct, frozen=True):
    """Finds which partitions are at rest.

    Args:
        settings: the run's settings.
        store: the store that holds the state.
        now: UNIX seconds.
        run_id: id of the run; empty for none.
        by: the digest of the settings by :func:`looked_by`.
    """

    settings: Settings
    store: ObjectStore
    now: float
    run_id: str
    by: str

    @classmethod
    def of(cls, settings: Settings, store: ObjectStore, now: float, run_id: str) -> Rests:
        """Build the finder for a run with these settings."""
        return cls(settings, store, now, run_id, looked_by(settings))

    def record(self, partition: Partition) -> RestRecord | None:
        """Return the record to compare with the partition's listing, or None if none applies."""
        try:
            found = read_rest(self.settings, partition, self.store)
        except TransientStoreError:
            return None
        if found is None or found.run_id == self.run_id or not found.is_of(self.by, self.now):
            return None
        return found

    def confirmed(self, record: RestRecord, partition: Partition, seen: Seen) -> Resting | None:
        """Return the partition's counts if listing and log match the record, else None."""
        if seen != record.sources:
            return None
        try:
            outline = CommitLog(self.store, self.settings, partition).outline()
        except TransientStoreError:
            return None
        if outline is None or outline.digest != record.log:
            return None
        return Resting(1, seen.objects, seen.bytes, record.skipped)
