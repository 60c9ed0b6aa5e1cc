"""Lists a partition window by window, from LIST or from what was listed before the run."""

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
    """A stretch of a partition's keys, planned again and again until nothing of it is left.

    Its ends stay where the first listing put them, so that which sources share an output does
    not depend on how often the window was planned.

    Attributes:
        start_after: it begins after this key; empty for the start of the partition.
        until: its last key; None before it was listed, and for the last window of a partition.
        listed: False before it was planned for the first time.
        before: what was listed of the partition before this window.
        seen: the same with this window, as it was listed last.
        again: it was listed more than once.
        compared: True once it was seen what is gone of what was listed before the run.
    """

    start_after: str = ""
    until: str | None = None
    listed: bool = False
    again: bool = False
    compared: bool = False
    before: Fingerprint = field(default_factory=Fingerprint, compare=False)
    seen: Fingerprint = field(default_factory=Fingerprint, compare=False)

    def following(self) -> Window | None:
        """The next window; None after the last."""
        return None if self.until is None else Window(self.until, before=self.seen)


class Listings:
    """Takes the listings of one partition's run.

    Args:
        run: what was listed before it is believed until a source shows that it is out of date.

    Attributes:
        roots: prefixes of which is known by now that a table or registry owns what lies below.
    """

    def __init__(self, run: PartitionRun) -> None:
        self._run = run
        self._lists: Lists = run.listing or run.store
        self._onward = Onward(self._lists)
        self._surroundings = Surroundings(run.store, run.partition.bucket)
        self.roots: dict[str, SkipReason] = {}

    def begin(self) -> None:
        """List the first page of the first window, where a store is asked."""
        run = self._run
        if run.listing is None:
            where = run.partition.bucket, run.partition.prefix
            self._onward.begin(*where, start_after=run.place.after)

    def take(self, state: LogState, window: Window) -> Listing:
        """List a window; again, unless it is the first time.

        What was listed ahead, after the last window, is as old as that window's groups. What has
        changed since is found out when it is read, and then this window is listed again.
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
        # Events name what is pending alone: no level is seen whole.
        partial = isinstance(earlier, EventListing)
        around = self._surroundings.around(listing, window.start_after, partial=partial)
        self.roots |= roots_in(listing.objects) | around
        if earlier is None:
            return listing
        newest = max(listing.newest, earlier.newest(self._run.partition))
        return replace(listing, newest=newest)

    def _committed_until(self, state: LogState, window: Window) -> float:
        """What commits name was put again if it is younger than this; UNIX seconds."""
        if window.listed:
            # What this run itself commits is younger than the log was, too.
            return inf
        # Events come late, when the partition has other commits already: each is compared with its
        # own. Few are pending still that a commit names.
        return 0.0 if isinstance(self._run.listing, EventListing) else state.written_at

    def doubt(self) -> None:
        """Ask the store from now on: what was listed before the run is out of date."""
        listing = self._run.listing
        if isinstance(listing, EventListing):
            self._lists = listing.doubted(self._run.store.head)
        elif listing is not None:
            self._lists = AsOf(self._run.store, listing.as_of)
        self._onward = Onward(self._lists)

    def pause(self) -> None:
        """Hold nothing of what was listed ahead."""
        self._onward.drop()

    @property
    def gone_reason(self) -> SkipReason:
        """Why what is gone is skipped."""
        if isinstance(self._run.listing, EventListing):
            return SkipReason.GONE_EVENT
        return SkipReason.GONE

    def gone(self, listing: Listing, window: Window, committed: Container[bytes]) -> Skipped:
        """What was listed before, and is gone now that the store is asked; returned once."""
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
