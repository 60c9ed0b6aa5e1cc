"""Finds the partitions with something to clean up, whatever a run listed, and stores the list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from compactor.cleaning.decide import earlier_clock, has_passed
from compactor.discovery.location_checks import blaming
from compactor.discovery.work_list import elements_of
from compactor.errors import InvalidInput
from compactor.log.log_reader import StoredLog, each_log, replaced_checkpoints
from compactor.ports import Deadline, ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.units import DAY_SECONDS

# Longer than any reader holds a listing of a log. Retention counts from checkpoints, so they are
# also kept as long as it takes.
_KEEP_CHECKPOINTS_DAYS = 90
# Enough for one request that deletes a thousand objects.
_RESERVE_SECONDS = 60.0


class DueWork(NamedTuple):
    """A partition with log entries past retention that clean-up has not finished."""

    path: str
    entries: int

    @classmethod
    def from_dict(cls, element: object) -> DueWork:
        """Parse an element of the list; unknown fields are refused.

        Raises:
            InvalidInput: not such an element.
        """
        accepted = 'an object with exactly "path", a text, and "entries", a number'
        if not isinstance(element, Mapping) or set(element) != {"path", "entries"}:
            raise InvalidInput("partition", element, accepted)
        if type(element["path"]) is not str or type(element["entries"]) is not int:
            raise InvalidInput("partition", element, accepted)
        return cls(element["path"], element["entries"])

    def to_dict(self) -> dict[str, Any]:
        """Return the element as stored in the list."""
        return {"path": self.path, "entries": self.entries}


class DueList(NamedTuple):
    """Location and length of a run's list of partitions to clean up."""

    bucket: str
    key: str
    partitions: int


def find_due(settings: Settings, store: ObjectStore, now: float) -> tuple[DueWork, ...]:
    """Return every partition of the destination with something due; empty if sources are kept.

    Looks only at names and times of all log entries: a commit is cleaned up wherever its partition
    lies, and whichever run compacted it. Whether retention has really passed is checked again for
    each commit.

    Args:
        settings: the location of the state, and the retention.
        store: the store that holds the state.
        now: UNIX seconds.

    Raises:
        InvalidInput: the state cannot be listed.
    """
    return tuple(sorted(each_due(settings, store, now)))


def each_due(settings: Settings, store: ObjectStore, now: float) -> Iterator[DueWork]:
    """Yield the same in no particular order, with one log in memory at a time.

    Raises:
        InvalidInput: as :func:`find_due`.
    """
    if not settings.deletes:
        return
    with blaming("s3_state_uri", settings):
        for log in each_log(settings.state, store):
            entries = len(_past(log, settings, now))
            if entries:
                yield DueWork(log.path, entries)


def write_due(
    works: Iterable[DueWork], settings: Settings, run_id: str, store: ObjectStore
) -> DueList:
    """Write the list as a JSON array for a Distributed Map's ItemReader.

    Raises:
        InvalidInput: the run id is not a valid name.
    """
    bucket, key = settings.layout.clean_up_list(run_id)
    body, count = bytearray(b"["), 0
    for count, work in enumerate(works, 1):
        body += b",\n" if count > 1 else b""
        body += json.dumps(work.to_dict(), separators=(",", ":")).encode()
    body += b"]\n"
    store.put(bucket, key, bytes(body), content_type="application/json")
    return DueList(bucket, key, count)


def stream_due(store: ObjectStore, bucket: str, key: str) -> Iterator[DueWork]:
    """Read the list, one element at a time.

    Raises:
        ObjectMissing: there is no list.
    """
    for element in elements_of(store, bucket, key):
        yield DueWork.from_dict(json.loads(element))


def read_due(body: bytes) -> tuple[DueWork, ...]:
    """Parse the whole list."""
    return tuple(DueWork.from_dict(element) for element in json.loads(body))


def _past(log: StoredLog, settings: Settings, now: float) -> list[int]:
    since = log.readable_since
    return [number for number in log.uncleaned if has_passed(since[number], settings, now)]


def drop_replaced_checkpoints(
    settings: Settings, store: ObjectStore, now: float, deadline: Deadline
) -> int:
    """Delete checkpoints that a newer one replaced long ago, as far as the deadline allows.

    Safe to repeat, and to run concurrently: nobody reads a checkpoint that was replaced.

    Args:
        settings: name the state.
        store: the store that holds it, with a transport that is safe for deletes.
        now: UNIX seconds by our clock.
        deadline: of this call.

    Returns:
        The number of deleted checkpoints.

    Raises:
        InvalidInput: the state cannot be listed.
        TransientStoreError: the store did not answer.
    """
    # Without an identity this may not be a state at all. The response also has S3's time.
    head = store.head(*settings.layout.identity)
    if head is None:
        return 0
    keep_seconds = max(_KEEP_CHECKPOINTS_DAYS * DAY_SECONDS, settings.retention_seconds)
    before = earlier_clock(head, now) - keep_seconds
    dropped = 0
    for batch in replaced_checkpoints(settings.state, store, before):
        if deadline.remaining_seconds() < _RESERVE_SECONDS:
            break
        dropped += len(batch) - len(store.delete_sources(batch).refused) if batch else 0
    return dropped
