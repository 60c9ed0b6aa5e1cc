"""Marks registered objects with their outcome, after a partition's commits are published.

The commit log is authoritative. If a process dies before marking objects, or marks them wrongly,
the next run sees the same objects and finds them in the log.
"""

from __future__ import annotations

from collections.abc import Iterable

from compactor.log.digests import Digests
from compactor.log.entries import Commit
from compactor.log.manifest import identities
from compactor.log.state import LogState
from compactor.model import SkipReason, SourceObject
from compactor.outputs.detection import decided_by
from compactor.planning.key_rules import KeyRules
from compactor.planning.markers import Roots
from compactor.registry.items import LEFT_PASSING, Item, ItemState, Mark
from compactor.registry.pending_listing import EventListing, Marked
from compactor.runs.partition_run import PartitionRun
from compactor.settings.windows import named_level


class NamedBy:
    """Maps sources to the commits of this call, in little more than 16 bytes per source.

    Args:
        run: the partition's run; commits are remembered only if its listing comes from events.
    """

    def __init__(self, run: PartitionRun) -> None:
        self._wanted = run.listing is not None
        self._commits: list[tuple[str, Digests]] = []
        self._met: set[bytes] = set()

    def met(self, sources: Iterable[SourceObject]) -> None:
        """Add committed sources that a plan of this call has checked for being put again."""
        self._met |= {one.identity for one in sources}

    def was_met(self, identity: bytes) -> bool:
        """Return True if a plan of this call has checked a source of an earlier commit.

        Any other source may have been put again since. If it were marked as compacted, it would
        appear in no listing again, and clean-up would never delete it.
        """
        return identity in self._met

    def add(self, commit: Commit) -> None:
        """Remember the sources of a commit of this call."""
        if self._wanted:
            self._commits.append((commit.commit_id, Digests(identities(commit.rows))))

    def commit_of(self, identity: bytes) -> str:
        """Return the id of this call's commit that names a source; empty if no such commit does."""
        for commit_id, named in self._commits:
            if identity in named:
                return commit_id
        return ""


def settle_registered(run: PartitionRun, state: LogState, named: NamedBy, roots: Roots) -> Marked:
    """Mark a partition's pending objects with their outcome, if the listing comes from events.

    Does nothing while commits are unpublished: the objects must stay pending, so that the next run
    visits the partition.

    Args:
        run: the partition's run.
        state: its log.
        named: the sources of this call's commits.
        roots: prefixes that a table or registry owns.

    Raises:
        TransientStoreError: the registry did not answer; commits are not affected.
        InvalidInput: access to the registry is denied.
    """
    listing = run.listing
    if listing is None or state.unpublished:
        return Marked()
    judge = _Judge(run, state, named, listing, roots)
    return listing.settle(run.partition, judge, run.clock.now())


class _Judge:
    """Decides how a registered item is marked; None leaves it as it is."""

    def __init__(
        self,
        run: PartitionRun,
        state: LogState,
        named: NamedBy,
        listing: EventListing,
        roots: Roots,
    ) -> None:
        self._state = state
        self._named = named
        self._listing = listing
        self._by_key = KeyRules(run.settings, roots)
        self._decided_by = decided_by(run.settings)

    def __call__(self, item: Item) -> Mark | None:
        identity = item.source.identity
        if identity in self._state.committed:
            commit = self._named.commit_of(identity)
            if not commit and not self._named.was_met(identity):
                return _pending(item)
            # An earlier call committed it, but its mark was lost. Name the log's range instead.
            return Mark(item, ItemState.COMPACTED, commit or f"entry 1 to {self._state.last}")
        if self._listing.is_gone(item.source):
            return Mark(item, ItemState.GONE)
        reason = self._reason(item, identity)
        if reason:
            return Mark(item, ItemState.LEFT, reason=f"{reason}@{self._decided_by}")
        return _pending(item)

    def _reason(self, item: Item, identity: bytes) -> str:
        if identity in self._state.passing:
            return LEFT_PASSING
        if identity in self._state.quarantined:
            return "quarantined"
        if not item.size:
            return "empty"
        source = item.source
        deeper = named_level(source.key, len(item.partition.prefix))
        return self._by_key(source) or (SkipReason.DEEPER_LEVEL if deeper else "")


def _pending(item: Item) -> Mark | None:
    return None if item.state is ItemState.PENDING else Mark(item, ItemState.PENDING)
