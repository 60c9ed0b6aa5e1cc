"""Patches for moto's S3, to hold log data.

moto 5.2.5 iterates over every key of a bucket for every page of a listing, and fails a listing
while another thread writes. This module fixes both, and stores objects without the S3 protocol.
Uploads are fixed in :mod:`compactor_local.multipart_patches`.
"""

from __future__ import annotations

import bisect
import datetime
import hashlib
import threading
from collections.abc import Sequence
from typing import Any

from moto.s3 import models
from moto.s3.exceptions import BucketAlreadyExists, InvalidBucketName
from moto.s3.utils import _VersionedKeyStore

from compactor_local import multipart_patches
from compactor_local.definition import ACCOUNT, REGION
from compactor_local.patching import replace

_LAST = "\U0010ffff"


class OrderedKeys(_VersionedKeyStore):
    """moto's key store with sorted names, safe to list while it is modified."""

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []
        self._changing = threading.RLock()

    def setlist(self, key: Any, list_: Any) -> Any:
        """Set every version of a key."""
        with self._changing:
            self._note(key)
            super().setlist(key, list_)

    def __setitem__(self, key: str, value: Any) -> None:
        with self._changing:
            self._note(key)
            super().__setitem__(key, value)

    def pop(self, key: str) -> None:  # type: ignore[override] # the signature is moto's
        """Remove a key with all its versions."""
        with self._changing:
            super().pop(key)
            del self._names[bisect.bisect_left(self._names, key)]

    def _note(self, key: str) -> None:
        if key not in self:
            bisect.insort(self._names, key)

    def page(self, prefix: str, delimiter: str, after: str, limit: int) -> list[Any]:
        """Return keys and common prefixes (as text) in order.

        Args:
            prefix: prefix of every key.
            delimiter: end of common prefixes; empty for none.
            after: the page starts after this key or common prefix.
            limit: maximum number of entries.
        """
        found: list[Any] = []
        with self._changing:
            place = bisect.bisect_left(self._names, prefix)
            if after:
                # A key equal to the prefix may end in the delimiter without being a common prefix.
                whole = delimiter and after.endswith(delimiter) and len(after) > len(prefix)
                start = bisect.bisect_right(self._names, after + _LAST if whole else after)
                place = max(place, start)
            while place < len(self._names) and len(found) < limit:
                name = self._names[place]
                if not name.startswith(prefix):
                    break
                cut = name.find(delimiter, len(prefix)) if delimiter else -1
                if cut >= 0:
                    found.append(name[: cut + len(delimiter)])
                    place = bisect.bisect_right(self._names, found[-1] + _LAST)
                    continue
                if not isinstance(self[name], models.FakeDeleteMarker):
                    found.append(self[name])
                place += 1
        return found


def _list_objects_v2(  # noqa: PLR0917 - the signature is moto's
    backend: Any,
    bucket: Any,
    prefix: str | None,
    delimiter: str | None,
    continuation_token: str | None,
    start_after: str | None,
    max_keys: int,
) -> tuple[list[Any], bool, str | None]:
    tokens = backend._pagination_tokens
    after = tokens.get(continuation_token, "") if continuation_token else start_after or ""
    entries = bucket.keys.page(prefix or "", delimiter or "", after, max_keys + 1)
    page: tuple[list[Any], bool, str | None] = backend._truncate_result(entries, max_keys)
    return page


def install() -> None:
    """Apply the patches to this process's moto."""
    replace(models, "_VersionedKeyStore", OrderedKeys)
    replace(models.S3Backend, "list_objects_v2", _list_objects_v2)
    multipart_patches.install()


def store(bucket: str, header: Sequence[Sequence[Any]], body: bytes) -> int:
    """Store objects directly in moto's store; returns their number.

    Args:
        bucket: created if it does not exist.
        header: key, size, last modified (UNIX seconds or None) and storage class of each.
        body: their contents, concatenated.

    Raises:
        ValueError: S3 does not accept the bucket's name.
    """
    backend = models.s3_backends[ACCOUNT]["aws"]
    try:
        backend.create_bucket(bucket, REGION)
    except BucketAlreadyExists:
        pass
    except InvalidBucketName as error:
        raise ValueError(f"{bucket!r} is not a valid bucket name") from error
    place = 0
    for key, size, last_modified, storage_class in header:
        content = body[place : place + size]
        place += size
        # moto would hash on first use, while another thread may be reading the buffer.
        etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
        stored = backend.put_object(
            bucket, key, content, storage_class, etag, disable_notification=True
        )
        if last_modified is not None:
            moment = datetime.datetime.fromtimestamp(last_modified, datetime.UTC)
            stored.last_modified = moment.replace(tzinfo=None)
    return len(header)
