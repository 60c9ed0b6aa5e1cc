"""Lists a partition window by window, with LIST or from the objects that events named."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from math import inf

from compactor.fingerprint import Fingerprint
from compactor.log.state import LogState
from compactor.model import SHOWN_EXAMPLES, Listing, Skipped, SkipReason
from compactor.planning.markers import roots_in
from compactor.planning.partition_listing import Lists, Onward, take_listing
from compactor.planning.surroundings import Surroundings
from compactor.runs.partition_run import PartitionRun


@dataclass(slots=True)
class Window:
    """A range of a partition's keys, planned repeatedly until nothing is left in it.

    The first listing fixes its ends, so that which sources share an output does not depend on how
    often the window was planned.

    Attributes:
        start_after: the key after which it begins; empty for the start of the partition.
        until: its last key; None until it is listed, and for the last window of a partition.
        listed: False until it has been planned for the first time.
        before: fingerprint of what was listed before this window.
        seen: the same including this window, as listed last.
        again: True if it was listed more than once.
        compared: True once objects that disappeared since their event were counted.
    """

    start_after: str = ""
    until: str | None = None
    listed: bool = False
    again: bool = False
    compared: bool = False
    before: Fingerprint = field(default_factory=Fingerprint, compare=False)
    seen: Fingerprint = field(default_factory=Fingerprint, compare=False)

    def following(self) -> Window | None:
        """Return the next window; None after the last."""
        return None if self.until is None else Window(self.until, before=self.seen)


class Listings:
    """Takes the listings of one partition's run.

    Args:
        run: the partition's run; what events named is trusted until a source shows that it is out
            of date.

    Attributes:
        roots: prefixes found so far whose content a table or registry owns.
    """

    def __init__(self, run: PartitionRun) -> None:
        self._run = run
        self._lists: Lists = run.listing or run.store
        self._onward = Onward(self._lists)
        self._surroundings = Surroundings(run.store, run.partition.bucket)
        self.roots: dict[str, SkipReason] = {}

    def begin(self) -> None:
        """Begin to list the first page of the first window, if the run uses LIST."""
        run = self._run
        if run.listing is None:
            where = run.partition.bucket, run.partition.prefix
            self._onward.begin(*where, start_after=run.place.after)

    def take(self, state: LogState, window: Window) -> Listing:
        """List a window, from the store again if it was listed before.

        Pages that were listed ahead during the previous window are as old as its groups. Reading a
        source detects a change since then, and this window is listed again.
        """
        window.seen, window.again = window.before.copy(), window.listed
        listing = take_listing(
            self._lists if window.listed else self._onward,
            self._run.partition,
            state.committed,
            window.start_after,
            window.until,
            written_at=self._committed_until(state, window),
            limits=self._run.settings.limits,
            seen=window.seen,
        )
        by_events = self._run.listing
        # Events name only pending objects, so no level of the key hierarchy is listed completely.
        partial = by_events is not None
        around = self._surroundings.around(listing, window.start_after, partial=partial)
        self.roots |= roots_in(listing.objects) | around
        if by_events is None:
            return listing
        newest = max(listing.newest, by_events.newest(self._run.partition))
        return replace(listing, newest=newest)

    def _committed_until(self, state: LogState, window: Window) -> float:
        """Committed sources younger than this, in UNIX seconds, may have been put again."""
        if window.listed:
            # Sources of this run's own commits may be younger than the loaded log.
            return inf
        # Events may arrive late, after newer commits of the partition, so each object is compared
        # with its own commit. Few pending objects are named by a commit.
        return state.written_at if self._run.listing is None else 0.0

    def doubt(self) -> None:
        """Check the store from now on, because events are missing or late."""
        if self._run.listing is not None:
            self._lists = self._run.listing.doubted(self._run.store.head)
        self._onward = Onward(self._lists)

    def pause(self) -> None:
        """Drop pages that were listed ahead."""
        self._onward.drop()

    def gone(self, listing: Listing, window: Window, committed: Container[bytes]) -> Skipped:
        """Count the objects named by events that are gone from the store, once a window."""
        run = self._run
        if run.listing is None or self._lists is run.listing or window.compared:
            return Skipped(0, 0)
        window.compared = True
        until = None if listing.complete else listing.last_key
        before = take_listing(
            run.listing,
            run.partition,
            committed,
            window.start_after,
            until,
            limits=run.settings.limits,
        )
        there = {one.identity for one in listing.objects}
        gone = [one for one in before.objects if one.identity not in there]
        keys = tuple(one.key for one in gone[:SHOWN_EXAMPLES])
        return Skipped(len(gone), sum(one.size for one in gone), keys)
