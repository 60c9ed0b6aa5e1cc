"""Sources that a listing shows again after their commit."""

from __future__ import annotations

from compactor.log.entries import Commit
from compactor.log.state import LogState
from compactor.model import Listing
from compactor.outputs.again import found_in, put_again
from compactor.registry.listing import EventListing
from compactor.runs.given import PartitionRun
from compactor.runs.registered import NamedBy


def note_returned(run: PartitionRun, state: LogState, named: NamedBy, listing: Listing) -> Listing:
    """Write down what was put again after its commit, so that clean-up looks at it again.

    Args:
        run: of the partition.
        state: its log, which gets an entry where there is any.
        named: is told what commits named before.
        listing: of the partition.

    Returns:
        The listing; where events told of its objects, without what was put before its commit.
    """
    sources = listing.returned
    if not sources:
        return listing
    named.met(sources)
    commits, told = run.log.every_commit(state.last), isinstance(run.listing, EventListing)
    again = map(put_again, sources)
    found = found_in(again, commits, state.published, run.store, put_later=told)
    note = Commit.of_returned(found, run.run_id, run.clock.now(), run.partition.bucket)
    if found:
        run.log.append(state, note)
    if not told:
        return listing
    return listing.with_returned({one.source.identity for one in found})
