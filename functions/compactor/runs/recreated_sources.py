"""What was put again after its commit: written down, so that clean-up looks at it again."""

from __future__ import annotations

from compactor.log.entries import Commit
from compactor.log.state import LogState
from compactor.model import Listing
from compactor.outputs.known_contents import found_in, put_again
from compactor.registry.pending_listing import EventListing
from compactor.runs.partition_run import PartitionRun


def note_returned(run: PartitionRun, state: LogState, listing: Listing) -> Listing:
    """Write down what of a listing was put again.

    Where events told of its objects, all are returned that a commit names and that are pending
    still: each is compared with its own commit.

    Returns:
        The listing; where events told of its objects, without what was put before its commit.

    Raises:
        ObjectMissing, InvalidInput: see :func:`compactor.outputs.known_contents.found_in`.
        TransientStoreError: the store did not answer.
    """
    if not listing.returned:
        return listing
    told = isinstance(run.listing, EventListing)
    commits, again = run.log.every_commit(state.last), map(put_again, listing.returned)
    found = found_in(again, commits, state.published, run.store, put_later=told)
    note = Commit.of_returned(found, run.run_id, run.clock.now(), run.partition.bucket)
    if found:
        run.log.append(state, note)
    return listing.with_returned({one.source.identity for one in found}) if told else listing
