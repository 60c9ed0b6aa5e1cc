"""Decides whether a partition is at rest after a run, and records that for discovery.

Every window was planned until nothing was left in it. Here all of them are planned again
together, as the next run would: with the current log, and without what only this run knows. The
record is written only if that plan is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from compactor.fingerprint import Seen
from compactor.log.identity import read_identity
from compactor.log.log_objects import Outline
from compactor.log.resting import RestRecord, looked_by, write_rest
from compactor.log.state import LogState
from compactor.model import CompactionPlan, Listing, SkipReason, SourceObject
from compactor.outputs.detection import decided_by
from compactor.planning.plan import Knowledge, plan
from compactor.readers.outcome import Outcome
from compactor.runs.listings import Window
from compactor.runs.partition_run import PartitionResult, PartitionRun


class RestNotes:
    """Collects what is left in each window.

    Args:
        run: the partition's run. A listing made before the run leaves no record, because discovery
            compares the record with a LIST made during the next run.

    Attributes:
        listed: the full listing of the window planned last.
    """

    def __init__(self, run: PartitionRun) -> None:
        self._run = run
        self.listed: Listing | None = None
        # This call does not list the keys before its place.
        self._restless = run.listing is not None or bool(run.place.after)
        self._left: list[SourceObject] = []
        self._objects = self._bytes = 0
        self._newest = self._newest_committed = 0.0
        self._replaced: int | None = None
        self._seen: Seen | None = None

    def ended(self, window: Window, state: LogState) -> None:
        """Record that nothing is left in a window, whose last listing is ``listed``."""
        listing, self.listed = self.listed, None
        if listing is None:
            return
        self._restless |= bool(listing.returned) or self._is_taken_back(state)
        left = [one for one in listing.objects if one.identity not in state.committed]
        self._left += left
        # With more than one window of objects, the next run would not plan them together.
        self._restless |= len(self._left) > self._run.settings.limits.window_objects
        if self._restless:
            self._left.clear()
            return
        self._objects += listing.committed_objects + len(listing.objects) - len(left)
        self._bytes += listing.committed_bytes + _size(listing.objects) - _size(left)
        self._newest = max(self._newest, listing.newest)
        # Sources listed a second time may have been put again since the first. On a first listing,
        # those committed before have been compared with the log already.
        committed = (one for one in listing.objects if one.identity in state.committed)
        times = [listing.newest] if window.again else [one.last_modified for one in committed]
        self._newest_committed = max((self._newest_committed, *times))
        self._seen = window.seen.seen

    def _is_taken_back(self, state: LogState) -> bool:
        """Return True if commits became void since the previous call of this method."""
        before, self._replaced = self._replaced, len(state.replaced)
        return before not in (None, self._replaced)

    def leave(self, state: LogState, result: PartitionResult, shown: Outcome | None = None) -> None:
        """Write the record if the partition is at rest.

        To be called after the last window has ended and the log is checkpointed.

        Args:
            state: the log.
            result: the call's result.
            shown: what the readers' table shows of the partition.
        """
        self._restless |= not result.done or bool(result.unread)
        self._restless |= shown is not None and bool(shown.fault)
        self._restless |= bool(state.unpublished) or self._is_taken_back(state)
        # The next run must count what other runs committed after the window ended.
        self._restless |= any(one.identity in state.committed for one in self._left)
        if self._restless or self._seen is None:
            return
        run = self._run
        now = run.clock.now()
        decision = self._decision(state, now)
        until = min(self._until(decision, now), self._shown_until(shown))
        if decision.groups or until <= now:
            return
        outline = run.log.outline()
        if outline is None or not self._is_unchanged(outline, state):
            return
        record = RestRecord(
            run_id=run.run_id,
            by=looked_by(run.settings),
            at=now,
            until=None if until == inf else until,
            sources=self._seen,
            log=outline.digest,
            skipped={reason.value: one for reason, one in decision.skipped.items()},
        )
        write_rest(run.settings, run.partition, record, run.store)

    def _decision(self, state: LogState, now: float) -> CompactionPlan:
        run = self._run
        listing = Listing(
            run.partition, tuple(self._left), self._objects, self._bytes, self._newest
        )
        left_alone = state.left_alone(decided_by(run.settings))
        return plan(listing, run.settings, Knowledge(state.committed, left_alone), now)

    def _until(self, decision: CompactionPlan, now: float) -> float:
        """When the ages of objects alone change the plan, in UNIX seconds.

        Returns:
            ``now`` if the time cannot be predicted; infinity if age changes nothing.
        """
        settings, times = self._run.settings, [inf]
        if any(one.restored_until for one in self._left):
            return now
        if SkipReason.TOO_YOUNG in decision.skipped:
            arrived = (one.last_modified for one in self._left)
            young = [at for at in arrived if at > now - settings.settle_seconds]
            times += [at + settings.settle_seconds for at in young]
        if SkipReason.OPEN_PARTITION in decision.skipped:
            times.append(self._newest + settings.open_partition_seconds)
        return min(times)

    def _shown_until(self, shown: Outcome | None) -> float:
        """When the readers' table must show outputs instead of sources, in UNIX seconds."""
        if shown is None:
            return inf
        # Few runs have a readers' table.
        from compactor.readers.partition_columns import PartitionColumns  # noqa: PLC0415 - see above
        from compactor.readers.states import Shown  # noqa: PLC0415 - see above

        if shown.shows != Shown.RAW:
            return inf
        ends = PartitionColumns(self._run.settings).ends(self._run.partition.path)
        return inf if ends is None else ends

    def _is_unchanged(self, outline: Outline, state: LogState) -> bool:
        """Return True if the log is the one planned with, and no source in it was put again."""
        run = self._run
        if not outline.last and read_identity(run.settings, run.store) is None:
            # Discovery reads no records if nothing was ever committed under this state.
            return False
        return outline.last == state.last and self._newest_committed <= outline.written_at


def _size(sources: Iterable[SourceObject]) -> int:
    return sum(one.size for one in sources)
