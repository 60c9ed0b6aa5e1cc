"""Restores sources to a directory or to a prefix on S3, where no run takes them again."""

from __future__ import annotations

import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Protocol

from compactor.attributes import Attributes
from compactor.encoding.encoders import encoder
from compactor.errors import AlreadyExists, InvalidInput, ObjectMissing
from compactor.log.identity import identity_at
from compactor.log.manifest import ManifestRow
from compactor.model import Compression, StoredPart
from compactor.outputs.restore import require_bytes, restore
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor.sizes import MIB, human_bytes
from compactor_cli.console import progress
from compactor_cli.restore_files import ENCODINGS, FileTargets, Form, form_of, plain_bytes, refuse
from compactor_cli.restore_search import Search

S3_SCHEME = "s3://"
_PART_BYTES = 8 * MIB
_MOST_PARTS = 9_000
# Each holds at most one part in memory.
_CONCURRENT_PUTS = 8
# CompleteMultipartUpload cannot replace conditionally, so a replacement is a single PUT.
_MOST_REPLACED_BYTES = 64 * MIB
_LONGEST_KEY_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class Restored:
    """One restored source.

    Attributes:
        path: path or URI of the restored bytes.
        form: what they are.
        attributes: ``encoding``, ``metadata`` and ``content_type`` of the source, where it had any.
            Restored objects have them again; files cannot.
    """

    key: str
    etag: str
    path: str
    bytes: int
    form: Form
    attributes: Mapping[str, Any]


class Targets(Protocol):
    """Where sources are restored: all are added, then checked, then written one by one."""

    def add(self, row: ManifestRow) -> None:
        """Add a source; :meth:`check` reports what is wrong with its place."""
        ...

    def check(self) -> None:
        """Check that every source can be written, before anything is.

        Raises:
            InvalidInput: sources would overwrite each other or existing objects, or have invalid
                names.
        """
        ...

    def write(self, row: ManifestRow, pieces: Iterable[bytes]) -> tuple[str, int]:
        """Write the bytes of a source, whole or not at all; returns its place and size.

        Raises:
            InvalidInput: another writer has taken its place.
        """
        ...

    def finish(self) -> None:
        """Wait until everything is written.

        Raises:
            InvalidInput: as :meth:`write`.
        """
        ...


def restore_all(search: Search, targets: Targets, store: ObjectStore) -> Iterator[Restored]:
    """Write each source after checking its size and checksum; yields each restored one.

    Raises:
        InvalidInput: something would be overwritten; nothing was written.
        IntegrityError: an output is missing or damaged; nothing was written from it.
    """
    sources = total_bytes = written = written_bytes = 0
    with progress("searching the commit logs"):
        for commit in search.commits():
            require_bytes(commit)
            for row in commit.rows:
                targets.add(row)
                sources, total_bytes = sources + 1, total_bytes + plain_bytes(row)
        targets.check()
    with progress("restoring", sources) as bar:

        def counted(pieces: Iterator[bytes]) -> Iterator[bytes]:
            nonlocal written_bytes
            for piece in pieces:
                written_bytes += len(piece)
                text = f"{human_bytes(written_bytes)} of {human_bytes(total_bytes)}"
                bar.show(written, sources, text)
                yield piece

        for commit in search.commits():
            for row, pieces in restore(commit, store):
                form, compression = form_of(row)
                where, size = targets.write(row, _encoded(counted(pieces), compression))
                written += 1
                attributes = {} if row.attributes is None else row.attributes.as_dict()
                yield Restored(row.source.key, row.source.etag, where, size, form, attributes)
        targets.finish()


def targets_at(
    to: str | os.PathLike[str],
    taken: tuple[S3Uri, S3Uri],
    store: ObjectStore,
    *,
    overwrite: bool = False,
) -> Targets:
    """Return the target to restore to: a directory, or a prefix on S3.

    Args:
        to: directory or S3 URI.
        taken: the destination and the state.
        store: writes the objects, and holds the state.
        overwrite: replace existing files or objects.

    Raises:
        InvalidInput: the URI is invalid, or below it are outputs or state.
    """
    if not isinstance(to, str) or not to.startswith(S3_SCHEME):
        return FileTargets(Path(to), overwrite=overwrite)
    target = S3Uri.parse("--output", to)
    for uri, what in zip(taken, ("outputs", "state"), strict=True):
        # A whole bucket is allowed: sources return to their own keys.
        if target.prefix and target.overlaps(uri):
            accepted = f"a place outside of {uri.uri}, which holds the {what}"
            raise InvalidInput("--output", to, accepted)
    identity = identity_at(taken[1], store)
    root = None if identity is None else S3Uri.parse("source_root", identity.source_root)
    return ObjectTargets(target, store, root, taken, overwrite=overwrite)


def _encoded(pieces: Iterable[bytes], compression: Compression) -> Iterator[bytes]:
    into = encoder(compression)
    for piece in pieces:
        yield into.write(piece)
    yield into.finish()


class ObjectTargets:
    """Writes restored sources below a prefix, under their keys, and never where a run takes them.

    Args:
        target: where to write.
        store: writes there.
        root: source prefix of the runs. An object below it counts as a source, so only the
            original keys may be restored there.
        taken: the destination and the state; nothing is restored below these.
        overwrite: replace existing objects, if they are unchanged since :meth:`check`.
    """

    def __init__(
        self,
        target: S3Uri,
        store: ObjectStore,
        root: S3Uri | None,
        taken: Sequence[S3Uri],
        *,
        overwrite: bool = False,
    ) -> None:
        self._target = target
        self._store = store
        self._root = root
        self._taken = taken
        self._overwrite = overwrite
        self._sizes: dict[str, int] = {}
        self._etags: dict[str, str] = {}
        self._faults: list[str] = []
        # Keys that would be new sources, by the bucket to which they can go back.
        self._new_sources: dict[str, list[str]] = {}
        self._pool = ThreadPoolExecutor(_CONCURRENT_PUTS)
        self._puts: deque[Future[None]] = deque()

    def add(self, row: ManifestRow) -> None:
        """Add a source; :meth:`check` reports what is wrong with its place."""
        source, key = row.source, self._target.prefix + row.source.key
        if len(key.encode("utf-8", "surrogatepass")) > _LONGEST_KEY_BYTES:
            self._faults.append(f"{source.key!r} would have a key of over 1,024 bytes")
        if key in self._sizes:
            self._faults.append(f"two buckets have a source {source.key!r}: restore it by its URI")
        is_original = (self._target.bucket, key) == (source.bucket, source.key)
        if not is_original and self._root is not None and self._is_below(key, self._root):
            self._new_sources.setdefault(source.bucket, []).append(key)
        for uri in self._taken:
            if self._is_below(key, uri):
                self._faults.append(f"{key!r} would be among outputs or state, in {uri.uri}")
        self._sizes[key] = plain_bytes(row)

    def check(self) -> None:
        """Check that every source can be written, before anything is.

        Raises:
            InvalidInput: sources would have the same key, be compacted by runs, or overwrite
                existing objects.
        """
        first, last = min(self._sizes, default=""), max(self._sizes, default="")
        # List only the common prefix of the keys, as the target may be a whole bucket.
        both = takewhile(lambda two: two[0] == two[1], zip(first, last, strict=False))
        around = "".join(character for character, _ in both)
        pages = self._store.list_objects(self._target.bucket, around, until=last) if last else ()
        for listed in chain.from_iterable(pages):
            if listed.key in self._sizes:
                self._check_existing(listed.key, listed.etag)
        new_sources = [self._new_source(*there) for there in self._new_sources.items()]
        refuse(self._target.uri, "a prefix", "an object", [*new_sources, *self._faults])

    def write(self, row: ManifestRow, pieces: Iterable[bytes]) -> tuple[str, int]:
        """Write a source after all its pieces were checked; small ones concurrently.

        Raises:
            InvalidInput: another writer took the place of this or an earlier source.
        """
        key = self._target.prefix + row.source.key
        parts = _parts(pieces, max(_PART_BYTES, plain_bytes(row) // _MOST_PARTS))
        attributes = _attributes_of(row)
        first, second = next(parts, b""), next(parts, None)
        where = f"{S3_SCHEME}{self._target.bucket}/{key}"
        if second is not None:
            return where, self._write_large(key, chain((first, second), parts), attributes)
        while len(self._puts) >= _CONCURRENT_PUTS:
            self._puts.popleft().result()
        self._puts.append(self._pool.submit(self._put, key, first, attributes))
        return where, len(first)

    def finish(self) -> None:
        """Wait until everything is written.

        Raises:
            InvalidInput: another writer took a place.
        """
        while self._puts:
            self._puts.popleft().result()
        self._pool.shutdown()

    def _is_below(self, key: str, uri: S3Uri) -> bool:
        return uri.bucket == self._target.bucket and key.startswith(uri.prefix)

    def _new_source(self, bucket: str, keys: Sequence[str]) -> str:
        others = f" and {len(keys) - 1:,} more" if len(keys) > 1 else ""
        what = "new sources" if others else "a new source"
        back = f"-o {S3_SCHEME}{bucket}/ puts {'each' if others else 'it'} back under its own key"
        root = self._root.uri if self._root is not None else ""
        return f"{keys[0]!r}{others} would be {what} in {root}, and be compacted again ({back})"

    def _check_existing(self, key: str, etag: str) -> None:
        where = f"{S3_SCHEME}{self._target.bucket}/{key}"
        if not self._overwrite:
            self._faults.append(f"{where!r} exists (--overwrite replaces it)")
        elif self._sizes[key] > _MOST_REPLACED_BYTES:
            self._faults.append(f"{where!r} exists, and is too large to be replaced")
        else:
            self._etags[key] = etag

    def _put(self, key: str, body: bytes, attributes: Attributes | None) -> None:
        bucket, etag = self._target.bucket, self._etags.get(key)
        try:
            if etag is None:
                self._store.create(bucket, key, body, attributes=attributes)
            else:
                self._store.replace(bucket, key, body, etag=etag, attributes=attributes)
        except (AlreadyExists, ObjectMissing):
            self._require_ours(key, len(body), zlib.crc32(body))

    def _write_large(self, key: str, parts: Iterator[bytes], attributes: Attributes | None) -> int:
        if key in self._etags:
            body = b"".join(parts)
            self._put(key, body, attributes)
            return len(body)
        bucket = self._target.bucket
        upload_id = self._store.create_upload(bucket, key, attributes=attributes)
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
            accepted = "a key that no other writer takes at the same time"
            raise InvalidInput("--output", f"{S3_SCHEME}{self._target.bucket}/{key}", accepted)


def _attributes_of(row: ManifestRow) -> Attributes | None:
    """Return the S3 attributes; for decompressed content, without that Content-Encoding."""
    stored = row.attributes
    if stored is None or form_of(row)[0] is not Form.CONTENT:
        return stored
    encodings = (encoding.strip() for encoding in stored.encoding.split(","))
    plain = ",".join(one for one in encodings if one.lower() not in ENCODINGS)
    return Attributes(plain, stored.metadata, stored.content_type)


def _parts(pieces: Iterable[bytes], part_bytes: int) -> Iterator[bytes]:
    """Yield the same bytes in parts for an upload; all but the last have one size."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        while len(buffer) > part_bytes:
            yield bytes(buffer[:part_bytes])
            del buffer[:part_bytes]
    yield bytes(buffer)
