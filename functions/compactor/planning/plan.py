"""Decides what to compact: a pure function of a listing, the settings and the commit log."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from compactor.log.digests import Digests
from compactor.model import (
    ARCHIVED_CLASSES,
    SHOWN_EXAMPLES,
    CompactionPlan,
    Listing,
    ObjectGroup,
    Partition,
    Signature,
    Skipped,
    SkipReason,
    SourceObject,
)
from compactor.planning.key_rules import KeyRules
from compactor.planning.markers import Roots, roots_in
from compactor.planning.packing import pack
from compactor.settings.settings import Settings
from compactor.settings.windows import named_level

# S3 encryption clients append this to an object's key to name the object with its encryption key.
_INSTRUCTION = ".instruction"
_NONE = Skipped(0, 0)


class Knowledge(msgspec.Struct, frozen=True):
    """What is known about sources besides the listing.

    Attributes:
        committed: identities of sources that a commit names.
        quarantined: identities of sources that were left alone, and would be again.
        signatures: signatures learned from sources that did not fit their group.
        roots: prefixes that a table or registry owns, in addition to those the listing shows.
    """

    committed: Digests = msgspec.field(default_factory=Digests)
    quarantined: Container[bytes] = frozenset()
    signatures: Mapping[bytes, Signature] = msgspec.field(default_factory=dict)
    roots: Roots = msgspec.field(default_factory=dict)


def plan(listing: Listing, settings: Settings, known: Knowledge, now: float) -> CompactionPlan:
    """Choose the groups of one partition.

    While a partition is open (its newest object is younger than six times ``settle_seconds``),
    only full groups are chosen: later objects may still fill the others. An incomplete listing is
    one window, with more objects after it: all its groups are chosen.

    Raises:
        InvalidInput: sources were already compacted from another bucket, and the settings do not
            allow both.
    """
    skips = _Skips(listing)
    known = msgspec.structs.replace(known, roots={**known.roots, **roots_in(listing.objects)})
    rules = _Rules(settings, known, now, listing.partition)
    encrypted = _encrypted_among(listing.objects)
    candidates = []
    for source in listing.objects:
        reason = rules.reason_to_skip(source)
        if reason is None and source.key in encrypted:
            reason = SkipReason.CLIENT_ENCRYPTED
        if reason is None:
            candidates.append(source)
        else:
            skips.add(reason, source)
    if listing.complete and len(candidates) < settings.min_objects:
        return skips.plan((), SkipReason.TOO_FEW, candidates)
    is_open = listing.complete and listing.newest > now - settings.open_partition_seconds
    packed = pack(candidates, settings, known.signatures)
    groups = tuple(group.group for group in packed if group.full or not is_open)
    return skips.plan(groups, SkipReason.OPEN_PARTITION if is_open else None, candidates)


def _encrypted_among(sources: Sequence[SourceObject]) -> frozenset[str]:
    """Return the keys of objects that have an instruction file, and of these files."""
    instructions = {source.key for source in sources if source.key.endswith(_INSTRUCTION)}
    if not instructions:
        return frozenset()
    keys = {source.key for source in sources if f"{source.key}{_INSTRUCTION}" in instructions}
    return frozenset(keys | {f"{key}{_INSTRUCTION}" for key in keys})


class _Rules:
    """Decides whether one source is a candidate."""

    def __init__(
        self, settings: Settings, known: Knowledge, now: float, partition: Partition
    ) -> None:
        self._known = known
        self._now = now
        self._settled_before = now - settings.settle_seconds
        self._retry_quarantined = settings.retry_quarantined
        self.by_key = KeyRules(settings, known.roots)
        self._partition_length = len(partition.prefix)

    def reason_to_skip(self, source: SourceObject) -> SkipReason | None:
        return self.by_key(source) or self._by_level(source) or self._by_state(source)

    def _by_level(self, source: SourceObject) -> SkipReason | None:
        deeper = named_level(source.key, self._partition_length)
        return SkipReason.DEEPER_LEVEL if deeper else None

    def _by_state(self, source: SourceObject) -> SkipReason | None:
        identity = source.identity
        if identity in self._known.committed:
            return SkipReason.COMMITTED
        if self._known.committed.has_key_of(identity):
            return SkipReason.OVERWRITTEN
        if identity in self._known.quarantined and not self._retry_quarantined:
            return SkipReason.QUARANTINED
        if source.storage_class in ARCHIVED_CLASSES and source.restored_until <= self._now:
            return SkipReason.ARCHIVED
        if source.last_modified > self._settled_before:
            return SkipReason.TOO_YOUNG
        return None


class _Skips:
    """Skipped objects, counted by reason."""

    def __init__(self, listing: Listing) -> None:
        self._partition = listing.partition
        self._counts: dict[SkipReason, Skipped] = {}
        if listing.committed_objects:
            committed = Skipped(listing.committed_objects, listing.committed_bytes)
            self._counts[SkipReason.COMMITTED] = committed
        if listing.overwritten.objects:
            self._counts[SkipReason.OVERWRITTEN] = listing.overwritten

    def add(self, reason: SkipReason, source: SourceObject) -> None:
        old = self._counts.get(reason, _NONE)
        shown = (*old.examples, source.key) if len(old.examples) < SHOWN_EXAMPLES else old.examples
        oldest = min(old.oldest or source.last_modified, source.last_modified)
        self._counts[reason] = Skipped(old.objects + 1, old.bytes + source.size, shown, oldest)

    def plan(
        self,
        groups: tuple[ObjectGroup, ...],
        reason_for_rest: SkipReason | None,
        candidates: Iterable[SourceObject],
    ) -> CompactionPlan:
        """Return the plan; candidates in no group are counted as skipped, empty ones as empty."""
        grouped = {source.key for group in groups for source in group.sources}
        for source in candidates:
            reason = reason_for_rest or (None if source.size else SkipReason.EMPTY)
            if reason is not None and source.key not in grouped:
                self.add(reason, source)
        return CompactionPlan(self._partition, groups, dict(self._counts))
