"""Which partitions have something to clean up, whatever a run listed; and their list on S3."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from compactor import layout
from compactor.discovery.work_items import blaming, elements_of
from compactor.errors import InvalidInput
from compactor.log.identity import refuse_states_around
from compactor.log.log_reader import StoredLog, each_log
from compactor.ports import ObjectStore
from compactor.settings.settings import CleanUpMode, Settings

_DAY_SECONDS = 86_400


class DueWork(NamedTuple):
    """One partition whose log has entries past retention that clean-up is not done with."""

    path: str
    entries: int

    @classmethod
    def from_dict(cls, given: object) -> DueWork:
        """Read an element of the list back; unknown fields are refused.

        Raises:
            InvalidInput: not such an element.
        """
        accepted = 'an object with exactly "path", a text, and "entries", a number'
        if not isinstance(given, Mapping) or set(given) != {"path", "entries"}:
            raise InvalidInput("partition", given, accepted)
        if type(given["path"]) is not str or type(given["entries"]) is not int:
            raise InvalidInput("partition", given, accepted)
        return cls(given["path"], given["entries"])

    def to_dict(self) -> dict[str, Any]:
        """The element of the list."""
        return {"path": self.path, "entries": self.entries}


class DueList(NamedTuple):
    """Where the list of a run's partitions to clean up lies, and how many they are."""

    bucket: str
    key: str
    partitions: int


def retention_seconds(settings: Settings) -> float:
    """How long sources outlive their commit at least."""
    return settings.retention_days * _DAY_SECONDS


def find_due(settings: Settings, store: ObjectStore, now: float) -> tuple[DueWork, ...]:
    """Every partition of the destination with something due; nothing where sources are kept.

    Looks at names and times of the log entries alone, all of them: a commit is cleaned up
    wherever its partition lies, and whichever run compacted it. What is really past retention is
    decided again, commit by commit.

    Args:
        settings: where the state lies, and how long sources are kept.
        store: where it is.
        now: UNIX seconds.

    Raises:
        InvalidInput: the state cannot be listed, or contains another one, or lies in it.
    """
    return tuple(sorted(each_due(settings, store, now)))


def each_due(settings: Settings, store: ObjectStore, now: float) -> Iterator[DueWork]:
    """The same, in no certain order, one log in memory at a time.

    Raises:
        InvalidInput: likewise.
    """
    if settings.clean_up is not CleanUpMode.DELETE:
        return
    with blaming("s3_state_uri", settings):
        refuse_states_around(settings, store, logs_only=True)
        for log in each_log(settings.state, store):
            entries = len(_past(log, settings, now))
            if entries:
                yield DueWork(log.path, entries)


def write_due(
    works: Iterable[DueWork], settings: Settings, run_id: str, store: ObjectStore
) -> DueList:
    """Write the list as the JSON array that a Distributed Map's ItemReader takes.

    Raises:
        InvalidInput: the run id is no name.
    """
    bucket, key = layout.clean_up_list_key(settings, run_id)
    body, count = bytearray(b"["), 0
    for count, work in enumerate(works, 1):
        body += b",\n" if count > 1 else b""
        body += json.dumps(work.to_dict(), separators=(",", ":")).encode()
    body += b"]\n"
    store.put(bucket, key, bytes(body), content_type="application/json")
    return DueList(bucket, key, count)


def stream_due(store: ObjectStore, bucket: str, key: str) -> Iterator[DueWork]:
    """The list again, one after the other.

    Raises:
        ObjectMissing: there is none.
    """
    for element in elements_of(store, bucket, key):
        yield DueWork.from_dict(json.loads(element))


def read_due(body: bytes) -> tuple[DueWork, ...]:
    """The list again."""
    return tuple(DueWork.from_dict(one) for one in json.loads(body))


def _past(log: StoredLog, settings: Settings, now: float) -> list[int]:
    kept = retention_seconds(settings)
    return [sequence for sequence in log.uncleaned if now - log.kept_since(sequence) >= kept]
