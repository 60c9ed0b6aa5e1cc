"""Patches for multipart uploads in moto's S3, for speed and strictness.

moto 5.2.5 spools every part and every object, copies an object five times to complete it, accepts
any checksum, and fails with 500 on an upload that does not exist. Here bytes are kept as received,
joined once, and rejected where S3 rejects them. Checksums other than CRC32 are computed and stored
as moto does, but not verified.
"""

from __future__ import annotations

import base64
import collections
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from flask import has_request_context, request
from isal import isal_zlib
from moto.s3 import models
from moto.s3.exceptions import (
    EntityTooSmall,
    InvalidPart,
    InvalidPartOrder,
    MalformedXML,
    MissingKey,
    NoSuchUpload,
    PreconditionFailed,
    S3ClientError,
)
from moto.s3.utils import compute_checksum

from compactor.s3.base import encoded_crc32
from compactor_local.patching import replace

MINIMUM_PART_BYTES = 5 * 1024 * 1024
_CRC32_HEADER = "x-amz-checksum-crc32"
_TYPE_HEADER = "x-amz-checksum-type"

# Checksum type, value and number of checksummed pieces, as moto stores them on an object.
_Checksum = tuple[str, str, int]


class _NoFiles:
    """Replaces ``tempfile`` in moto's models: content is kept in memory, without files."""

    class SpooledTemporaryFile:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def close(self) -> None:
            pass


class HeldKey(models.FakeKey):
    """An object or part that keeps the received bytes without a copy, and hashes them in place."""

    content: bytes | memoryview = b""

    @property
    def value(self) -> bytes:
        """The content; copied only if it is a range of another object."""
        return bytes(self.content)

    @value.setter
    def value(self, new: bytes | memoryview) -> None:
        self.content = new
        self.contentsize = len(new)

    @property
    def etag(self) -> str:
        """The ETag in quotes; hashed from the content if none was given."""
        if self._etag is None:
            self._etag = hashlib.md5(self.content, usedforsecurity=False).hexdigest()
        return f'"{self._etag}"'

    def dispose(self, *how: Any, **more: Any) -> None:
        """Release a part's content; an object's may still be in use by a reader."""
        super().dispose(*how, **more)
        if self.bucket_name is None:
            self.content = b""


class _BadDigest(S3ClientError):
    def __init__(self, what: str) -> None:
        super().__init__("BadDigest", f"The {what} you specified did not match what was received.")


_served = threading.local()


@contextmanager
def serving(headers: Mapping[str, str]) -> Iterator[None]:
    """Let this thread serve a request with these lower-case headers, without moto."""
    _served.headers = headers
    try:
        yield
    finally:
        _served.headers = None


def _header(name: str) -> str | None:
    """Return a header of the current request; moto passes only some of them to its store."""
    headers: Mapping[str, str] | None = getattr(_served, "headers", None)
    if headers is not None:
        return headers.get(name)
    return request.headers.get(name) if has_request_context() else None


def crc32(content: bytes | memoryview) -> str:
    """Return the CRC32 of some bytes in the form of S3's headers."""
    return encoded_crc32(isal_zlib.crc32(content))


def _digest(content: bytes, algorithm: str) -> bytes:
    if algorithm == "CRC32":
        return isal_zlib.crc32(content).to_bytes(4, "big")
    return compute_checksum(content, algorithm, encode_base64=False)


def _chosen_parts(upload: Any, wanted: Iterable[tuple[int, str]]) -> list[Any]:
    """Return the parts that an upload is completed with.

    Raises:
        InvalidPart: one was not uploaded, or has another ETag.
        InvalidPartOrder: their numbers are not ascending.
        EntityTooSmall: one that is not the last is smaller than 5 MiB.
        MalformedXML: there are none.
    """
    chosen: list[Any] = []
    last = 0
    for number, etag in wanted:
        if number <= last:
            raise InvalidPartOrder
        part = upload.parts.get(number)
        if part is None or part.etag.strip('"') != etag.strip('"'):
            raise InvalidPart
        chosen.append(part)
        last = number
    if not chosen:
        raise MalformedXML
    if any(part.contentsize < MINIMUM_PART_BYTES for part in chosen[:-1]):
        raise EntityTooSmall
    return chosen


def _checksum(upload: Any, pieces: Sequence[bytes | memoryview], whole: bytes) -> _Checksum | None:
    """Return the object's checksum of the type that the upload was created with; None for none."""
    algorithm = upload.metadata.get("x-amz-checksum-algorithm")
    if algorithm is None:
        return None
    usual = "FULL_OBJECT" if algorithm == "CRC64NVME" else "COMPOSITE"
    kind = upload.metadata.setdefault(_TYPE_HEADER, usual)
    if kind == "FULL_OBJECT":
        return kind, base64.b64encode(_digest(whole, algorithm)).decode(), 1
    of_pieces = b"".join(_digest(bytes(piece), algorithm) for piece in pieces)
    return kind, base64.b64encode(_digest(of_pieces, algorithm)).decode(), len(pieces)


def _verify_completion(checksum: _Checksum | None, whole: bytes) -> None:
    """Reject a checksum or checksum type that differs from the object's."""
    kind, promised = _header(_TYPE_HEADER), _header(_CRC32_HEADER)
    if kind and checksum and kind != checksum[0]:
        raise _BadDigest("checksum type")
    if promised is None:
        return
    composite = checksum is not None and checksum[0] == "COMPOSITE"
    true = checksum[1] if checksum and composite else crc32(whole)
    # The checksum of a composite ends in the number of its parts.
    if promised.partition("-")[0] != true:
        raise _BadDigest("CRC32")


def _complete(
    upload: Any, wanted: Iterable[tuple[int, str]]
) -> tuple[bytes, str, _Checksum | None]:
    """Return content, ETag and checksum of a completed object."""
    parts = _chosen_parts(upload, wanted)
    pieces = [part.content for part in parts]
    whole = b"".join(pieces)
    checksum = _checksum(upload, pieces, whole)
    _verify_completion(checksum, whole)
    digests = bytes.fromhex("".join(part.etag.strip('"') for part in parts))
    etag = hashlib.md5(digests, usedforsecurity=False).hexdigest()
    return whole, f"{etag}-{len(parts)}", checksum


def _upload_part(backend: Any, bucket: str, upload_id: str, number: int, body: bytes) -> Any:
    promised = _header(_CRC32_HEADER)
    if promised is not None and promised != crc32(body):
        raise _BadDigest("CRC32")
    return _upload(backend, bucket, upload_id).set_part(number, body)


def _upload_part_copy(
    backend: Any,
    dest_bucket_name: str,
    multipart_id: str,
    part_id: int,
    *,
    src_bucket_name: str,
    src_key_name: str,
    src_version_id: str | None,
    start_byte: int | None,
    end_byte: int | None,
) -> Any:
    upload = _upload(backend, dest_bucket_name, multipart_id)
    source = backend.get_object(src_bucket_name, src_key_name, version_id=src_version_id)
    if source is None:
        raise MissingKey(key=src_key_name)
    etag = _header("x-amz-copy-source-if-match")
    if etag is not None and etag.strip('"') != source.etag.strip('"'):
        raise PreconditionFailed("x-amz-copy-source-If-Match")
    content = memoryview(source.content)
    if start_byte is not None and end_byte is not None:
        if not start_byte <= end_byte < len(content):
            message = f"Range specified is not valid for source object of size: {len(content)}"
            raise S3ClientError("InvalidArgument", message)
        content = content[start_byte : end_byte + 1]
    return upload.set_part(part_id, content)


def _upload(backend: Any, bucket: str, upload_id: str) -> Any:
    """Return an upload in progress; if there is none, fails with 404 as S3, where moto has 500."""
    upload = backend.get_bucket(bucket).multiparts.get(upload_id)
    if upload is None:
        raise NoSuchUpload(upload_id=upload_id)
    return upload


def _end_alone(before: Callable[..., Any], ending: threading.Lock) -> Callable[..., Any]:
    """Complete or abort one upload at a time, so that none ends twice."""

    def end(backend: Any, bucket_name: str, multipart_id: str, *body: Any) -> Any:
        with ending:
            _upload(backend, bucket_name, multipart_id)
            return before(backend, bucket_name, multipart_id, *body)

    return end


def install() -> None:
    """Apply the patches to this process's moto, before it holds anything."""
    # moto keeps every object it ever created in a list, which would keep all bytes in memory.
    for model in (HeldKey, models.FakeMultipart):
        replace(model, "instances_tracked", collections.deque(maxlen=0))
    replace(models, "FakeKey", HeldKey)
    replace(models, "tempfile", _NoFiles)
    # Never modified, although each object has its own.
    replace(models, "get_canned_acl", lru_cache(models.get_canned_acl))
    replace(models.FakeMultipart, "complete", _complete)
    replace(models.S3Backend, "upload_part", _upload_part)
    replace(models.S3Backend, "upload_part_copy", _upload_part_copy)
    ending = threading.Lock()
    for name in ("complete_multipart_upload", "abort_multipart_upload"):
        before = getattr(models.S3Backend, name)
        replace(models.S3Backend, name, _end_alone(before, ending))
