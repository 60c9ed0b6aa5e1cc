"""Lists a window of a partition's keys and plans it, repeatedly, until nothing is left in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from compactor.log.content_index import Contents
from compactor.log.entries import Commit
from compactor.log.identity import outputs_among
from compactor.log.state import LogState
from compactor.model import CompactionPlan, Listing, ObjectGroup, Skipped, SkipReason
from compactor.outputs.detection import decided_by
from compactor.outputs.known_contents import found_in, put_again
from compactor.planning.plan import Knowledge, plan
from compactor.runs.listings import Listings, Window
from compactor.runs.partition_run import PartitionResult, PartitionRun
from compactor.runs.registered_objects import NamedBy
from compactor.runs.resting_partitions import RestNotes
from compactor.runs.resume_point import Own, Passing
from compactor.runs.source_notes import SourceNotes


class WindowPlanner:
    """Plans the windows of one call and records what is left in each.

    Args:
        run: the run's input.
        state: the log; changed by commits between two plans.
        result: counts the skipped sources.
        notes: findings about single sources.
        named: receives the listed sources that earlier commits name.
        listings: the run's listings; by default begun by the first plan.

    Attributes:
        passing: tracks the key up to which nothing is left.
        rest: tracks whether the partition comes to rest.
    """

    def __init__(
        self,
        run: PartitionRun,
        state: LogState,
        result: PartitionResult,
        notes: SourceNotes,
        named: NamedBy,
        *,
        listings: Listings | None = None,
    ) -> None:
        self._run, self._state, self._result = run, state, result
        self._notes, self._named = notes, named
        self._no_outputs: set[bytes] = set()
        self.listings = listings or Listings(run)
        self.rest = RestNotes(run)
        self.passing = Passing(run.place, Own.of(state.totals(run.run_id)))

    def plan(self, window: Window) -> CompactionPlan:
        """List a window and choose its groups; count skipped sources the first time only."""
        run, state, listings = self._run, self._state, self.listings
        listing = listings.take(state, window)
        self._result.skip(SkipReason.GONE, listings.gone(listing, window, state.committed))
        self._named.met(listing.returned)
        self.rest.listed = listing = note_returned(run, state, listing)
        state.foreign = Contents()
        listing = replace(listing, objects=self._notes.without_aside(listing.objects))
        decision = plan(listing, run.settings, self._knowledge(), run.listed_at)
        if self._leave_outputs(decision.groups):
            return self.plan(window)
        if not window.listed:
            for reason, one in decision.skipped.items():
                self._result.skip(reason, one)
            window.listed = True
            window.until = None if listing.complete else listing.last_key
        held, unlike = state.contents.held_by, self._notes.unlike.at(state.last)
        return replace(decision, groups=tuple(held(one, unlike) for one in decision.groups))

    def ended(self, window: Window) -> None:
        """Record that nothing is left in a window, so that it is not planned again."""
        self.rest.ended(window, self._state)
        result, dealt_with = self._result, Own.of(self._state.totals(self._run.run_id))
        self.passing.ended(window.until, result.skipped, dealt_with, in_full=not result.unread)

    def pause(self) -> None:
        """Drop pages that were listed ahead, because no window is planned for a while."""
        self.listings.pause()

    def _knowledge(self) -> Knowledge:
        run, state = self._run, self._state
        return Knowledge(
            state.committed,
            state.left_alone(decided_by(run.settings)),
            self._notes.signatures,
            state.buckets,
            self.listings.roots,
        )

    def _leave_outputs(self, groups: Sequence[ObjectGroup]) -> bool:
        """Leave out sources that are outputs of any run; return True if there are any."""
        look = partial(outputs_among, store=self._run.store, no_outputs=self._no_outputs)
        found = [one for group in groups for one in look(group.sources)]
        self._notes.leave_out(found)
        if found:
            left = Skipped(len(found), sum(one.size for one in found), (found[0].key,))
            self._result.skip(SkipReason.OWN_STATE, left)
        return bool(found)


def note_returned(run: PartitionRun, state: LogState, listing: Listing) -> Listing:
    """Record in the log which listed sources were put again after a commit named them.

    A listing from events returns every pending object that a commit names, and each is compared
    with its own commit.

    Returns:
        The listing; one from events keeps as returned only the objects put after their commit.

    Raises:
        ObjectMissing, InvalidInput: see :func:`compactor.outputs.known_contents.found_in`.
        TransientStoreError: the store did not answer.
    """
    if not listing.returned:
        return listing
    by_events = run.listing is not None
    commits, again = run.log.every_commit(state.last), map(put_again, listing.returned)
    found = found_in(again, commits, state.published, run.store, put_later=by_events)
    note = Commit.of_returned(found, run.run_id, run.clock.now(), run.partition.bucket)
    if found:
        run.log.append(state, note)
    return listing.with_returned({one.source.identity for one in found}) if by_events else listing
