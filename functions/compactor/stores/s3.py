"""An S3-compatible store through boto3."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from compactor.errors import (
    AlreadyExists,
    ObjectMissing,
    SourceChanged,
    UnreadableSource,
)
from compactor.model import QuarantineReason, SourceObject, StoredPart
from compactor.ports import KeyPage, ObjectHead, SourceBody
from compactor.stores.readahead import read_ahead
from compactor.stores.requests import RequestCounter
from compactor.stores.translate import translated

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

MIB = 1024 * 1024
# Larger sources are streamed in ranges of this size, not held whole.
WHOLE_SOURCE_BYTES = 8 * MIB
RANGE_BYTES = 8 * MIB
_PIECE_BYTES = MIB
DELETE_PER_REQUEST = 1_000


def make_client(endpoint_url: str | None = None, *, connections: int = 64) -> S3Client:
    """A client with retries inside botocore (standard mode, jittered, 5 attempts)."""
    config = Config(
        max_pool_connections=connections,
        retries={"mode": "standard", "max_attempts": 5},
        connect_timeout=5,
        read_timeout=60,
        # Our own CRC32 travels with every part; botocore need not compute another.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    client: S3Client = boto3.client("s3", endpoint_url=endpoint_url, config=config)
    return client


def encoded_crc32(value: int) -> str:
    """CRC32 as S3 writes it: base64 of four bytes, big end first."""
    return base64.b64encode(value.to_bytes(4, "big")).decode()


def _decoded(text: str | None) -> int | None:
    return None if text is None else int.from_bytes(base64.b64decode(text), "big")


@contextmanager
def _readable_tier(key: str) -> Iterator[None]:
    """Listings do not tell that INTELLIGENT_TIERING has put an object into an archive tier."""
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "InvalidObjectState":
            raise
        detail = f"{key} must be restored from its archive tier before it can be read"
        raise UnreadableSource(QuarantineReason.ARCHIVED, detail) from error


def _listed(bucket: str, entry: Any) -> SourceObject:
    return SourceObject(
        bucket=bucket,
        key=entry["Key"],
        etag=entry["ETag"].strip('"'),
        size=entry["Size"],
        last_modified=entry["LastModified"].timestamp(),
        storage_class=entry.get("StorageClass", "STANDARD"),
    )


class S3Store:
    """Implements :class:`compactor.ports.ObjectStore`.

    Args:
        client: boto3 S3 client.
        threads: sources read at the same time.
        budget_bytes: bytes of sources fetched or waiting at the same time.
    """

    def __init__(
        self, client: S3Client, *, threads: int = 64, budget_bytes: int = 64 * MIB
    ) -> None:
        self._client = client
        self._threads = threads
        self._budget_bytes = budget_bytes
        self.requests = RequestCounter()

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """See the port."""
        arguments: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
        if start_after:
            arguments["StartAfter"] = start_after
        for page in self._pages(arguments):
            yield [_listed(bucket, entry) for entry in page.get("Contents", ())]

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        """See the port."""
        for page in self._pages({"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}):
            yield KeyPage(
                tuple(_listed(bucket, entry) for entry in page.get("Contents", ())),
                tuple(entry["Prefix"] for entry in page.get("CommonPrefixes", ())),
            )

    def _pages(self, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
        token: dict[str, Any] = {}
        while True:
            self.requests.add("LIST")
            with translated("list", arguments["Bucket"], arguments["Prefix"]):
                page: Any = self._client.list_objects_v2(**arguments, **token)
            yield page
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        """See the port."""
        return read_ahead(
            sources, self._fetch, threads=self._threads, budget_bytes=self._budget_bytes
        )

    def _fetch(self, source: SourceObject) -> SourceBody:
        if not source.size:
            return SourceBody(source, content=b"")
        if source.size > WHOLE_SOURCE_BYTES:
            return SourceBody(source, chunks=lambda: self._ranges(source))
        try:
            return SourceBody(source, content=self._read(source, 0, source.size))
        except (SourceChanged, UnreadableSource) as error:
            return SourceBody(source, error=error)

    def _ranges(self, source: SourceObject) -> Iterator[bytes]:
        for start in range(0, source.size, RANGE_BYTES):
            yield self._read(source, start, min(RANGE_BYTES, source.size - start))

    def _read(self, source: SourceObject, start: int, length: int) -> bytes:
        arguments: dict[str, Any] = {"IfMatch": f'"{source.etag}"'}
        if length != source.size:
            arguments["Range"] = f"bytes={start}-{start + length - 1}"
        try:
            body = self._get(source.bucket, source.key, **arguments)
        except AlreadyExists:
            raise SourceChanged(source.key, source.etag, "another ETag") from None
        except ObjectMissing:
            raise SourceChanged(source.key, source.etag, "no object") from None
        if len(body) != length:
            raise SourceChanged(source.key, source.etag, f"{len(body)} bytes, not {length}")
        return body

    def _get(self, bucket: str, key: str, **arguments: Any) -> bytes:
        self.requests.add("GET")
        with translated("get", bucket, key), _readable_tier(key):
            answer = self._client.get_object(Bucket=bucket, Key=key, **arguments)
            body = answer["Body"].read()
        self.requests.add("bytes_read", len(body))
        return body

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
            crc32=_decoded(answer.get("ChecksumCRC32")) if whole else None,
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

    def create_upload(self, bucket: str, key: str, *, content_type: str = "") -> str:
        """See the port."""
        self.requests.add("PUT")
        extra: dict[str, Any] = {"ContentType": content_type} if content_type else {}
        with translated("create upload", bucket, key):
            answer = self._client.create_multipart_upload(
                Bucket=bucket,
                Key=key,
                ChecksumAlgorithm="CRC32",
                ChecksumType="FULL_OBJECT",
                **extra,
            )
        return answer["UploadId"]

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> StoredPart:
        """See the port."""
        self.requests.add("PUT")
        self.requests.add("bytes_written", len(body))
        with translated("upload part", bucket, key):
            answer = self._client.upload_part(
                Bucket=bucket,
                Key=key,
                UploadId=upload_id,
                PartNumber=number,
                Body=bytes(body),
                ChecksumCRC32=encoded_crc32(zlib.crc32(body)),
            )
        return StoredPart(number, answer["ETag"].strip('"'), len(body))

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
        """See the port."""
        self.requests.add("PUT")
        try:
            with translated("copy part", source.bucket, source.key), _readable_tier(source.key):
                answer = self._client.upload_part_copy(
                    Bucket=bucket,
                    Key=key,
                    UploadId=upload_id,
                    PartNumber=number,
                    CopySource={"Bucket": source.bucket, "Key": source.key},
                    CopySourceIfMatch=f'"{source.etag}"',
                    CopySourceRange=f"bytes={start}-{start + length - 1}",
                )
        except AlreadyExists:
            raise SourceChanged(source.key, source.etag, "another ETag") from None
        except ObjectMissing:
            raise SourceChanged(source.key, source.etag, "no object") from None
        return StoredPart(number, answer["CopyPartResult"]["ETag"].strip('"'), length)

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        parts: Sequence[StoredPart],
        *,
        crc32: int | None,
    ) -> None:
        """See the port."""
        self.requests.add("PUT")
        checksum: dict[str, Any] = {}
        if crc32 is not None:
            checksum = {"ChecksumCRC32": encoded_crc32(crc32), "ChecksumType": "FULL_OBJECT"}
        with translated("complete upload", bucket, key):
            self._client.complete_multipart_upload(
                Bucket=bucket,
                Key=key,
                UploadId=upload_id,
                IfNoneMatch="*",
                MultipartUpload={
                    "Parts": [{"PartNumber": p.number, "ETag": f'"{p.etag}"'} for p in parts]
                },
                **checksum,
            )

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        """See the port."""
        self.requests.add("DELETE")
        try:
            with translated("abort upload", bucket, key):
                self._client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)
        except ObjectMissing:
            return

    def delete_sources(self, sources: Sequence[SourceObject]) -> Sequence[tuple[str, str]]:
        """See the port."""
        refused: list[tuple[str, str]] = []
        for start in range(0, len(sources), DELETE_PER_REQUEST):
            refused += self._delete(sources[start : start + DELETE_PER_REQUEST])
        return refused

    def _delete(self, sources: Sequence[SourceObject]) -> list[tuple[str, str]]:
        self.requests.add("DELETE")
        bucket = sources[0].bucket
        objects: Any = [{"Key": s.key, "ETag": f'"{s.etag}"'} for s in sources]
        with translated("delete", bucket, sources[0].key):
            answer = self._client.delete_objects(
                Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
            )
        return [
            (error.get("Key", ""), f"{error.get('Code', '')}: {error.get('Message', '')}")
            for error in answer.get("Errors", ())
            if error.get("Code") != "NoSuchKey"
        ]
