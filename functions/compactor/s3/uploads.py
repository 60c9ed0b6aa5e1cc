"""Multipart uploads, by which outputs are written. Safety rests on their conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_plus

from isal import isal_zlib

from compactor.attributes import Attributes
from compactor.errors import (
    AlreadyExists,
    IntegrityError,
    ObjectMissing,
    SourceChanged,
)
from compactor.model import SourceObject, StoredPart
from compactor.pieces import Body, Pieces, pieces_of
from compactor.ports import OpenUpload
from compactor.s3.base import (
    S3Base,
    about_source,
    decoded_crc32,
    encoded_crc32,
    parameters_of,
)
from compactor.s3.bodies import SentBody, TimeIsUp, byte_range
from compactor.s3.translate import code_of


class S3Uploads(S3Base):
    """The upload part of :class:`compactor.ports.ObjectStore`."""

    def create_upload(
        self,
        bucket: str,
        key: str,
        *,
        content_type: str = "",
        metadata: Mapping[str, str] | None = None,
        attributes: Attributes | None = None,
    ) -> str:
        extra: dict[str, Any] = {"ContentType": content_type} if content_type else {}
        if metadata:
            extra["Metadata"] = dict(metadata)
        if attributes is not None:
            extra |= parameters_of(attributes)
        extra |= self.encryptions.of(bucket).parameters

        def request(_: TimeIsUp) -> str:
            answer = self.client.create_multipart_upload(
                Bucket=bucket,
                Key=key,
                ChecksumAlgorithm="CRC32",
                ChecksumType="FULL_OBJECT",
                **extra,
            )
            return answer["UploadId"]

        return self._answer("PUT", "create upload", bucket, key, request)

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: Body
    ) -> StoredPart:
        self.requests.add("bytes_written", len(body))
        crc32 = 0
        for piece in pieces_of(body):
            crc32 = isal_zlib.crc32(piece, crc32)
        checksum = encoded_crc32(crc32)

        def request(time_is_up: TimeIsUp) -> str:
            answer = self.client.upload_part(
                Bucket=bucket,
                Key=key,
                UploadId=upload_id,
                PartNumber=number,
                Body=SentBody(_together(body), time_is_up),
                ChecksumAlgorithm="CRC32",
                ChecksumCRC32=checksum,
            )
            return answer["ETag"].strip('"')

        etag = self._answer("PUT", "upload part", bucket, key, request)
        return StoredPart(number, etag, len(body), crc32)

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
        def request(_: TimeIsUp) -> Any:
            with about_source("copy part", source.bucket, source.key):
                answer = self.client.upload_part_copy(
                    Bucket=bucket,
                    Key=key,
                    UploadId=upload_id,
                    PartNumber=number,
                    CopySource={"Bucket": source.bucket, "Key": source.key},
                    CopySourceIfMatch=f'"{source.etag}"',
                    CopySourceRange=byte_range(start, length),
                )
            return answer["CopyPartResult"]

        try:
            made = self._answer("PUT", "copy part", source.bucket, source.key, request)
        except AlreadyExists:
            raise SourceChanged(source.key, source.etag, "another ETag") from None
        except ObjectMissing as error:
            if code_of(error) == "NoSuchUpload":
                raise
            raise SourceChanged(source.key, source.etag, "no object", gone=True) from None
        # S3 returns it if the upload was begun with a checksum algorithm.
        crc32 = decoded_crc32(made.get("ChecksumCRC32"))
        return StoredPart(number, made["ETag"].strip('"'), length, crc32)

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        parts: Sequence[StoredPart],
        *,
        crc32: int | None,
    ) -> None:
        checksum: dict[str, Any] = {}
        if crc32 is not None:
            checksum = {"ChecksumCRC32": encoded_crc32(crc32), "ChecksumType": "FULL_OBJECT"}
        # versitygw and MinIO refuse parts without the checksums that they have of them.
        listed = [_listed(part) for part in parts]

        def request(_: TimeIsUp) -> None:
            self.client.complete_multipart_upload(
                Bucket=bucket,
                Key=key,
                UploadId=upload_id,
                IfNoneMatch="*",
                MultipartUpload={"Parts": listed},
                **checksum,
            )

        self._answer("PUT", "complete upload", bucket, key, request)

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        def request(_: TimeIsUp) -> None:
            self.client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)

        try:
            self._answer("DELETE", "abort upload", bucket, key, request)
        except ObjectMissing:
            return

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        markers: tuple[str, str] | None = ("", "")
        seen: set[tuple[str, str]] = set()
        while markers is not None:
            if markers in seen:
                # The listing would never end.
                raise IntegrityError(f"the store does not list uploads in order: {markers}")
            seen.add(markers)
            page = self._uploads_page(bucket, prefix, *markers)
            # Not every server supports the encoding; the answer shows whether it was used.
            name = unquote_plus if page.get("EncodingType") == "url" else str
            for one in page.get("Uploads", ()):
                yield OpenUpload(name(one["Key"]), one["UploadId"], one["Initiated"].timestamp())
            markers = None
            if page.get("IsTruncated"):
                markers = (name(page["NextKeyMarker"]), page["NextUploadIdMarker"])

    def _uploads_page(self, bucket: str, prefix: str, key: str, upload_id: str) -> Any:
        more: Any = {"KeyMarker": key, "UploadIdMarker": upload_id} if key else {}

        def request(_: TimeIsUp) -> Any:
            # XML cannot contain the control characters that a key may have.
            return self.client.list_multipart_uploads(
                Bucket=bucket, Prefix=prefix, EncodingType="url", **more
            )

        return self._answer("LIST", "list uploads", bucket, prefix, request)


def _together(body: Body) -> bytes | memoryview:
    return bytes(body) if isinstance(body, Pieces) else body


def _listed(part: StoredPart) -> Any:
    """Return a part as CompleteMultipartUpload names it."""
    listed: dict[str, Any] = {"PartNumber": part.number, "ETag": f'"{part.etag}"'}
    if part.crc32 is not None:
        listed["ChecksumCRC32"] = encoded_crc32(part.crc32)
    return listed
