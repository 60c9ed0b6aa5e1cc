"""Expires files of runs that ended long ago, and replaced checkpoints.

Nothing else in a state ever expires. Why nothing depends on these is in docs/decisions/0009.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from compactor import layout
from compactor.cleaning.decide import earlier_clock
from compactor.discovery.work_items import DISCOVERY_NAME, require_known_run
from compactor.errors import CompactorError, IntegrityError, ObjectMissing
from compactor.limits import KEEP_RUNS_DAYS
from compactor.log.log_reader import replaced_checkpoints
from compactor.model import SourceObject, is_run_id
from compactor.ports import Deadline, ObjectStore
from compactor.settings.settings import CleanUpMode, Settings

_DAY_SECONDS = 86_400
_REPORT_NAME = "report.json"
_MARKERS = (DISCOVERY_NAME, _REPORT_NAME)
# All files that a run writes below its own prefix; any other file stays.
_WRITTEN = re.compile(
    r"(?:settings|items|oversized|discovery|clean-up|table|report|report-so-far|spark-result"
    r"|spark-error)\.json"
    r"|report\.html|(?:receipts|clean-ups)/[^/]+\.json|(?:discovery|results)/.+",
    re.DOTALL,
)
# Enough to finish a batch: one request for a thousand objects.
_RESERVE_SECONDS = 60.0


@dataclass(slots=True)
class Expiry:
    """The outcome of one expiry.

    Attributes:
        objects: number of deleted objects.
        fault: why the rest stays until the next run, in one line; empty if nothing is left.
    """

    objects: int = 0
    fault: str = ""


def expire(
    settings: Settings, store: ObjectStore, now: float, deadline: Deadline, *, run_id: str
) -> Expiry:
    """Delete expired files, as far as the deadline allows. Safe to run again, and concurrently.

    Leftover files do no harm, so errors are reported and not raised.

    Args:
        settings: nothing expires unless ``clean_up`` is on.
        store: a client whose transport is safe for deletes.
        now: UNIX seconds by our clock.
        deadline: of this call.
        run_id: id of the calling run, whose own files stay whatever their age.
    """
    result = Expiry()
    try:
        for batch in find_expired(settings, store, now, run_id=run_id):
            if deadline.remaining_seconds() < _RESERVE_SECONDS:
                result.fault = "time ran out"
                break
            deletion = store.delete_sources(batch) if batch else None
            refused = deletion.refused if deletion else ()
            result.objects += len(batch) - len(refused)
            if refused:
                result.fault = f"{refused[0].key}: {refused[0].reason}"
                break
    except CompactorError as error:
        result.fault = f"{type(error).__name__}: {error}"
    return result


def find_expired(
    settings: Settings, store: ObjectStore, now: float, *, run_id: str
) -> Iterator[list[SourceObject]]:
    """Yield what would be deleted now, in batches; reads only.

    Args:
        settings: nothing expires unless ``clean_up`` is on.
        store: the store that holds the state.
        now: UNIX seconds by our clock.
        run_id: id of a run whose files stay.

    Raises:
        InvalidInput: the state cannot be listed, or contains another one.
        TransientStoreError: the store did not answer.
    """
    if settings.clean_up is not CleanUpMode.DELETE:
        return
    # Without a marker this may not be a state at all. The response also has S3's time.
    head = store.head(*layout.identity_key(settings))
    if head is None:
        return
    before = earlier_clock(head, now) - KEEP_RUNS_DAYS * _DAY_SECONDS
    yield from replaced_checkpoints(settings.state, store, before)
    for prefix in _runs(settings, store):
        if prefix.rsplit("/", 2)[1] != run_id and _is_over(prefix, settings, store, before):
            yield from _files(prefix, settings, store, before)


def _runs(settings: Settings, store: ObjectStore) -> Iterator[str]:
    bucket, root = layout.runs_prefix(settings)
    for page in store.list_level(bucket, root):
        for prefix in page.prefixes:
            if is_run_id(prefix[len(root) : -1]):
                yield prefix


def _is_over(prefix: str, settings: Settings, store: ObjectStore, before: float) -> bool:
    """Return True only if a prefix is certainly a run's, and nothing was written below it since."""
    bucket = settings.state.bucket
    # One HEAD for most runs, instead of a LIST.
    head = store.head(bucket, prefix + DISCOVERY_NAME)
    if head is not None and head.last_modified > before:
        return False
    for page in store.list_objects(bucket, prefix):
        if any(one.last_modified > before for one in page):
            return False
    return _is_of_a_run(prefix, settings, store, discovered=head is not None)


def _is_of_a_run(prefix: str, settings: Settings, store: ObjectStore, *, discovered: bool) -> bool:
    """Return True if the documents below a prefix are a run's, in a known version."""
    bucket = settings.state.bucket
    with suppress(ObjectMissing, IntegrityError, ValueError):
        if discovered:
            return "unpartitioned" in _document(require_known_run(bucket, prefix, store))
        # A run whose discovery failed leaves only its report.
        run_id = _document(store.get(bucket, prefix + _REPORT_NAME)).get("run_id")
        return run_id == prefix.rsplit("/", 2)[1]
    return False


def _document(body: bytes) -> dict[str, object]:
    found = json.loads(body)
    return found if isinstance(found, dict) else {}


def _files(
    prefix: str, settings: Settings, store: ObjectStore, before: float
) -> Iterator[list[SourceObject]]:
    """Yield the files of a finished run; last those that identify it as a run, and its version."""
    last: list[SourceObject] = []
    for page in store.list_objects(settings.state.bucket, prefix):
        written = list(_written(page, prefix, before))
        last += [one for one in written if one.key[len(prefix) :] in _MARKERS]
        yield [one for one in written if one.key[len(prefix) :] not in _MARKERS]
    for one in sorted(last, key=lambda one: one.key, reverse=True):
        yield [one]


def _written(page: Iterable[SourceObject], prefix: str, before: float) -> Iterator[SourceObject]:
    for one in page:
        if one.last_modified <= before and _WRITTEN.fullmatch(one.key, len(prefix)):
            yield one
