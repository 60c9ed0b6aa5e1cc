"""The product with one guard removed: the simulation must notice each removal.

If no schedule fails without a guard, the guard is either not needed or not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from math import inf
from unittest.mock import patch

from compactor.fingerprint import Fingerprint, Seen
from compactor.log.entries import Commit
from compactor.model import CompactionPlan
from compactor.outputs.publish import publish
from compactor.runs.group_work import GroupWork
from compactor.runs.resting_partitions import RestNotes
from tests.simulation.faults import Guard


@dataclass(frozen=True)
class Mutation:
    """A way to remove one guard.

    Attributes:
        without: conditions that requests leave out.
        applied: returns a context in which the product is changed.
    """

    without: frozenset[Guard] = frozenset()
    applied: Callable[[], AbstractContextManager[object]] = nullcontext


unchanged = Mutation()


def _publish_first(self: GroupWork, draft: Commit) -> Commit:
    """Replace GroupWork.commit by its two steps in the wrong order."""
    publish(draft, self._run.store)
    commit = self._run.log.append(self._state, draft)
    self._state.mark_published(commit)
    self._result.groups += 1
    return commit


@contextmanager
def _publish_before_commit() -> Iterator[None]:
    with patch.object(GroupWork, "commit", _publish_first):
        yield


@contextmanager
def _commit_without_comparing() -> Iterator[None]:
    with patch("compactor.log.log.CommitLog._refuse_conflict", lambda *_: None):
        yield


@contextmanager
def _believe_any_log() -> Iterator[None]:
    with patch("compactor.log.log.CommitLog.require_whole", lambda *_: None):
        yield


@contextmanager
def _delete_without_look() -> Iterator[None]:
    with patch("compactor.cleaning.due._prove", lambda *_: None):
        yield


@contextmanager
def _trust_our_clock() -> Iterator[None]:
    with patch("compactor.cleaning.decide.earlier_clock", lambda _, ours: ours):
        yield


@contextmanager
def _keep_no_record() -> Iterator[None]:
    with patch("compactor.cleaning.clean_partition.write_record", lambda *_: True):
        yield


@contextmanager
def _know_no_contents() -> Iterator[None]:
    with patch("compactor.log.content_index.Contents.marks", lambda *_: frozenset()):
        yield


@contextmanager
def _forget_what_others_wrote() -> Iterator[None]:
    with patch("compactor.log.content_index.Contents.has_key_of", lambda *_: False):
        yield


@contextmanager
def _never_look_back() -> Iterator[None]:
    with patch("compactor.runs.window_planner.note_returned", lambda run, state, listing: listing):
        yield


@contextmanager
def _compare_numbers_alone() -> Iterator[None]:
    def seen(self: Fingerprint) -> Seen:
        return Seen(self._objects, 0, "")

    with patch("compactor.fingerprint.Fingerprint.seen", property(seen)):
        yield


@contextmanager
def _forget_that_time_passes() -> Iterator[None]:
    with patch("compactor.runs.resting_partitions.RestNotes._until", lambda *_: inf):
        yield


@contextmanager
def _know_no_table() -> Iterator[None]:
    with patch("compactor.planning.key_rules.owner_of", lambda *_: None):
        yield


@contextmanager
def _look_no_further_than_the_window() -> Iterator[None]:
    with patch("compactor.planning.surroundings.Surroundings.around", lambda *_, **__: {}):
        yield


@contextmanager
def _leave_a_record_unseen() -> Iterator[None]:
    with patch("compactor.runs.resting_partitions.RestNotes._decision", _nothing_to_do):
        yield


@contextmanager
def _take_any_listing() -> Iterator[None]:
    with (
        patch("compactor.planning.partition_listing.require_order", lambda *_: None),
        patch("compactor.log.log.require_each_once", lambda *_: None),
    ):
        yield


def _nothing_to_do(self: RestNotes, *_: object) -> CompactionPlan:
    return CompactionPlan(self._run.partition, ())


@contextmanager
def _take_records_of_any_width() -> Iterator[None]:
    with patch("compactor.formats.columns.Records._end_of_records", lambda _, data: len(data)):
        yield


MUTATIONS: Mapping[str, Mutation] = {
    **{guard.value: Mutation(frozenset({guard})) for guard in Guard},
    "commit before publish": Mutation(applied=_publish_before_commit),
    "HEAD before delete": Mutation(applied=_delete_without_look),
    "comparison with the log on commit": Mutation(applied=_commit_without_comparing),
    "comparison of the log with the outputs that are there": Mutation(applied=_believe_any_log),
    "S3's clock for retention": Mutation(applied=_trust_our_clock),
    "comparison with what was compacted of a key": Mutation(applied=_know_no_contents),
    "comparison with what others compacted meanwhile": Mutation(applied=_forget_what_others_wrote),
    "look at what came back": Mutation(applied=_never_look_back),
    "record of what was cleaned up": Mutation(applied=_keep_no_record),
    "what was listed of a partition at rest": Mutation(applied=_compare_numbers_alone),
    "age of what is left in a partition at rest": Mutation(applied=_forget_that_time_passes),
    "one more plan before a partition is at rest": Mutation(applied=_leave_a_record_unseen),
    "the number of fields of CSV": Mutation(applied=_take_records_of_any_width),
    "the repeated key": Mutation(applied=_take_any_listing),
    "the marker of a table": Mutation(applied=_know_no_table),
    "look for a table's marker beyond the window": Mutation(
        applied=_look_no_further_than_the_window
    ),
}

NOTICED: Mapping[str, int] = {
    "If-Match on read": 3,
    "create-if-absent on commit": 6,
    "ETag on delete": 77,
    "checksum on publish": 291,
    "commit before publish": 6,
    "HEAD before delete": 29,
    "comparison with the log on commit": 6,
    "comparison of the log with the outputs that are there": 268,
    "S3's clock for retention": 15,
    "comparison with what was compacted of a key": 11,
    "comparison with what others compacted meanwhile": 403,
    "look at what came back": 0,
    "record of what was cleaned up": 0,
    "what was listed of a partition at rest": 0,
    "the number of fields of CSV": 9,
    "the repeated key": 411,
    "age of what is left in a partition at rest": 18,
    "one more plan before a partition is at rest": 18,
    "the marker of a table": 9,
    "look for a table's marker beyond the window": 9,
}
"""Seeds of schedules that noticed; one that is no longer right costs time, no more."""
