"""The product with one guard removed: the simulation must notice each removal.

If no schedule fails without a guard, the guard is either not needed or not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from unittest.mock import patch

from compactor.errors import CommitConflict
from compactor.log.digests import Digests
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.manifest import identities
from compactor.log.state import LogState
from compactor.outputs.publish import publish
from compactor.partition.work import PartitionWork
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


def _publish_first(self: PartitionWork, draft: Commit) -> Commit:
    """Replace PartitionWork.commit by its two steps in the wrong order."""
    publish(draft, self.run.store)
    commit = self.run.log.append(self.state, draft)
    self.state.mark_published(commit)
    self.groups += 1
    return commit


@contextmanager
def _publish_before_commit() -> Iterator[None]:
    with patch.object(PartitionWork, "commit", _publish_first):
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
def _compact_each_etag() -> Iterator[None]:
    with patch("compactor.log.digests.Digests.has_key_of", Digests.__contains__):
        yield


@contextmanager
def _compare_sources_alone() -> Iterator[None]:
    with patch("compactor.log.log.CommitLog._refuse_conflict", _refuse_same_sources):
        yield


def _refuse_same_sources(_: CommitLog, state: LogState, draft: Commit) -> None:
    """Replace the comparison of keys by one of sources with their ETags."""
    if draft.replaces is None and identities(draft.rows) & state.committed:
        raise CommitConflict("sources were committed meanwhile")
    if draft.replaces is not None and draft.replaces not in state.unpublished:
        raise CommitConflict("replaced meanwhile")


@contextmanager
def _know_no_table() -> Iterator[None]:
    with patch("compactor.planning.key_rules.owner_of", lambda *_: None):
        yield


@contextmanager
def _look_no_further_than_the_window() -> Iterator[None]:
    with patch("compactor.planning.surroundings.Surroundings.around", lambda *_, **__: {}):
        yield


@contextmanager
def _take_any_listing() -> Iterator[None]:
    with (
        patch("compactor.planning.partition_listing.require_order", lambda *_: None),
        patch("compactor.log.log.require_each_once", lambda *_: None),
    ):
        yield


@contextmanager
def _take_records_of_any_width() -> Iterator[None]:
    with patch("compactor.formats.columns.Records._end_of_records", lambda _, data: len(data)):
        yield


MUTATIONS: Mapping[str, Mutation] = {
    **{guard.value: Mutation(frozenset({guard})) for guard in Guard},
    "commit before publish": Mutation(applied=_publish_before_commit),
    "HEAD before delete": Mutation(applied=_delete_without_look),
    "comparison with the log on commit": Mutation(applied=_commit_without_comparing),
    "look for outputs beside an empty log": Mutation(applied=_believe_any_log),
    "S3's clock for retention": Mutation(applied=_trust_our_clock),
    "one ETag of a key": Mutation(applied=_compact_each_etag),
    "comparison of keys in a lost race": Mutation(applied=_compare_sources_alone),
    "record of what was cleaned up": Mutation(applied=_keep_no_record),
    "the number of fields of CSV": Mutation(applied=_take_records_of_any_width),
    "the repeated key": Mutation(applied=_take_any_listing),
    "the marker of a table": Mutation(applied=_know_no_table),
    "look for a table's marker beyond the window": Mutation(
        applied=_look_no_further_than_the_window
    ),
}

NOTICED: Mapping[str, int] = {
    "If-Match on read": 116,
    "create-if-absent on commit": 9,
    "ETag on delete": 2,
    "checksum on publish": 37,
    "commit before publish": 3,
    "HEAD before delete": 32,
    "comparison with the log on commit": 29,
    "look for outputs beside an empty log": 268,
    "S3's clock for retention": 26,
    "one ETag of a key": 11,
    "comparison of keys in a lost race": 86,
    "record of what was cleaned up": 0,
    "the number of fields of CSV": 9,
    "the repeated key": 279,
    "the marker of a table": 9,
    "look for a table's marker beyond the window": 9,
}
"""Seeds of schedules that noticed; one that is no longer right costs time, no more."""
