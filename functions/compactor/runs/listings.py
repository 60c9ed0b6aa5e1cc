"""Lists a partition window by window, with LIST or from a listing made before the run."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from math import inf

from compactor.fingerprint import Fingerprint
from compactor.log.state import LogState
from compactor.model import SHOWN_EXAMPLES, Listing, Skipped, SkipReason
from compactor.planning.markers import roots_in
from compactor.planning.partition_listing import AsOf, Lists, Onward, take_listing
from compactor.planning.surroundings import Surroundings
from compactor.registry.pending_listing import EventListing
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
        compared: True once objects that disappeared since an earlier listing were counted.
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
        run: the partition's run; a listing made before it is trusted until a source shows that it
            is out of date.

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
        earlier = self._run.listing
        # Events name only pending objects, so no level of the key hierarchy is listed completely.
        partial = isinstance(earlier, EventListing)
        around = self._surroundings.around(listing, window.start_after, partial=partial)
        self.roots |= roots_in(listing.objects) | around
        if earlier is None:
            return listing
        newest = max(listing.newest, earlier.newest(self._run.partition))
        return replace(listing, newest=newest)

    def _committed_until(self, state: LogState, window: Window) -> float:
        """Committed sources younger than this, in UNIX seconds, may have been put again."""
        if window.listed:
            # Sources of this run's own commits may be younger than the loaded log.
            return inf
        # Events may arrive late, after newer commits of the partition, so each object is compared
        # with its own commit. Few pending objects are named by a commit.
        return 0.0 if isinstance(self._run.listing, EventListing) else state.written_at

    def doubt(self) -> None:
        """Check the store from now on, because the listing made before the run is out of date."""
        listing = self._run.listing
        if isinstance(listing, EventListing):
            self._lists = listing.doubted(self._run.store.head)
        elif listing is not None:
            self._lists = AsOf(self._run.store, listing.as_of)
        self._onward = Onward(self._lists)

    def pause(self) -> None:
        """Drop pages that were listed ahead."""
        self._onward.drop()

    @property
    def gone_reason(self) -> SkipReason:
        """The reason to skip objects that no longer exist."""
        if isinstance(self._run.listing, EventListing):
            return SkipReason.GONE_EVENT
        return SkipReason.GONE

    def gone(self, listing: Listing, window: Window, committed: Container[bytes]) -> Skipped:
        """Count the objects of the earlier listing that are gone from the store, once a window."""
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
