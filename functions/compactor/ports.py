"""The interfaces to the outside world: object store, clock and deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import lt
from typing import NamedTuple, Protocol, Self

import msgspec

from compactor.attributes import Attributes
from compactor.errors import IntegrityError
from compactor.model import SourceObject, StoredPart
from compactor.pieces import Body


class Deletes(StrEnum):
    """How a store can delete sources without losing content that was written since.

    BATCH: by DeleteObjects with the ETag of each key. SINGLE: by DeleteObject with If-Match. NONE:
    the store honours neither, so no source is deleted.
    """

    BATCH = "batch"
    SINGLE = "single"
    NONE = "none"


class StoreTraits(msgspec.Struct, frozen=True):
    """What a store can be relied on to do. The defaults are AWS.

    Attributes:
        copies: sources may be copied server-side; otherwise their bytes pass through the worker.
        checks_crc32: an upload is not published if its bytes do not have the CRC32 sent with its
            completion; otherwise each output is read back after it is published.
        deletes: how sources are deleted.
    """

    copies: bool = True
    checks_crc32: bool = True
    deletes: Deletes = Deletes.BATCH


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """What HEAD returns for an object.

    Attributes:
        crc32: the full-object checksum; None if none is stored.
        last_modified: UNIX seconds, by the store's clock.
        answered_at: UNIX seconds of the response, by the store's clock; None if the response has
            no date.
        metadata: the user-defined metadata of the object, by lower-case name.
    """

    size: int
    etag: str
    crc32: int | None
    last_modified: float
    storage_class: str = "STANDARD"
    answered_at: float | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


class KeyPage(msgspec.Struct, frozen=True):
    """One page of a delimited listing: objects directly below, and common prefixes."""

    objects: tuple[SourceObject, ...]
    prefixes: tuple[str, ...]


def require_order(keys: Sequence[str], after: str = "") -> None:
    """Check that a listing names each key once, in UTF-8 order.

    Args:
        keys: the keys of a page, or the first ones.
        after: the key before them, or empty.

    Raises:
        IntegrityError: a key is repeated or out of order. A source listed twice would be
            compacted twice.
    """
    before = (after, *keys)
    if not all(map(lt, before, keys)):
        one, key = next(pair for pair in zip(before, keys, strict=False) if pair[0] >= pair[1])
        raise IntegrityError(
            f"the store does not list keys in order, each once: {key!r} was listed after {one!r}"
        )


class OpenUpload(msgspec.Struct, frozen=True):
    """A multipart upload that is neither completed nor aborted. ``began`` is in UNIX seconds."""

    key: str
    upload_id: str
    began: float


class SourceBody(NamedTuple):
    """The raw bytes of one source, as returned by the store.

    ``content`` is the whole of a small source; larger ones are read through ``chunks``, once and
    in order. ``error`` is set instead if the source changed or is gone. ``attributes`` are what S3
    stores besides the bytes. It is None if there are none, and for empty sources, which cost no
    request.
    """

    source: SourceObject
    content: bytes | None = None
    chunks: Callable[[], Iterator[bytes]] | None = None
    error: Exception | None = None
    attributes: Attributes | None = None


class Refused(NamedTuple):
    """A source that the store did not delete.

    Attributes:
        reason: the store's message.
        final: whether another object now has the key, so that a retry is useless.
    """

    key: str
    reason: str
    final: bool = False


class Deletion(NamedTuple):
    """The result of a request to delete sources. Every source not in ``refused`` is gone.

    Attributes:
        markers: deletes that created a delete marker, in a versioned bucket. The version stays
            and is billed.
        absent: keys that were already gone, as far as the store reports it.
    """

    refused: tuple[Refused, ...] = ()
    markers: int = 0
    absent: frozenset[str] = frozenset()


class RequestCounts(Protocol):
    """Requests made so far, by kind (LIST, GET, HEAD, PUT, DELETE) and bytes moved."""

    def snapshot(self) -> Mapping[str, int]:
        """Return the counts by kind, with ``bytes_read`` and ``bytes_written``."""
        ...


class ObjectStore(Protocol):
    """An S3-compatible store. Every method may raise TransientStoreError.

    ETags have no quotes, in arguments and in results. ``InvalidInput`` is raised if a bucket does
    not exist or access to it is denied; the message names the bucket.
    """

    @property
    def requests(self) -> RequestCounts:
        """The requests made so far."""
        ...

    @property
    def endpoint_url(self) -> str:
        """The URL that requests are sent to."""
        ...

    @property
    def region(self) -> str:
        """The region of the requests, as AWS names it; empty if it is unknown."""
        ...

    @property
    def traits(self) -> StoreTraits:
        """What this store can be relied on to do."""
        ...

    def with_traits(self, traits: StoreTraits) -> Self:
        """Return the same store, relying on these traits."""
        ...

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Yield pages of all objects below a prefix, in UTF-8 key order.

        Args:
            bucket: the bucket to list.
            prefix: the prefix of the keys.
            start_after: list only keys after this one, which need not exist.
            until: list only keys up to and including this one, which need not exist; empty for
                no limit.
        """
        ...

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        """Yield pages of one level below a prefix, with ``/`` as the delimiter."""
        ...

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        """Read sources with If-Match, concurrently and ahead of the caller, in the given order.

        Memory is bounded in bytes. For a changed or missing source, ``error`` of the body is
        SourceChanged. Zero-byte sources cost no request.
        """
        ...

    def read_range(self, source: SourceObject, start: int, length: int) -> bytes:
        """Return a byte range of a source, read with If-Match. Raises SourceChanged."""
        ...

    def get(self, bucket: str, key: str) -> bytes:
        """Return a whole small object (state, never sources). Raises ObjectMissing."""
        ...

    def get_range(self, bucket: str, key: str, start: int, length: int) -> bytes:
        """Return a byte range of an output; shorter if the output ends within it.

        Raises:
            ObjectMissing: there is no such object, or the range begins past its end.
        """
        ...

    def open(self, bucket: str, key: str) -> Iterator[bytes]:
        """Yield an output from start to end, in chunks. Raises ObjectMissing."""
        ...

    def head(self, bucket: str, key: str) -> ObjectHead | None:
        """Return the object's metadata; None if there is no such object."""
        ...

    def put(self, bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        """Write or overwrite a small object (run files and receipts only)."""
        ...

    def create(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        content_type: str = "",
        attributes: Attributes | None = None,
    ) -> None:
        """Create an object if the key is free (If-None-Match: *). Raises AlreadyExists."""
        ...

    def replace(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        etag: str,
        content_type: str = "",
        attributes: Attributes | None = None,
    ) -> None:
        """Overwrite a small object if it still has this ETag (If-Match).

        Raises:
            AlreadyExists: another object has the key.
            ObjectMissing: no object has the key.
        """
        ...

    def create_upload(
        self,
        bucket: str,
        key: str,
        *,
        content_type: str = "",
        metadata: Mapping[str, str] | None = None,
        attributes: Attributes | None = None,
    ) -> str:
        """Start a multipart upload with full-object CRC32 and return its id.

        ``metadata`` is what HEAD returns for the published object: US-ASCII, names in lower case.
        ``attributes`` replace it when a source is restored.
        """
        ...

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: Body
    ) -> StoredPart:
        """Store one part. Raises ObjectMissing if the upload is gone."""
        ...

    def copy_part(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        number: int,
        source: SourceObject,
        start: int,
        length: int,
    ) -> StoredPart:
        """Copy a byte range of a source server-side, as one part.

        Raises SourceChanged, and ObjectMissing if the upload is gone.
        """
        ...

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        parts: Sequence[StoredPart],
        *,
        crc32: int | None,
    ) -> None:
        """Publish an upload with If-None-Match: * and the full-object CRC32 (None for copies).

        Raises:
            AlreadyExists: the key exists.
            ObjectMissing: the upload is gone.
            IntegrityError: the store computed another checksum.
        """
        ...

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        """Abort an upload. It is no error if the upload is already gone."""
        ...

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        """Yield the open uploads of keys with this prefix, in no particular order."""
        ...

    def delete_sources(self, sources: Sequence[SourceObject]) -> Deletion:
        """Delete exactly these sources of one bucket, by key and ETag; never a version.

        A source that is already gone counts as deleted. Deletes that the store refuses are
        returned by key, not raised.
        """
        ...


class Clock(Protocol):
    """A source of the current time, injected so that tests control it."""

    def now(self) -> float:
        """Return UNIX seconds, UTC."""
        ...


class Deadline(Protocol):
    """The end of the time in which this invocation may work."""

    def remaining_seconds(self) -> float:
        """Return the seconds left; infinite if the process has no time limit."""
        ...
