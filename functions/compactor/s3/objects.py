"""Reads and writes single objects other than sources: state, receipts, outputs."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from isal import isal_zlib

from compactor.attributes import Attributes
from compactor.errors import AlreadyExists, ObjectMissing, TransientStoreError
from compactor.ports import ObjectHead
from compactor.s3.base import S3Base, decoded_crc32, encoded_crc32, parameters_of
from compactor.s3.bodies import (
    Begun,
    SentBody,
    TimeIsUp,
    begun,
    byte_range,
    read_body,
    require_range,
    resumed,
)


class S3Objects(S3Base):
    """The single-object part of :class:`compactor.ports.ObjectStore`."""

    def get(self, bucket: str, key: str) -> bytes:
        def request(time_is_up: TimeIsUp) -> bytes:
            return read_body(self.client.get_object(Bucket=bucket, Key=key), time_is_up)

        return self._counted(self._answer("GET", "get", bucket, key, request))

    def get_range(self, bucket: str, key: str, start: int, length: int) -> bytes:
        wanted: Any = {"Range": byte_range(start, length)}

        def request(time_is_up: TimeIsUp) -> bytes:
            answer = self.client.get_object(Bucket=bucket, Key=key, **wanted)
            body = read_body(answer, time_is_up)
            require_range(answer, body, start, length)
            return body

        return self._counted(self._answer("GET", "get", bucket, key, request))

    def open(self, bucket: str, key: str) -> Iterator[bytes]:
        begin = partial(self._begin, bucket, key)
        return map(self._counted, resumed(begin(0, ""), begin))

    def _begin(self, bucket: str, key: str, start: int, etag: str) -> Begun:
        # A resumed read must continue the same version of the object.
        rest: Any = {"Range": f"bytes={start}-", "IfMatch": etag} if start else {}

        def request(_: TimeIsUp) -> Begun:
            return begun(self.client.get_object(Bucket=bucket, Key=key, **rest), start)

        try:
            return self._answer("GET", "get", bucket, key, request)
        except AlreadyExists as error:
            raise TransientStoreError(f"replaced while it was read: {error}") from error

    def _counted(self, body: bytes) -> bytes:
        self.requests.add("bytes_read", len(body))
        return body

    def head(self, bucket: str, key: str) -> ObjectHead | None:
        def request(_: TimeIsUp) -> Any:
            return self.client.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")

        try:
            answer = self._answer("HEAD", "head", bucket, key, request)
        except ObjectMissing:
            return None
        # Not every server returns the type. A suffix such as "-2" also marks a composite checksum.
        checksum = answer.get("ChecksumCRC32")
        whole = answer.get("ChecksumType") != "COMPOSITE" and "-" not in (checksum or "")
        return ObjectHead(
            size=answer["ContentLength"],
            etag=answer["ETag"].strip('"'),
            crc32=decoded_crc32(checksum) if whole else None,
            last_modified=answer["LastModified"].timestamp(),
            storage_class=answer.get("StorageClass", "STANDARD"),
            answered_at=_date_of(answer),
            metadata={name.lower(): text for name, text in answer.get("Metadata", {}).items()},
        )

    def put(self, bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        self._put(bucket, key, body, _typed(content_type))

    def create(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        content_type: str = "",
        attributes: Attributes | None = None,
    ) -> None:
        condition = {"IfNoneMatch": "*"} | _typed(content_type)
        self._put(bucket, key, body, condition, attributes)

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
        condition = {"IfMatch": f'"{etag}"'} | _typed(content_type)
        self._put(bucket, key, body, condition, attributes)

    def _put(
        self,
        bucket: str,
        key: str,
        body: bytes,
        condition: dict[str, Any],
        attributes: Attributes | None = None,
    ) -> None:
        self.requests.add("bytes_written", len(body))
        # Buckets with Object Lock and a default retention refuse objects without both headers.
        condition["ChecksumAlgorithm"] = "CRC32"
        condition["ChecksumCRC32"] = encoded_crc32(isal_zlib.crc32(body))
        condition |= self.encryptions.of(bucket).parameters
        if attributes is not None:
            condition |= parameters_of(attributes)

        def request(time_is_up: TimeIsUp) -> None:
            sent = SentBody(body, time_is_up)
            self.client.put_object(Bucket=bucket, Key=key, Body=sent, **condition)

        self._answer("PUT", "put", bucket, key, request)


def _typed(content_type: str) -> dict[str, Any]:
    return {"ContentType": content_type} if content_type else {}


def _date_of(answer: Any) -> float | None:
    """Return the Date header in epoch seconds; None if it is absent or invalid."""
    text = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except ValueError:
        return None
