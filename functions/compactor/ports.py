"""What the verbs need from the outside world."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import lt
from typing import NamedTuple, Protocol, Self, runtime_checkable

import msgspec

from compactor.attributes import Attributes
from compactor.conditions import StoreTraits
from compactor.errors import IntegrityError
from compactor.model import SourceObject, StoredPart
from compactor.pieces import Body


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """What HEAD returns for an object.

    Attributes:
        crc32: the full-object checksum, where it is stored.
        last_modified: UNIX seconds, by the store's clock.
        answered_at: UNIX seconds by the store's clock, when it answered; None where it does
            not say.
        metadata: the user-defined metadata it was created with, by lower-case name.
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


def last_of(page: KeyPage) -> str:
    """The last key or prefix of a page; empty where it has none."""
    return max((*(one.key for one in page.objects[-1:]), *page.prefixes[-1:]), default="")


def require_order(keys: Sequence[str], after: str = "") -> None:
    """Make sure that a listing names each key once, in UTF-8 order.

    Args:
        keys: of a page, or the first of one.
        after: the key before them; empty where there is none.

    Raises:
        IntegrityError: a source that is listed twice would be compacted twice.
    """
    before = (after, *keys)
    if not all(map(lt, before, keys)):
        one, key = next(pair for pair in zip(before, keys, strict=False) if pair[0] >= pair[1])
        raise IntegrityError(
            f"the store does not list keys in order, each once: {key!r} was listed after {one!r}"
        )


@runtime_checkable
class SummedPage(Protocol):
    """A page of a listing that is summed up without a look at each object, which is cheaper."""

    def total_size(self) -> int:
        """Bytes of all its objects."""
        ...

    def parents(self) -> Collection[str]:
        """The distinct parents of all keys: up to and including the last slash."""
        ...

    def columns(self) -> Sequence[str]:
        """As :func:`compactor.fingerprint.columns_of` gives them."""
        ...


class OpenUpload(msgspec.Struct, frozen=True):
    """A multipart upload that was neither completed nor aborted; it began at UNIX seconds."""

    key: str
    upload_id: str
    began: float


class SourceBody(NamedTuple):
    """The raw bytes of one source as the store hands them over.

    ``content`` holds small sources whole; larger ones come through ``chunks``, to be read
    once and in order. ``error`` is set instead when the source changed or is gone. ``attributes``
    are what S3 keeps beside the bytes; None for nothing, and for sources without any bytes, of
    which nothing is asked.
    """

    source: SourceObject
    content: bytes | None = None
    chunks: Callable[[], Iterator[bytes]] | None = None
    error: Exception | None = None
    attributes: Attributes | None = None


class Refused(NamedTuple):
    """A source that the store did not delete.

    Attributes:
        reason: the store's words.
        final: another object stands at the key now; asking again is of no use.
    """

    key: str
    reason: str
    final: bool = False


class Deletion(NamedTuple):
    """What became of a request to delete sources; all others are gone.

    Attributes:
        markers: deletes that put a delete marker, in a versioned bucket: the version stays, and
            is paid for.
        absent: keys of those that were gone before, as far as the store says.
    """

    refused: tuple[Refused, ...] = ()
    markers: int = 0
    absent: frozenset[str] = frozenset()


class RequestCounts(Protocol):
    """Requests made so far, by kind (LIST, GET, HEAD, PUT, DELETE) and bytes moved."""

    def snapshot(self) -> Mapping[str, int]:
        """Also ``bytes_read`` and ``bytes_written``."""
        ...


class ObjectStore(Protocol):
    """An S3-compatible store. Every method may raise TransientStoreError.

    ETags go in and out without quotes. ``InvalidInput`` is raised for a bucket that does
    not exist and for access denied, naming the bucket.
    """

    @property
    def requests(self) -> RequestCounts:
        """What was asked of the store so far."""
        ...

    @property
    def endpoint_url(self) -> str:
        """Where requests are sent."""
        ...

    @property
    def region(self) -> str:
        """Region of the requests, as AWS names it; empty where it is unknown."""
        ...

    @property
    def traits(self) -> StoreTraits:
        """The ways that this store takes, by default those that are safe on AWS."""
        ...

    def with_traits(self, traits: StoreTraits) -> Self:
        """This very store, taking the ways of these traits."""
        ...

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of all objects below a prefix in UTF-8 key order.

        Args:
            bucket: of the objects.
            prefix: of their keys.
            start_after: only keys after this one, which need not exist.
            until: only keys up to this one, likewise; empty for all.
        """
        ...

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        """Pages of one level below a prefix, cut at ``/``."""
        ...

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        """Read sources with If-Match, concurrently ahead of the caller, in the order given.

        Memory held is bounded in bytes. A changed or missing source comes back as a body
        whose ``error`` is SourceChanged. Zero-byte sources cost no request.
        """
        ...

    def read_range(self, source: SourceObject, start: int, length: int) -> bytes:
        """A byte range of a source, read with If-Match. Raises SourceChanged."""
        ...

    def sees_tags(self, source: SourceObject) -> bool:
        """Whether answers about sources of this one's bucket include their tags for this role.

        To a role without the right S3 does not say that there are any. Asked once a bucket.
        """
        ...

    def may_have_tags(self, source: SourceObject) -> bool:
        """False where it is certain that an object has none, or is gone."""
        ...

    def get(self, bucket: str, key: str) -> bytes:
        """A whole small object (state, never sources). Raises ObjectMissing."""
        ...

    def get_range(self, bucket: str, key: str, start: int, length: int) -> bytes:
        """A byte range of an output; at its end, what there is of it.

        Raises:
            ObjectMissing: there is no such object, or the range begins past its end.
        """
        ...

    def open(self, bucket: str, key: str) -> Iterator[bytes]:
        """An output from start to end, in chunks. Raises ObjectMissing."""
        ...

    def head(self, bucket: str, key: str) -> ObjectHead | None:
        """None when there is no such object."""
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
        """Create-if-absent (If-None-Match: *). Raises AlreadyExists."""
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
        """Write over a small object that has this ETag (If-Match).

        Raises:
            AlreadyExists: another one stands there.
            ObjectMissing: none does.
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
        """Start a multipart upload with full-object CRC32; returns its id.

        ``metadata`` is what HEAD returns for the object once it is published: US-ASCII, names in
        lower case. ``attributes`` are what it has instead, where it is a source that is restored.
        """
        ...

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: Body
    ) -> StoredPart:
        """Store one part. Raises ObjectMissing when the upload is gone."""
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
        """Server-side copy of a byte range of a source as one part.

        Raises SourceChanged, and ObjectMissing where the upload is gone.
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
        """Publish with If-None-Match: * and the full-object CRC32 (None for copies).

        Raises:
            AlreadyExists: the key is taken.
            ObjectMissing: the upload is gone.
            IntegrityError: the store's checksum differs.
        """
        ...

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        """Drop an upload; no error when it is gone already."""
        ...

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        """The open uploads for keys that start with a prefix, in no certain order."""
        ...

    def delete_sources(self, sources: Sequence[SourceObject]) -> Deletion:
        """Delete exactly these, of one bucket, by key and ETag; never a version.

        A source already gone counts as deleted. What the store does not allow is not raised but
        returned, key by key.
        """
        ...


class TaggedStore(ObjectStore, Protocol):
    """A store that also keeps tags.

    S3 has no condition for either method: what another writer tags in between is lost.
    """

    def tags(self, bucket: str, key: str) -> Mapping[str, str]:
        """All tags of an object. Raises ObjectMissing."""
        ...

    def put_tags(self, bucket: str, key: str, tags: Mapping[str, str]) -> None:
        """Give an object these tags, at most ten, and no others. Raises ObjectMissing."""
        ...


class RunTime(NamedTuple):
    """One run of a job, or one query, that came to its end.

    Attributes:
        began: UNIX seconds.
        seconds: that it took, without waiting for its turn.
    """

    began: float
    seconds: float


class RunTimes(Protocol):
    """What knows how long a job, or queries of a table, took."""

    def since(self, start: float, end: float) -> Sequence[RunTime]:
        """The runs that began after a time and not after another, UNIX seconds; the newest first.

        Raises:
            TransientStoreError: the service did not answer.
            InvalidInput: there is no such job, or it may not be asked about.
        """
        ...


class Clock(Protocol):
    """Time, injected."""

    def now(self) -> float:
        """UNIX seconds, UTC."""
        ...


class Deadline(Protocol):
    """How long this invocation may still work."""

    def remaining_seconds(self) -> float:
        """Seconds left; infinite where nothing limits the process."""
        ...
