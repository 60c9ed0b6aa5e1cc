"""What is sent to stores that are not AWS, and checksums of parts."""

from __future__ import annotations

import zlib

from compactor.encoding.checksums import parts_crc32
from compactor.model import StoredPart
from compactor.ports import Deletes, StoreTraits
from tests.support.s3_requests import SOURCE, sources, store_on
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal

SINGLY = StoreTraits(deletes=Deletes.SINGLE)


def test_sources_are_deleted_one_by_one_each_with_its_etag(s3: ScriptedS3) -> None:
    s3.always(Answer(204))
    assert store_on(s3.url).with_traits(SINGLY).delete_sources(sources("a", "b")).refused == ()
    asked = {(one.method, one.path): one.headers["if-match"] for one in s3.asked}
    assert asked == {
        ("DELETE", "/bucket/a"): '"etag-of-a"',
        ("DELETE", "/bucket/b"): '"etag-of-b"',
    }


def test_markers_and_refusals_of_single_deletes_are_added_up(s3: ScriptedS3) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.path.endswith("locked"):
            return refusal(403, "AccessDenied")
        return Answer(204, headers={"x-amz-delete-marker": "true"})

    s3.answer = answer
    deletion = store_on(s3.url).with_traits(SINGLY).delete_sources(sources("a", "b", "locked"))
    assert deletion.markers == 2
    assert [one.key for one in deletion.refused] == ["locked"]


def test_a_store_without_conditional_deletes_keeps_every_source(s3: ScriptedS3) -> None:
    store = store_on(s3.url).with_traits(StoreTraits(deletes=Deletes.NONE))
    refused = store.delete_sources(sources("a", "b")).refused
    assert [one.key for one in refused] == ["a", "b"]
    assert all("no source is deleted" in one.reason and not one.final for one in refused)
    assert s3.asked == []


def test_each_part_is_completed_with_its_checksum(s3: ScriptedS3) -> None:
    s3.always(Answer(body=b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"))
    parts = [StoredPart(1, "e", 3, 42), StoredPart(2, "f", 3)]
    store_on(s3.url).complete_upload("lake", "out", "id", parts, crc32=7)
    assert s3.last.body.count(b"<ChecksumCRC32>AAAAKg==</ChecksumCRC32>") == 1
    assert s3.last.body.count(b"<ChecksumCRC32>") == 1


def test_the_traits_of_a_store_are_its_own() -> None:
    store = store_on("http://127.0.0.1:9")
    other = store.with_traits(SINGLY)
    assert store.traits == StoreTraits()
    assert other.traits == SINGLY
    assert other.requests is store.requests
    assert other.endpoint_url == "http://127.0.0.1:9"


def test_the_checksum_of_a_copied_part_is_the_one_that_the_store_returns(s3: ScriptedS3) -> None:
    told = "<ETag>e</ETag><ChecksumCRC32>AAAAKg==</ChecksumCRC32>"
    s3.always(Answer(body=f"<CopyPartResult>{told}</CopyPartResult>".encode()))
    assert store_on(s3.url).copy_part("lake", "out", "id", 1, SOURCE, 0, 5).crc32 == 42


def test_the_checksum_of_a_whole_follows_from_its_parts() -> None:
    one = StoredPart(1, "e", 3, zlib.crc32(b"abc"))
    two = StoredPart(2, "e", 4, zlib.crc32(b"defg"))
    assert parts_crc32([one, two]) == zlib.crc32(b"abcdefg")
    assert parts_crc32([one, StoredPart(2, "e", 4)]) is None
