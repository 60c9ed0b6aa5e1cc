"""Whether a partition came to rest in a run, and the record that says so to discovery.

Every window was planned until nothing of it was left. Here all of them are planned again
together, by the log as it is now and without anything that this run alone knows: as the next run
would. Only where that gives nothing to do, the record is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from compactor.discovery.worth import Worth
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
    """Notes what is left of each window.

    Args:
        run: of the partition. One that was listed before the run leaves no record: discovery
            compares with what is listed during the next.

    Attributes:
        listed: the window that was planned last, in full.
    """

    def __init__(self, run: PartitionRun) -> None:
        self._run = run
        self.listed: Listing | None = None
        # What is before the place is not listed by this call.
        self._restless = run.listing is not None or bool(run.place.after)
        self._left: list[SourceObject] = []
        self._objects = self._bytes = 0
        self._newest = self._newest_committed = 0.0
        self._replaced: int | None = None
        self._seen: Seen | None = None

    def ended(self, window: Window, state: LogState) -> None:
        """Note that nothing is left of a window, which was listed last as ``listed``."""
        listing, self.listed = self.listed, None
        if listing is None:
            return
        self._restless |= bool(listing.returned) or self._is_taken_back(state)
        left = [one for one in listing.objects if one.identity not in state.committed]
        self._left += left
        # A run would plan so many in windows.
        self._restless |= len(self._left) > self._run.settings.limits.window_objects
        if self._restless:
            self._left.clear()
            return
        self._objects += listing.committed_objects + len(listing.objects) - len(left)
        self._bytes += listing.committed_bytes + _size(listing.objects) - _size(left)
        self._newest = max(self._newest, listing.newest)
        # What was listed a second time may have been put again since the first; else the listing
        # has compared what was committed before.
        committed = (one for one in listing.objects if one.identity in state.committed)
        times = [listing.newest] if window.again else [one.last_modified for one in committed]
        self._newest_committed = max((self._newest_committed, *times))
        self._seen = window.seen.seen

    def _is_taken_back(self, state: LogState) -> bool:
        """Commits that were counted before became void."""
        before, self._replaced = self._replaced, len(state.replaced)
        return before not in (None, self._replaced)

    def leave(self, state: LogState, result: PartitionResult, shown: Outcome | None = None) -> None:
        """Write the record, once the log is summed up and every window has ended.

        Args:
            state: the log.
            result: of the call.
            shown: what query engines see of the partition.
        """
        self._restless |= not result.done or bool(result.unread)
        self._restless |= shown is not None and bool(shown.fault)
        self._restless |= bool(state.unpublished) or self._is_taken_back(state)
        # What they wait for may be found in another partition.
        self._restless |= any(state.waits(one.identity) for one in self._left)
        # What others committed since its window ended is for the next run to count.
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
        left_alone = state.left_alone(decided_by(run.settings), lambda: "")
        decision = plan(listing, run.settings, Knowledge(state.committed, left_alone), now)
        # As the next run judges it, which has committed nothing here.
        return Worth(run.settings, run.store).of(decision)

    def _until(self, decision: CompactionPlan, now: float) -> float:
        """When the age of objects alone makes another plan; UNIX seconds, now for any time."""
        settings, times = self._run.settings, [inf]
        if any(one.restored_until for one in self._left) or SkipReason.QUIET in decision.skipped:
            return now
        if SkipReason.TOO_YOUNG in decision.skipped:
            arrived = (one.last_modified for one in self._left)
            young = [at for at in arrived if at > now - settings.settle_seconds]
            times += [at + settings.settle_seconds for at in young]
        if SkipReason.OPEN_PARTITION in decision.skipped:
            times.append(self._newest + settings.open_partition_seconds)
        return min(times)

    def _shown_until(self, shown: Outcome | None) -> float:
        """When engines are to see outputs instead of sources; UNIX seconds."""
        if shown is None:
            return inf
        # Few runs have a table for readers.
        from compactor.readers.partition_columns import PartitionColumns  # noqa: PLC0415 - see above
        from compactor.readers.states import Shown  # noqa: PLC0415 - see above

        if shown.shows != Shown.RAW:
            return inf
        ends = PartitionColumns(self._run.settings).ends(self._run.partition.path)
        return inf if ends is None else ends

    def _is_unchanged(self, outline: Outline, state: LogState) -> bool:
        """The log is the one that was planned by, and nothing it names was put again since."""
        run = self._run
        if not outline.last and read_identity(run.settings, run.store) is None:
            # Discovery asks for no records where nothing was ever committed.
            return False
        return outline.last == state.last and self._newest_committed <= outline.written_at


def _size(sources: Iterable[SourceObject]) -> int:
    return sum(one.size for one in sources)
