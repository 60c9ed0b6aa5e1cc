"""Multipart uploads on the embedded S3: what S3 refuses, it refuses."""

from __future__ import annotations

import base64
import hashlib
import os
import resource
import socket
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing, SourceChanged
from compactor.model import SourceObject
from compactor.s3.store import S3Store, make_client
from compactor_local.embedded import EmbeddedS3

MIB = 1024 * 1024
BUCKET = "uploads"
FIRST, LAST = os.urandom(5 * MIB), b"the last part may be small"
WHOLE = FIRST + LAST
FULL: dict[str, Any] = {"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"}
_names = count()


def encoded_crc32(content: bytes) -> str:
    return base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()


def md5(content: bytes) -> Any:
    return hashlib.md5(content, usedforsecurity=False)


@pytest.fixture(scope="module", autouse=True)
def _bucket(s3: EmbeddedS3) -> None:
    s3.create_bucket(BUCKET)


@pytest.fixture(scope="module")
def client(s3: EmbeddedS3) -> Any:
    # Without retries: each refusal below is S3's first answer.
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=16)
    return boto3.client("s3", endpoint_url=s3.endpoint_url, config=config)


@pytest.fixture(scope="module")
def store(s3: EmbeddedS3) -> S3Store:
    return S3Store(make_client(s3.endpoint_url, connections=8), threads=2)


@pytest.fixture
def key() -> str:
    return f"key-{next(_names)}"


class Upload:
    """An upload through boto3."""

    def __init__(
        self, client: Any, key: str, bodies: Sequence[bytes] = (), **checksum: Any
    ) -> None:
        self._client = client
        created = client.create_multipart_upload(Bucket=BUCKET, Key=key, **checksum)
        self.where = {"Bucket": BUCKET, "Key": key, "UploadId": created["UploadId"]}
        self.etags = [self.part(number, body) for number, body in enumerate(bodies, 1)]

    def part(self, number: int, body: bytes, **more: Any) -> str:
        answer = self._client.upload_part(**self.where, PartNumber=number, Body=body, **more)
        return str(answer["ETag"])

    def complete(self, *, numbers: Sequence[int] = (), **more: Any) -> Any:
        numbers = numbers or range(1, len(self.etags) + 1)
        parts = [{"PartNumber": n, "ETag": self.etags[n - 1]} for n in numbers]
        return self._client.complete_multipart_upload(
            **self.where, MultipartUpload={"Parts": parts}, **more
        )

    def listed(self) -> list[int]:
        """Numbers of the parts held; fails when the upload is gone."""
        answer = self._client.list_parts(**self.where)
        return [part["PartNumber"] for part in answer.get("Parts", ())]


def refusal(attempt: Any) -> tuple[str, int]:
    """Code and HTTP status of the answer to a request that must be refused."""
    with pytest.raises(ClientError) as caught:
        attempt()
    answer = caught.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def exists(client: Any, key: str) -> bool:
    return bool(client.list_objects_v2(Bucket=BUCKET, Prefix=key)["KeyCount"])


def test_a_completed_object_is_its_parts_and_has_the_etag_of_their_etags(
    client: Any, key: str
) -> None:
    upload = Upload(client, key, [FIRST, LAST], **FULL)
    upload.complete(ChecksumCRC32=encoded_crc32(WHOLE), ChecksumType="FULL_OBJECT")

    digests = b"".join(md5(body).digest() for body in (FIRST, LAST))
    got = client.get_object(Bucket=BUCKET, Key=key)
    assert got["Body"].read() == WHOLE
    assert got["ETag"] == f'"{md5(digests).hexdigest()}-2"'
    ranged = client.get_object(Bucket=BUCKET, Key=key, Range=f"bytes={5 * MIB - 1}-{5 * MIB + 2}")
    assert ranged["Body"].read() == WHOLE[5 * MIB - 1 : 5 * MIB + 3]


def test_only_the_parts_named_on_completion_make_the_object(client: Any, key: str) -> None:
    upload = Upload(client, key, [b"left out", b"kept"])
    upload.complete(numbers=[2])

    assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"kept"


def test_a_part_uploaded_twice_is_the_later_one(client: Any, key: str) -> None:
    upload = Upload(client, key, [b"earlier"])
    earlier, upload.etags[0] = upload.etags[0], upload.part(1, b"later")
    upload.complete()

    assert earlier != upload.etags[0]
    assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"later"


def test_a_small_part_that_is_not_the_last_is_refused_and_the_upload_stays(
    client: Any, key: str
) -> None:
    upload = Upload(client, key, [FIRST[:-1], LAST])

    assert refusal(upload.complete) == ("EntityTooSmall", 400)
    assert upload.listed() == [1, 2]
    assert not exists(client, key)


def test_a_wrong_checksum_of_the_object_is_refused_and_the_upload_stays(
    client: Any, key: str
) -> None:
    upload = Upload(client, key, [FIRST, LAST], **FULL)
    wrong: dict[str, Any] = {
        "ChecksumCRC32": encoded_crc32(b"other"),
        "ChecksumType": "FULL_OBJECT",
    }

    assert refusal(lambda: upload.complete(**wrong)) == ("BadDigest", 400)
    assert upload.listed() == [1, 2]
    assert not exists(client, key)
    upload.complete(ChecksumCRC32=encoded_crc32(WHOLE), ChecksumType="FULL_OBJECT")
    assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == WHOLE


def test_a_checksum_is_verified_even_when_none_was_announced(client: Any, key: str) -> None:
    upload = Upload(client, key, [b"content"])

    assert refusal(lambda: upload.complete(ChecksumCRC32=encoded_crc32(b""))) == ("BadDigest", 400)


def test_another_type_of_checksum_than_announced_is_refused(client: Any, key: str) -> None:
    upload = Upload(client, key, [b"content"], ChecksumAlgorithm="CRC32")
    more: dict[str, Any] = {
        "ChecksumCRC32": encoded_crc32(b"content"),
        "ChecksumType": "FULL_OBJECT",
    }

    assert refusal(lambda: upload.complete(**more)) == ("BadDigest", 400)


def test_a_head_answers_the_checksum_of_the_whole_object(client: Any, key: str) -> None:
    Upload(client, key, [FIRST, LAST], **FULL).complete()

    head = client.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")
    assert head["ChecksumCRC32"] == encoded_crc32(WHOLE)
    assert head["ChecksumType"] == "FULL_OBJECT"
    assert "ChecksumCRC32" not in client.head_object(Bucket=BUCKET, Key=key)


def test_a_checksum_of_checksums_is_not_taken_for_one_of_the_object(
    client: Any, store: S3Store, key: str
) -> None:
    upload = Upload(client, key, [FIRST, LAST], ChecksumAlgorithm="CRC32")
    of_parts = b"".join(zlib.crc32(body).to_bytes(4, "big") for body in (FIRST, LAST))
    upload.complete(ChecksumCRC32=f"{encoded_crc32(of_parts)}-2")

    head = client.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")
    assert (head["ChecksumCRC32"], head["ChecksumType"]) == (encoded_crc32(of_parts), "COMPOSITE")
    found = store.head(BUCKET, key)
    assert found is not None
    assert found.crc32 is None


def test_a_part_with_a_wrong_checksum_is_refused_and_not_kept(client: Any, key: str) -> None:
    upload = Upload(client, key, **FULL)

    wrong = encoded_crc32(b"meant")
    assert refusal(lambda: upload.part(1, b"sent", ChecksumCRC32=wrong)) == ("BadDigest", 400)
    assert upload.listed() == []
    upload.part(1, b"sent", ChecksumCRC32=encoded_crc32(b"sent"))
    assert upload.listed() == [1]


def test_parts_in_another_order_or_with_another_etag_are_refused(client: Any, key: str) -> None:
    upload = Upload(client, key, [FIRST, LAST])

    assert refusal(lambda: upload.complete(numbers=[2, 1])) == ("InvalidPartOrder", 400)
    upload.etags[1] = f'"{md5(b"other").hexdigest()}"'
    assert refusal(upload.complete) == ("InvalidPart", 400)
    assert upload.listed() == [1, 2]


def test_a_part_is_copied_from_the_one_version_of_its_source(client: Any, key: str) -> None:
    etag = client.put_object(Bucket=BUCKET, Key=f"{key}-source", Body=b"0123456789")["ETag"]
    upload = Upload(client, key)
    copy = {
        **upload.where,
        "PartNumber": 1,
        "CopySource": {"Bucket": BUCKET, "Key": f"{key}-source"},
        "CopySourceRange": "bytes=2-5",
    }

    def refused(**more: Any) -> tuple[str, int]:
        return refusal(lambda: client.upload_part_copy(**{**copy, **more}))

    assert refused(CopySourceIfMatch='"0"') == ("PreconditionFailed", 412)
    assert refused(CopySourceRange="bytes=2-10") == ("InvalidArgument", 400)
    assert upload.listed() == []
    answer = client.upload_part_copy(**copy, CopySourceIfMatch=etag)
    upload.etags = [answer["CopyPartResult"]["ETag"]]
    # The part is what the source was, whatever becomes of the source.
    client.put_object(Bucket=BUCKET, Key=f"{key}-source", Body=b"overwritten")
    upload.complete()
    assert upload.etags == [f'"{md5(b"2345").hexdigest()}"']
    assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"2345"


def test_nothing_can_be_done_with_an_upload_that_is_gone(client: Any, key: str) -> None:
    client.put_object(Bucket=BUCKET, Key=f"{key}-source", Body=b"source")
    upload = Upload(client, key, [b"content"])
    client.abort_multipart_upload(**upload.where)
    source = {"Bucket": BUCKET, "Key": f"{key}-source"}
    attempts = [
        upload.complete,
        lambda: upload.part(2, b"more"),
        lambda: client.upload_part_copy(**upload.where, PartNumber=2, CopySource=source),
        lambda: client.abort_multipart_upload(**upload.where),
    ]

    assert [refusal(attempt) for attempt in attempts] == [("NoSuchUpload", 404)] * len(attempts)


def test_of_many_uploads_to_one_absent_key_exactly_one_is_completed(client: Any) -> None:
    uploads = [Upload(client, f"contested-{n // 8}", [b"%d" % n]) for n in range(64)]

    def complete(upload: Upload) -> str:
        try:
            upload.complete(IfNoneMatch="*")
        except ClientError as error:
            assert upload.listed() == [1]
            return str(error.response["Error"]["Code"])
        return "completed"

    with ThreadPoolExecutor(8) as threads:
        outcomes = Counter(threads.map(complete, uploads))
    assert outcomes == {"completed": 8, "PreconditionFailed": 56}


def test_an_upload_ends_once_however_many_end_it(client: Any, key: str) -> None:
    def end(attempt: Any) -> str:
        try:
            attempt()
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return "ended"

    with ThreadPoolExecutor(4) as threads:
        for _ in range(6):
            upload = Upload(client, key, [FIRST] * 6)
            abort = partial(client.abort_multipart_upload, **upload.where)
            outcomes = Counter(threads.map(end, [upload.complete, abort, abort]))
            assert outcomes == {"ended": 1, "NoSuchUpload": 2}


def test_a_body_that_ends_early_is_not_kept(s3: EmbeddedS3, client: Any, key: str) -> None:
    server = urlsplit(s3.endpoint_url)
    head = f"PUT /{BUCKET}/{key} HTTP/1.1\r\nHost: {server.netloc}\r\nContent-Length: 10\r\n\r\n"
    with socket.create_connection((server.hostname, server.port)) as connection:
        connection.sendall(head.encode() + b"01234")
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)

    assert not answer.startswith(b"HTTP/1.1 2")
    assert not exists(client, key)


def test_what_is_deleted_or_aborted_takes_no_memory(s3: EmbeddedS3, client: Any, key: str) -> None:
    statistics = Path("/proc", str(s3._server.pid), "statm")
    if not statistics.exists():
        pytest.skip("only Linux tells how much memory another process takes")

    def resident() -> int:
        return int(statistics.read_text().split()[1]) * resource.getpagesize()

    def come_and_go(times: int) -> None:
        for _ in range(times):
            aborted = Upload(client, key, [FIRST])
            client.abort_multipart_upload(**aborted.where)
            Upload(client, key, [FIRST]).complete()
            client.delete_object(Bucket=BUCKET, Key=key)

    come_and_go(4)
    before = resident()
    come_and_go(20)
    # 200 MiB came and went; the allocator may keep some.
    assert resident() - before < 60 * MIB


def test_the_store_completes_an_upload_and_finds_its_checksum(store: S3Store, key: str) -> None:
    upload_id = store.create_upload(BUCKET, key)
    numbered = enumerate((FIRST, LAST), 1)
    parts = [store.upload_part(BUCKET, key, upload_id, n, body) for n, body in numbered]

    with pytest.raises(IntegrityError, match="BadDigest"):
        store.complete_upload(BUCKET, key, upload_id, parts, crc32=zlib.crc32(FIRST))
    assert store.head(BUCKET, key) is None
    store.complete_upload(BUCKET, key, upload_id, parts, crc32=zlib.crc32(WHOLE))
    found = store.head(BUCKET, key)
    assert found is not None
    assert (found.size, found.crc32) == (len(WHOLE), zlib.crc32(WHOLE))
    assert store.get(BUCKET, key) == WHOLE


def test_the_answer_says_that_the_key_is_taken_or_the_upload_gone(store: S3Store, key: str) -> None:
    store.put(BUCKET, key, b"there before")
    upload_id = store.create_upload(BUCKET, key)
    parts = [store.upload_part(BUCKET, key, upload_id, 1, LAST)]

    with pytest.raises(AlreadyExists):
        store.complete_upload(BUCKET, key, upload_id, parts, crc32=zlib.crc32(LAST))
    store.abort_upload(BUCKET, key, upload_id)
    with pytest.raises(ObjectMissing):
        store.upload_part(BUCKET, key, upload_id, 2, LAST)
    assert store.get(BUCKET, key) == b"there before"


def test_the_store_copies_parts_only_of_the_source_it_listed(store: S3Store, key: str) -> None:
    store.put(BUCKET, f"{key}-source", b"0123456789")
    head = store.head(BUCKET, f"{key}-source")
    assert head is not None
    listed = SourceObject(BUCKET, f"{key}-source", head.etag, head.size, head.last_modified)
    upload_id = store.create_upload(BUCKET, key)
    part = store.copy_part(BUCKET, key, upload_id, 1, listed, 2, 4)

    store.put(BUCKET, f"{key}-source", b"overwritten")
    with pytest.raises(SourceChanged):
        store.copy_part(BUCKET, key, upload_id, 2, listed, 0, 4)
    store.complete_upload(BUCKET, key, upload_id, [part], crc32=zlib.crc32(b"2345"))
    assert store.get(BUCKET, key) == b"2345"
