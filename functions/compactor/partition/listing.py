"""Lists one partition window by window, with LIST or from the objects that events named."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compactor.log.state import LogState
from compactor.model import Listing, SkipReason
from compactor.partition.inputs import PartitionRun
from compactor.planning.markers import roots_in
from compactor.planning.partition_listing import ListAfter, Onward, listing_of, take_listing
from compactor.planning.surroundings import Surroundings
from compactor.registry.pending_listing import Head


@dataclass(slots=True)
class Window:
    """A range of a partition's keys, planned repeatedly until nothing is left in it.

    The first listing fixes its ends, so that which sources share an output does not depend on how
    often the window was planned.

    Attributes:
        after: the key after which it begins; empty for the start of the partition.
        until: its last key; None until it is listed, and for the last window of a partition.
        listed: False until it has been planned for the first time.
    """

    after: str = ""
    until: str | None = None
    listed: bool = False

    def following(self) -> Window | None:
        """Return the next window; None after the last."""
        return None if self.until is None else Window(self.until)


class PartitionListing:
    """The listing of one call.

    Args:
        run: the call's input; what events named is trusted until a source shows that it is out of
            date.

    Attributes:
        roots: prefixes found so far whose content a table or registry owns.
    """

    def __init__(self, run: PartitionRun) -> None:
        self._run = run
        self._list_after = self._lister()
        self._onward = Onward(self._list_after)
        self._surroundings = Surroundings(run.store, run.partition.bucket)
        self.roots: dict[str, SkipReason] = {}

    def begin(self, after: str) -> None:
        """List the first page after a key ahead, if the run uses LIST."""
        if self._run.listing is None:
            self._onward.begin(after)

    def take(self, state: LogState, window: Window) -> Listing:
        """List a window, from the store again if it was listed before.

        Pages that were listed ahead during the previous window are as old as its groups. Reading a
        source detects a change since then, and this window is listed again.
        """
        listing = take_listing(
            self._list_after if window.listed else self._onward,
            self._run.partition,
            state.committed,
            window.after,
            window.until,
            limits=self._run.settings.limits,
        )
        by_events = self._run.listing
        # Events name only pending objects, so no level of the key hierarchy is listed completely.
        partial = by_events is not None
        around = self._surroundings.around(listing, window.after, partial=partial)
        self.roots |= roots_in(listing.objects) | around
        if by_events is None:
            return listing
        newest = max(listing.newest, by_events.newest(self._run.partition))
        return replace(listing, newest=newest)

    def doubt(self) -> None:
        """Check the store from now on, because a source changed: events are missing or late."""
        self._list_after = self._lister(self._run.store.head)
        self._onward = Onward(self._list_after)

    def drop_pages(self) -> None:
        """Drop pages that were listed ahead."""
        self._onward.drop()

    def _lister(self, head: Head | None = None) -> ListAfter:
        run = self._run
        if run.listing is None:
            return listing_of(run.store, run.partition)
        return run.listing.of(run.partition, head)
