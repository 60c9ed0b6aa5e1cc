"""The questions of a probe, which try each condition on objects below the state prefix.

A condition is judged by the objects afterwards, not by the answer, which may have been lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from isal import isal_zlib

from compactor.conditions import Condition, Finding, StoreTraits, Verdict
from compactor.errors import (
    AlreadyExists,
    CompactorError,
    IntegrityError,
    InvalidInput,
    ObjectMissing,
    SourceChanged,
)
from compactor.model import SourceObject, StoredPart
from compactor.ports import ObjectStore

_NO_ETAG = "0" * 32
_NO_CRC32 = -1


class _Upload(NamedTuple):
    """A multipart upload of one small part, with the size and CRC32 of its object."""

    key: str
    upload_id: str
    parts: Sequence[StoredPart]
    size: int
    crc32: int


class Questions:
    """One round of questions below a prefix of its own, which is emptied at the end."""

    def __init__(self, store: ObjectStore, bucket: str, prefix: str) -> None:
        # With AWS's traits, conditions are sent; and the client must not compare ETags itself.
        self._store = store.with_traits(StoreTraits(refuses_other_etags=False))
        self._bucket = bucket
        self._prefix = prefix

    def ask(self, *, deletes: bool) -> Iterator[Finding]:
        """Yield the findings, including those about deletes if wanted.

        Raises:
            InvalidInput: the bucket does not exist, or may not be written.
            TransientStoreError: the store did not answer.
        """
        try:
            yield self._create()
            yield from self._list()
            source = self._written("create")
            yield self._read(source)
            yield from self._publish()
            yield from self._copy()
            if deletes:
                yield self._delete(Condition.DELETE_MANY, StoreTraits())
                yield self._delete(Condition.DELETE_ONE, StoreTraits(deletes_many=False))
        finally:
            self._remove()

    def _create(self) -> Finding:
        key, first, second = self._prefix + "create", b"the first", b"the second"
        words = _refusal(lambda: self._store.create(self._bucket, key, first))
        if words:
            self._store.put(self._bucket, key, first)
            return Finding(Condition.CREATE, Verdict.REFUSED, words)
        words = _refusal(lambda: self._store.create(self._bucket, key, second))
        kept = self._store.get(self._bucket, key) == first
        return _finding(Condition.CREATE, kept=kept)

    def _list(self) -> Iterator[Finding]:
        listed = {one.key for one in self._listed()}
        yield _finding(Condition.LIST, kept=self._prefix + "create" in listed)

    def _read(self, source: SourceObject) -> Finding:
        def read(etag: str) -> bool:
            try:
                self._store.read_range(replace(source, etag=etag), 0, source.size)
            except SourceChanged:
                return False
            return True

        words = _refusal(lambda: read(source.etag))
        if words or not read(source.etag):
            detail = words or "the object that was listed is said to have changed"
            return Finding(Condition.READ, Verdict.REFUSED, detail)
        return _finding(Condition.READ, kept=not read(_NO_ETAG))

    def _publish(self) -> Iterator[Finding]:
        upload = self._upload("publish", b"the first")
        _refusal(lambda: self._complete(upload, upload.crc32 ^ 1))
        refuses_wrong = self._head("publish") is None
        words = ""
        if refuses_wrong:
            # The refused completion may have ended the upload.
            upload = self._upload("publish", b"the first")
            words = _refusal(lambda: self._complete(upload, upload.crc32))
            if self._head("publish") is None:
                words = words or "an upload with the right checksum is not published"
                yield Finding(Condition.WHOLE_CHECKSUM, Verdict.REFUSED, words)
                return
        yield _finding(Condition.WHOLE_CHECKSUM, kept=refuses_wrong)
        yield _finding(Condition.HEAD_CHECKSUM, kept=self._head("publish") == upload.crc32)
        second = self._upload("publish", b"not the first")
        _refusal(lambda: self._complete(second, second.crc32))
        kept = self._written("publish").size == upload.size
        self._store.abort_upload(self._bucket, second.key, second.upload_id)
        yield _finding(Condition.PUBLISH, kept=kept)

    def _copy(self) -> Iterator[Finding]:
        """Copy a range of an object that has a CRC32; some stores wrongly give it to the part."""
        name = "create" if self._head("publish") is None else "publish"
        source = self._written(name)
        start, length = 1, source.size - 1
        copied = self._store.get(self._bucket, source.key)[start:]
        key = self._prefix + "copy"
        upload_id = self._store.create_upload(self._bucket, key)
        made: list[StoredPart] = []

        def copy(etag: str) -> None:
            pinned = replace(source, etag=etag)
            part = self._store.copy_part(self._bucket, key, upload_id, 1, pinned, start, length)
            made.append(part)

        words = _refusal(lambda: copy(source.etag))
        if words or not made:
            self._store.abort_upload(self._bucket, key, upload_id)
            yield Finding(Condition.COPY, Verdict.REFUSED, words or "a part was not copied")
            return
        right = made.pop()
        _refusal(lambda: copy(_NO_ETAG))
        yield _finding(Condition.COPY, kept=not made)
        # If the part was copied again, it has the same bytes, and so the same ETag.
        upload = _Upload(key, upload_id, (right,), length, isal_zlib.crc32(copied))
        words = _refusal(lambda: self._complete(upload, None))
        crc32 = self._head("copy")
        if words or crc32 is None:
            words = words or "an upload of a copied part is not published"
            yield Finding(Condition.COPIED_CHECKSUM, Verdict.REFUSED, words)
            return
        # If HEAD returns no CRC32 for copies, but does for other outputs, none is compared.
        none_kept = crc32 == _NO_CRC32 and self._head("publish") not in (None, _NO_CRC32)
        yield _finding(Condition.COPIED_CHECKSUM, kept=none_kept or crc32 == upload.crc32)

    def _delete(self, condition: Condition, traits: StoreTraits) -> Finding:
        name = condition.name.lower()
        self._store.put(self._bucket, self._prefix + name, b"not to be deleted")
        source = self._written(name)
        store = self._store.with_traits(traits)
        words = _refusal(lambda: store.delete_sources([replace(source, etag=_NO_ETAG)]))
        if self._head(name) is None:
            return Finding(condition, Verdict.IGNORED)
        refused: list[str] = []

        def delete() -> None:
            refused.extend(one.reason for one in store.delete_sources([source]).refused)

        words = _refusal(delete) or words
        if self._head(name) is None:
            return Finding(condition, Verdict.HONOURED)
        return Finding(condition, Verdict.REFUSED, words or "; ".join(refused))

    def _upload(self, name: str, body: bytes) -> _Upload:
        key = self._prefix + name
        upload_id = self._store.create_upload(self._bucket, key)
        part = self._store.upload_part(self._bucket, key, upload_id, 1, body)
        return _Upload(key, upload_id, (part,), len(body), isal_zlib.crc32(body))

    def _complete(self, upload: _Upload, crc32: int | None) -> None:
        self._store.complete_upload(
            self._bucket, upload.key, upload.upload_id, upload.parts, crc32=crc32
        )

    def _head(self, name: str) -> int | None:
        """Return the CRC32 from HEAD, _NO_CRC32 if it has no CRC32, or None without an object."""
        head = self._store.head(self._bucket, self._prefix + name)
        if head is None:
            return None
        return _NO_CRC32 if head.crc32 is None else head.crc32

    def _written(self, name: str) -> SourceObject:
        key = self._prefix + name
        head = self._store.head(self._bucket, key)
        if head is None:
            raise IntegrityError(f"s3://{self._bucket}/{key} is gone, just written")
        return SourceObject(self._bucket, key, head.etag, head.size, head.last_modified)

    def _listed(self) -> list[SourceObject]:
        pages = self._store.list_objects(self._bucket, self._prefix)
        return [one for page in pages for one in page]

    def _remove(self) -> None:
        """Remove what was written, if allowed; one by one, which more stores and roles permit."""
        with suppress(CompactorError):
            for upload in list(self._store.list_uploads(self._bucket, self._prefix)):
                self._store.abort_upload(self._bucket, upload.key, upload.upload_id)
        with suppress(CompactorError):
            self._store.with_traits(StoreTraits(deletes_many=False)).delete_sources(self._listed())


def _finding(condition: Condition, *, kept: bool) -> Finding:
    return Finding(condition, Verdict.HONOURED if kept else Verdict.IGNORED)


def _refusal(act: Callable[[], object]) -> str:
    """Return the message of a store that rejects this kind of request; empty otherwise.

    A failed condition does not count: its effect is examined afterwards.
    """
    try:
        act()
    except InvalidInput as error:
        # Other fields concern the bucket, the credentials or the role.
        if error.field != "request":
            raise
        return str(error.value)
    except (AlreadyExists, IntegrityError, ObjectMissing, SourceChanged):
        return ""
    return ""
