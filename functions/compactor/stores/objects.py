"""Reads and writes of single objects other than sources: state, receipts, outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compactor.errors import ObjectMissing
from compactor.ports import ObjectHead
from compactor.stores.base import S3Base, decoded_crc32
from compactor.stores.translate import translated

_PIECE_BYTES = 1024 * 1024


class S3Objects(S3Base):
    """The single-object part of :class:`compactor.ports.ObjectStore`."""

    def get(self, bucket: str, key: str) -> bytes:
        """See the port."""
        return self._get(bucket, key)

    def get_range(self, bucket: str, key: str, start: int, length: int) -> bytes:
        """See the port."""
        return self._get(bucket, key, Range=f"bytes={start}-{start + length - 1}")

    def open(self, bucket: str, key: str) -> Iterator[bytes]:
        """See the port."""
        self.requests.add("GET")
        with translated("get", bucket, key):
            body = self._client.get_object(Bucket=bucket, Key=key)["Body"]
        return self._pieces(body, bucket, key)

    def _pieces(self, body: Any, bucket: str, key: str) -> Iterator[bytes]:
        with translated("get", bucket, key):
            for piece in body.iter_chunks(_PIECE_BYTES):
                self.requests.add("bytes_read", len(piece))
                yield piece

    def head(self, bucket: str, key: str) -> ObjectHead | None:
        """See the port."""
        self.requests.add("HEAD")
        try:
            with translated("head", bucket, key):
                answer = self._client.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        except ObjectMissing:
            return None
        whole = answer.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT"
        return ObjectHead(
            size=answer["ContentLength"],
            etag=answer["ETag"].strip('"'),
            crc32=decoded_crc32(answer.get("ChecksumCRC32")) if whole else None,
            last_modified=answer["LastModified"].timestamp(),
            storage_class=answer.get("StorageClass", "STANDARD"),
        )

    def put(self, bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        """See the port."""
        self._put(bucket, key, body, content_type, {})

    def create(self, bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        """See the port."""
        self._put(bucket, key, body, content_type, {"IfNoneMatch": "*"})

    def _put(
        self, bucket: str, key: str, body: bytes, content_type: str, condition: dict[str, Any]
    ) -> None:
        self.requests.add("PUT")
        self.requests.add("bytes_written", len(body))
        if content_type:
            condition["ContentType"] = content_type
        with translated("put", bucket, key):
            self._client.put_object(Bucket=bucket, Key=key, Body=body, **condition)

    def _get(self, bucket: str, key: str, **arguments: Any) -> bytes:
        self.requests.add("GET")
        with translated("get", bucket, key):
            answer = self._client.get_object(Bucket=bucket, Key=key, **arguments)
            body = answer["Body"].read()
        self.requests.add("bytes_read", len(body))
        return body
