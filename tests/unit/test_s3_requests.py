"""What the S3 store asks for, to the letter.

The conditions in these requests are the safety argument; servers for tests ignore some of
them, so that only the requests themselves can prove them.
"""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path

import pytest

from compactor.model import SourceObject, StoredPart
from compactor.ports import Deletion
from compactor.s3.store import S3Store
from tests.support.s3_requests import (
    ETAG,
    MIB,
    SOURCE,
    complete,
    deletes,
    only,
    sends_ranges_of,
    sources,
    store_on,
)
from tests.support.scripted_s3 import Answer, ScriptedS3

UPLOADED = Answer(headers={"ETag": '"part-etag"'})


def crc32_text(content: bytes) -> str:
    return base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()


def test_every_get_of_a_source_is_pinned_to_its_etag(s3: ScriptedS3, reader: S3Store) -> None:
    s3.answer = sends_ranges_of(b"hello")
    assert only(reader.read_sources([SOURCE])).content == b"hello"
    (asked,) = s3.asked
    assert (asked.method, asked.path) == ("GET", "/bucket/logs/a.json")
    assert asked.headers["if-match"] == f'"{ETAG}"'
    assert "range" not in asked.headers


def test_sources_are_read_where_the_client_is_whatever_the_environment_says(
    s3: ScriptedS3, reader: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    s3.answer = sends_ranges_of(b"hello")
    assert only(reader.read_sources([SOURCE])).content == b"hello"


def test_every_range_of_a_large_source_is_pinned_to_its_etag(
    s3: ScriptedS3, reader: S3Store
) -> None:
    content = bytes(range(256)) * (17 * MIB // 256) + b"the end"
    s3.answer = sends_ranges_of(content)
    body = only(reader.read_sources([SourceObject("bucket", "k", ETAG, len(content), 0.0)]))
    assert body.chunks is not None
    assert [one.method for one in s3.asked] == ["HEAD"], "it is read when its turn comes"
    assert b"".join(body.chunks()) == content
    assert len(s3.asked) == 4
    assert {asked.headers["if-match"] for asked in s3.asked} == {f'"{ETAG}"'}
    assert all("range" in asked.headers for asked in s3.asked[1:])


def test_a_key_that_libcurl_would_change_is_read_as_it_is(s3: ScriptedS3) -> None:
    store = store_on(s3.url, libcurl=True)
    s3.answer = sends_ranges_of(b"hello")
    for key, path in (("a//b", "a//b"), ("a/../b", "a/../b"), ("é%/+", "%C3%A9%25/%2B")):
        assert only(store.read_sources([SourceObject("b", key, ETAG, 5, 0.0)])).error is None
        assert s3.last.path == f"/b/{path}"
        assert s3.last.headers["if-match"] == f'"{ETAG}"'


def test_create_asks_for_absence_and_put_does_not(s3: ScriptedS3, store: S3Store) -> None:
    store.create("bucket", "k", b"body", content_type="application/json")
    assert s3.last.method == "PUT"
    assert s3.last.headers["if-none-match"] == "*"
    assert s3.last.headers["content-type"] == "application/json"
    assert s3.last.body == b"body"
    store.put("bucket", "k", b"body")
    assert "if-none-match" not in s3.last.headers


def test_every_object_that_is_put_travels_with_its_crc32(s3: ScriptedS3, store: S3Store) -> None:
    # S3 wants it of every PutObject into a bucket with Object Lock and a default retention.
    for body in (b"", b"body", b"x" * (3 * MIB)):
        for write in (store.put, store.create):
            write("bucket", "k", body)
            assert s3.last.headers["x-amz-sdk-checksum-algorithm"] == "CRC32"
            assert s3.last.headers["x-amz-checksum-crc32"] == crc32_text(body)
            assert s3.last.body == body
            assert s3.last.headers["content-length"] == str(len(body))


def test_an_upload_starts_with_a_full_object_crc32(s3: ScriptedS3, store: S3Store) -> None:
    body = b"<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>"
    s3.always(Answer(body=body))
    assert store.create_upload("bucket", "out", content_type="application/gzip") == "id"
    assert s3.last.headers["x-amz-checksum-algorithm"] == "CRC32"
    assert s3.last.headers["x-amz-checksum-type"] == "FULL_OBJECT"
    assert s3.last.headers["content-type"] == "application/gzip"
    assert not [name for name in s3.last.headers if name.startswith("x-amz-meta")]
    store.create_upload("bucket", "out", metadata={"compactor-log": "1"})
    assert s3.last.headers["x-amz-meta-compactor-log"] == "1"


def test_a_part_travels_with_its_crc32(s3: ScriptedS3, store: S3Store) -> None:
    s3.always(UPLOADED)
    part = store.upload_part("bucket", "out", "id", 3, memoryview(b"0123456789")[1:])
    assert part == StoredPart(3, "part-etag", 9)
    assert s3.last.headers["x-amz-sdk-checksum-algorithm"] == "CRC32"
    assert s3.last.headers["x-amz-checksum-crc32"] == crc32_text(b"123456789")
    assert s3.last.body == b"123456789"
    assert "partNumber=3" in s3.last.path
    assert "uploadId=id" in s3.last.path


def test_a_copied_part_is_pinned_to_the_etag_of_its_source(s3: ScriptedS3, store: S3Store) -> None:
    s3.always(Answer(body=b'<CopyPartResult><ETag>"copied"</ETag></CopyPartResult>'))
    part = store.copy_part("lake", "out", "id", 2, SOURCE, 10, 20)
    assert part == StoredPart(2, "copied", 20)
    headers = s3.last.headers
    assert headers["x-amz-copy-source"] == "bucket/logs/a.json"
    assert headers["x-amz-copy-source-if-match"] == f'"{ETAG}"'
    assert headers["x-amz-copy-source-range"] == "bytes=10-29"


COMPLETED = Answer(
    body=b"<CompleteMultipartUploadResult><Key>out</Key></CompleteMultipartUploadResult>"
)


def test_completing_asks_for_absence_and_gives_the_full_object_crc32(
    s3: ScriptedS3, store: S3Store
) -> None:
    s3.always(COMPLETED)
    complete(store, zlib.crc32(b"whole"))
    assert s3.last.headers["if-none-match"] == "*"
    assert s3.last.headers["x-amz-checksum-crc32"] == crc32_text(b"whole")
    assert s3.last.headers["x-amz-checksum-type"] == "FULL_OBJECT"
    assert re.findall(rb"<(PartNumber|ETag)>([^<]*)<", s3.last.body) == [
        (b"PartNumber", b"1"),
        (b"ETag", b'"etag-1"'),
        (b"PartNumber", b"2"),
        (b"ETag", b'"etag-2"'),
    ]


def test_completing_a_copy_asks_for_absence_too(s3: ScriptedS3, store: S3Store) -> None:
    s3.always(COMPLETED)
    complete(store, None)
    assert s3.last.headers["if-none-match"] == "*"
    assert "x-amz-checksum-crc32" not in s3.last.headers


def test_every_key_to_be_deleted_carries_its_etag(s3: ScriptedS3, store: S3Store) -> None:
    s3.answer = deletes
    assert store.delete_sources(sources("a", "b")) == Deletion()
    (asked,) = s3.asked
    assert (asked.method, asked.path) == ("POST", "/bucket?delete")
    assert re.findall(rb"<Object>(.*?)</Object>", asked.body) == [
        b'<Key>a</Key><ETag>"etag-of-a"</ETag>',
        b'<Key>b</Key><ETag>"etag-of-b"</ETag>',
    ]


def test_no_request_deletes_more_than_s3_takes(s3: ScriptedS3, store: S3Store) -> None:
    s3.answer = deletes
    assert store.delete_sources(sources(*(f"{n:04}" for n in range(2_001)))) == Deletion()
    assert [asked.body.count(b"<Object>") for asked in s3.asked] == [1_000, 1_000, 1]


def test_a_key_that_no_xml_may_hold_is_deleted_by_a_conditional_request(
    s3: ScriptedS3, store: S3Store
) -> None:
    s3.answer = lambda asked: deletes(asked) if asked.method == "POST" else Answer(204)
    odd = SourceObject("bucket", "a\x01", ETAG, 1, 0.0)
    assert store.delete_sources([odd, *sources("b")]) == Deletion()
    assert [(one.method, one.path) for one in s3.asked] == [
        ("DELETE", "/bucket/a%01"),
        ("POST", "/bucket?delete"),
    ]
    assert s3.asked[0].headers["if-match"] == f'"{ETAG}"'
    assert b"\x01" not in s3.asked[1].body


# What is counted.


def test_requests_and_bytes_are_counted(s3: ScriptedS3, reader: S3Store) -> None:
    s3.answer = sends_ranges_of(b"hello")
    only(reader.read_sources([SOURCE]))
    reader.put("bucket", "k", b"123")
    reader.get("bucket", "k")
    list(reader.open("bucket", "k"))
    reader.head("bucket", "k")
    assert dict(reader.requests.snapshot()) == {
        "GET": 3, "PUT": 1, "HEAD": 1, "bytes_read": 15, "bytes_written": 3,
    }  # fmt: skip


def test_stores_that_count_apart_share_their_connections(s3: ScriptedS3) -> None:
    s3.always(
        Answer(
            200, b"hello", {"ETag": f'"{ETAG}"', "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT"}
        )
    )
    shared = store_on(s3.url)
    shared.get("bucket", "key")
    files = Path("/proc/self/fd")
    before = len([*files.iterdir()])
    stores = [shared.counted_apart() for _ in range(50)]
    for store in stores:
        store.get("bucket", "key")
        assert only(store.read_sources([SOURCE])).content == b"hello"
    assert [store.requests.snapshot()["GET"] for store in stores] == [2] * 50
    assert shared.requests.snapshot()["GET"] == 1
    assert len([*files.iterdir()]) - before < 10
