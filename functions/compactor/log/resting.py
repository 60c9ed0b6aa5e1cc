"""Partitions at rest: what a worker remembers of one in which nothing was left to be done.

The record says: a worker that sees this listing, log and settings before that time has nothing
to do. That follows from those alone, so a record may be old, or late, and is true all the same;
of a partition that has changed it says nothing. It saves work, and
is no part of the log: where it is missing, damaged or of another version, a worker looks.
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
from compactor.prices import prices_digest
from compactor.settings.settings import Settings

RECORD_VERSION = 1
#: Of the program: to be raised by any change to which sources a plan leaves alone.
PLAN_RULES = 1
# Which partitions a run takes, and who else works for it; not what is done in a partition.
_BESIDE = frozenset({"start", "end", "duration", "spark_engine"})


class RestRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a partition at rest.

    Attributes:
        run_id: of the run that looked. For that run itself the partition is one that it worked on.
        by: the settings and rules that it depends on, see :func:`looked_by`.
        at: when a worker looked; UNIX seconds.
        until: from then on there is something to do, because of the age of objects alone; None for
            never.
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
        """True while it may be believed of what it saw, by these settings."""
        if self.version != RECORD_VERSION or self.by != by or now < self.at:
            return False
        return self.until is None or now < self.until


_decode = decoder(RestRecord)


@dataclass(frozen=True, slots=True)
class Resting:
    """Partitions that were found at rest.

    Attributes:
        partitions: how many.
        objects: in them, as listed.
        bytes: of these.
        skipped: of these, by the reason for which they are left alone.
    """

    partitions: int = 0
    objects: int = 0
    bytes: int = 0
    skipped: Mapping[str, Skipped] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """For a person."""
        partitions = f"{self.partitions:,} partition{'s' if self.partitions != 1 else ''}"
        objects = f"{self.objects:,} object{'s' if self.objects != 1 else ''}"
        return f"at rest: {partitions} ({objects}), not looked at further"

    def plus(self, other: Resting) -> Resting:
        """Both together."""
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
    """Names everything but time, listing and log that decides what is to be done; 32 hex digits."""
    asked = {name: one for name, one in settings.to_dict().items() if name not in _BESIDE}
    judged = () if settings.pays_back_within_days is None else (prices_digest(),)
    text = json.dumps([PLAN_RULES, asdict(settings.limits), asked, *judged], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def read_rest(settings: Settings, partition: Partition, store: ObjectStore) -> RestRecord | None:
    """The record of a partition; None where there is none that can be understood."""
    try:
        return _decode(store.get(*layout.rest_key(settings, partition)))
    except (ObjectMissing, msgspec.MsgspecError, ValueError):
        return None


def write_rest(
    settings: Settings, partition: Partition, record: RestRecord, store: ObjectStore
) -> None:
    """Write the record, over an earlier one."""
    place = layout.rest_key(settings, partition)
    store.put(*place, msgspec.json.encode(record), content_type="application/json")


class Rests(msgspec.Struct, frozen=True):
    """Finds which partitions are at rest.

    Args:
        settings: of the run.
        store: where the state is.
        now: UNIX seconds.
        run_id: of the run; empty for none.
        by: what :func:`looked_by` says of the settings.
    """

    settings: Settings
    store: ObjectStore
    now: float
    run_id: str
    by: str

    @classmethod
    def of(cls, settings: Settings, store: ObjectStore, now: float, run_id: str) -> Rests:
        """For a run with these settings."""
        return cls(settings, store, now, run_id, looked_by(settings))

    def record(self, partition: Partition) -> RestRecord | None:
        """What is to be compared with the partition's listing; None for a partition to work on."""
        try:
            found = read_rest(self.settings, partition, self.store)
        except TransientStoreError:
            return None
        if found is None or found.run_id == self.run_id or not found.is_of(self.by, self.now):
            return None
        return found

    def confirmed(self, record: RestRecord, partition: Partition, seen: Seen) -> Resting | None:
        """The partition, where listing and log are those of the record; None where they are not."""
        if seen != record.sources:
            return None
        try:
            outline = CommitLog(self.store, self.settings, partition).outline()
        except TransientStoreError:
            return None
        if outline is None or outline.digest != record.log:
            return None
        return Resting(1, seen.objects, seen.bytes, record.skipped)
