"""Restored sources as objects: created if absent, and never where a run would compact them."""

from __future__ import annotations

import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path

from compactor.attributes import Attributes
from compactor.errors import AlreadyExists, InvalidInput, ObjectMissing
from compactor.log.manifest import ManifestRow
from compactor.log.schemes import source_roots
from compactor.model import SourceObject, StoredPart
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor.sizes import MIB
from compactor_cli.restored_files import (
    CONTENT_SUFFIX,
    Places,
    Shape,
    Targets,
    Written,
    encoded,
    refuse,
    row_bytes,
)

S3_SCHEME = "s3://"
_PART_BYTES = 8 * MIB
_MOST_PARTS = 9_000
# Each holds at most one part in memory.
_CONCURRENT_PUTS = 8
# CompleteMultipartUpload cannot replace conditionally, so a replacement is a single PUT.
_MOST_REPLACED_BYTES = 64 * MIB
_LONGEST_KEY_BYTES = 1_024
_TAKEN = "a key that no other writer takes at the same time"


def place_at(
    to: str | os.PathLike[str],
    taken: tuple[S3Uri, S3Uri],
    store: ObjectStore,
    *,
    compress: bool = False,
    overwrite: bool = False,
    escape: bool = False,
) -> Places:
    """Return the place to restore to: a directory, or a prefix on S3.

    Args:
        to: directory or S3 URI.
        taken: the destination and the state.
        store: writes the objects, and holds the state.
        compress: see :class:`compactor_cli.restored_files.Targets`.
        overwrite: see there.
        escape: see there; objects keep their keys.

    Raises:
        InvalidInput: the URI is invalid, or below it are outputs or state.
    """
    if not isinstance(to, str) or not to.startswith(S3_SCHEME):
        return Targets(Path(to), compress=compress, overwrite=overwrite, escape=escape)
    target = S3Uri.parse("--output", to)
    for other, what in zip(taken, ("outputs", "state"), strict=True):
        # A whole bucket is allowed: sources return to their own keys.
        if target.prefix and target.overlaps(other):
            accepted = f"a place outside of {other.uri}, which holds the {what}"
            raise InvalidInput("--output", to, accepted)
    sources = source_roots(taken[1], store)
    return Objects(
        target, store, sources=sources, taken=taken, compress=compress, overwrite=overwrite
    )


def _new_sources(keys: Sequence[str], root: str, way: str) -> str:
    others = f" and {len(keys) - 1:,} more" if len(keys) > 1 else ""
    back = "puts each back under its own key" if others else "puts it back under its own key"
    what = "new sources" if others else "a new source"
    return f"{keys[0]!r}{others} would be {what} in {root}, and be compacted again ({way} {back})"


class Objects:
    """Writes restored sources below a prefix, under their keys.

    Args:
        target: where to write.
        store: writes there.
        sources: source prefixes of the runs. An object below one counts as a source, so only the
            original keys may be restored there.
        taken: the destination and the state; nothing is restored below these.
        compress: see :class:`compactor_cli.restored_files.Targets`.
        overwrite: replace existing objects, if they are unchanged since :meth:`check`.
    """

    def __init__(
        self,
        target: S3Uri,
        store: ObjectStore,
        *,
        sources: Sequence[S3Uri] = (),
        taken: Sequence[S3Uri] = (),
        compress: bool = False,
        overwrite: bool = False,
    ) -> None:
        self._target = target
        self._store = store
        self._sources = sources
        self._taken = taken
        self._compress = compress
        self._overwrite = overwrite
        self._keys: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._etags: dict[str, str] = {}
        self._faults: list[str] = []
        # Keys that would be new sources, by source prefix and the options that avoid it.
        self._new_sources: dict[tuple[str, str], list[str]] = {}
        self._pool = ThreadPoolExecutor(_CONCURRENT_PUTS)
        self._puts: deque[Future[None]] = deque()

    def add(self, row: ManifestRow) -> None:
        """Add a source; :meth:`check` reports what is wrong with its place."""
        key, shape = self._place(row)
        source = row.source
        if len(key.encode("utf-8", "surrogatepass")) > _LONGEST_KEY_BYTES:
            self._faults.append(f"{source.key!r} would have a key of over 1,024 bytes")
        before = len(self._keys)
        other = self._keys.setdefault(key, source.key)
        if len(self._keys) == before:
            self._faults.append(f"{other!r} and {source.key!r} would both be {key!r}")
        same = (self._target.bucket, key) == (source.bucket, source.key)
        root = None if same else self._around(key, self._sources)
        if root is not None:
            way = self._way_back(source, shape)
            self._new_sources.setdefault((root.uri, way), []).append(key)
        if taken := self._around(key, self._taken):
            self._faults.append(f"{key!r} would be among outputs or state, in {taken.uri}")
        self._sizes[key] = row_bytes(row)

    def check(self) -> None:
        """Check that every source can be written, before anything is.

        Raises:
            InvalidInput: sources would have the same key, be compacted by runs, or overwrite
                existing objects.
        """
        first, last = min(self._keys, default=""), max(self._keys, default="")
        # List only the common prefix of the keys, as the target may be a whole bucket.
        both = takewhile(lambda two: two[0] == two[1], zip(first, last, strict=False))
        around = "".join(one for one, _ in both)
        pages = self._store.list_objects(self._target.bucket, around, until=last) if last else ()
        for page in pages:
            for one in page:
                if one.key in self._keys:
                    self._check_existing(one.key, one.etag)
        new = [_new_sources(keys, *there) for there, keys in self._new_sources.items()]
        faults = [*new, *self._faults]
        refuse("--output", self._target.uri, "a prefix", "an object", faults)
        self._sizes.clear()

    def write(self, row: ManifestRow, pieces: Iterable[bytes]) -> Written:
        """Write a source after all its pieces were checked; small ones concurrently.

        Raises:
            InvalidInput: another writer took the place of this or an earlier source.
        """
        key, shape = self._place(row)
        part_bytes = max(_PART_BYTES, row_bytes(row) // _MOST_PARTS)
        parts = _parts(encoded(pieces, shape.compression), part_bytes)
        first = next(parts, b"")
        second = next(parts, None)
        where = f"s3://{self._target.bucket}/{key}"
        kept = shape.attributes(row)
        if second is None:
            self._put(key, first, kept)
            return Written(where, len(first), shape.form)
        size = self._write_large(key, _chain(first, second, parts), kept)
        return Written(where, size, shape.form)

    def finish(self) -> None:
        """Wait until everything is written.

        Raises:
            InvalidInput: another writer took a place.
        """
        while self._puts:
            self._puts.popleft().result()
        self._pool.shutdown()

    def _place(self, row: ManifestRow) -> tuple[str, Shape]:
        above, slash, name = row.source.key.rpartition("/")
        shape = Shape.of(row, name, compress=self._compress)
        return f"{self._target.prefix}{above}{slash}{shape.name}", shape

    def _way_back(self, source: SourceObject, shape: Shape) -> str:
        """Return the options that restore a source to its own key."""
        compress = "--compress " if shape.name.endswith(CONTENT_SUFFIX) else ""
        return f"{compress}-o {S3_SCHEME}{source.bucket}/"

    def _around(self, key: str, places: Sequence[S3Uri]) -> S3Uri | None:
        here = (one for one in places if one.bucket == self._target.bucket)
        return next((one for one in here if key.startswith(one.prefix)), None)

    def _check_existing(self, key: str, etag: str) -> None:
        where = f"s3://{self._target.bucket}/{key}"
        if not self._overwrite:
            self._faults.append(f"{where!r} exists (--overwrite replaces it)")
        elif self._sizes[key] > _MOST_REPLACED_BYTES:
            self._faults.append(f"{where!r} exists, and is too large to be replaced")
        else:
            self._etags[key] = etag

    def _put(self, key: str, body: bytes, kept: Attributes | None) -> None:
        while len(self._puts) >= _CONCURRENT_PUTS:
            self._puts.popleft().result()
        self._puts.append(self._pool.submit(self._put_now, key, body, kept))

    def _put_now(self, key: str, body: bytes, kept: Attributes | None) -> None:
        bucket, etag = self._target.bucket, self._etags.get(key)
        try:
            if etag is None:
                self._store.create(bucket, key, body, attributes=kept)
            else:
                self._store.replace(bucket, key, body, etag=etag, attributes=kept)
        except (AlreadyExists, ObjectMissing):
            self._require_ours(key, len(body), zlib.crc32(body))

    def _write_large(self, key: str, parts: Iterator[bytes], kept: Attributes | None) -> int:
        if key in self._etags:
            body = b"".join(parts)
            self._put_now(key, body, kept)
            return len(body)
        bucket = self._target.bucket
        upload_id = self._store.create_upload(bucket, key, attributes=kept)
        stored: list[StoredPart] = []
        crc32 = 0
        try:
            for number, body in enumerate(parts, start=1):
                crc32 = zlib.crc32(body, crc32)
                stored.append(self._store.upload_part(bucket, key, upload_id, number, body))
            # The last piece is yielded after its check, so a damaged source is never published.
            self._store.complete_upload(bucket, key, upload_id, stored, crc32=crc32)
        except (AlreadyExists, ObjectMissing):
            self._store.abort_upload(bucket, key, upload_id)
            self._require_ours(key, sum(part.size for part in stored), crc32)
        except BaseException:
            self._store.abort_upload(bucket, key, upload_id)
            raise
        return sum(part.size for part in stored)

    def _require_ours(self, key: str, size: int, crc32: int) -> None:
        """Accept a taken key if its object equals ours: an earlier try whose response was lost."""
        head = self._store.head(self._target.bucket, key)
        if head is None or (head.size, head.crc32) != (size, crc32):
            raise InvalidInput("--output", f"s3://{self._target.bucket}/{key}", _TAKEN)


def _parts(pieces: Iterable[bytes], part_bytes: int) -> Iterator[bytes]:
    """Yield the same bytes in parts for an upload; all but the last have one size."""
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) > part_bytes:
            yield bytes(held[:part_bytes])
            del held[:part_bytes]
    yield bytes(held)


def _chain(first: bytes, second: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield second
    yield from rest
