"""Finds all permissions that a run lacks, once one was found to be missing.

Each is tried with a request of its own that writes no object. Deletes are not tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from compactor.errors import CompactorError, InvalidInput, UnreadableSource
from compactor.model import ARCHIVED_CLASSES, DENIED_REASONS, SourceObject
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri

# The action in S3's message, which may be one on a KMS key.
_ACTION = re.compile(r"\b(?:s3|kms):[A-Z]\w+")
# Name of an object that does not exist in any location.
_NO_OBJECT = "rights-of-this-role"


def missing_rights(settings: Settings, store: ObjectStore, *, writes: bool) -> list[str]:
    """Return the permissions that the role lacks for a run, such as ``s3:GetObject on s3://…``.

    If a location may not be listed, reading it is not tried: S3's refusals would look the same.

    Args:
        settings: settings of the run.
        store: where sources, destination and state are.
        writes: try writing, too, by an upload that is begun and aborted in each location.
    """
    asked = _Asked(store)
    questions = _questions(settings, asked, writes=writes)
    return [*dict.fromkeys(line for lines in questions for line in lines)]


def _questions(settings: Settings, asked: _Asked, *, writes: bool) -> Iterator[list[str]]:
    if not settings.takes_events:
        yield asked.source(settings.source.root)
    for place in (settings.destination, settings.state):
        yield asked.reads(place)
        if writes:
            yield asked.writes(place)


class _Asked:
    """Tries operations on locations, and returns the permissions missing for them."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def source(self, place: S3Uri) -> list[str]:
        """Try to list, and to read the first object that is not archived."""
        found: list[SourceObject] = []

        def list_it() -> None:
            found.extend(next(iter(self._store.list_objects(place.bucket, place.prefix)), ()))

        missing = _missing(list_it, "s3:ListBucket", place)
        readable = (one for one in found if one.size and one.storage_class not in ARCHIVED_CLASSES)
        first = next(readable, None)
        if first is not None:
            missing += _missing(lambda: self._store.read_range(first, 0, 1), "s3:GetObject", place)
        return missing

    def reads(self, place: S3Uri) -> list[str]:
        """Try to list and to read."""

        def list_it() -> None:
            next(iter(self._store.list_level(place.bucket, place.prefix)), None)

        return _missing(list_it, "s3:ListBucket", place) or _missing(
            lambda: self._store.head(place.bucket, place.prefix + _NO_OBJECT), "s3:GetObject", place
        )

    def writes(self, place: S3Uri) -> list[str]:
        """Try to begin and abort an upload."""
        key, begun = place.prefix + _NO_OBJECT, list[str]()

        def begin() -> None:
            begun.append(self._store.create_upload(place.bucket, key))

        def abort() -> None:
            self._store.abort_upload(place.bucket, key, begun[0])

        return _missing(begin, "s3:PutObject", place) or (
            _missing(abort, "s3:AbortMultipartUpload", place) if begun else []
        )


def _missing(act: Callable[[], object], action: str, place: S3Uri) -> list[str]:
    """Return the permission that a request lacks, if any. Other errors are left to the run."""
    said = None
    try:
        act()
    except UnreadableSource as error:
        said = error.detail if error.reason in DENIED_REASONS else None
    except InvalidInput as error:
        said = str(error.value) if error.field == "permission" else None
    except CompactorError:
        said = None
    if said is None:
        return []
    found = _ACTION.search(said)
    return [f"{found[0] if found else action} on {place.uri}"]
