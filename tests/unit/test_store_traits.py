"""What is sent, and compared, where a store does not honour a condition."""

from __future__ import annotations

import zlib

import pytest

from compactor.conditions import StoreTraits
from compactor.encoding.checksums import parts_crc32
from compactor.errors import SourceChanged
from compactor.model import SourceObject, StoredPart
from tests.support.s3_requests import ETAG, MIB, SOURCE, only, sources, store_on
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal

READ_BY_COMPARING = StoreTraits(reads_if_match=False)
SINGLY = StoreTraits(deletes_many=False)
BY_HEAD = StoreTraits(deletes_many=False, deletes_one=False)
DATE = {"Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT"}


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("etag", [f'"{ETAG}"', f'W/"{ETAG}"'])
def test_an_answer_with_the_listed_etag_is_taken_without_a_condition(
    s3: ScriptedS3, etag: str, *, direct: bool
) -> None:
    s3.always(Answer(200, b"hello", {"ETag": etag, **DATE}))
    store = store_on(s3.url, direct=direct).with_traits(READ_BY_COMPARING)
    assert only(store.read_sources([SOURCE])).content == b"hello"
    assert "if-match" not in s3.last.headers


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("headers", [{"ETag": '"another"'}, {}])
def test_an_answer_with_another_etag_or_none_is_a_source_that_changed(
    s3: ScriptedS3, headers: dict[str, str], *, direct: bool
) -> None:
    s3.always(Answer(200, b"hello", {**headers, **DATE}))
    store = store_on(s3.url, direct=direct).with_traits(READ_BY_COMPARING)
    assert isinstance(only(store.read_sources([SOURCE])).error, SourceChanged)


def test_every_range_of_a_large_source_is_compared(s3: ScriptedS3) -> None:
    size = 17 * MIB

    def answer(asked: Asked) -> Answer:
        if asked.method == "HEAD":
            return Answer(200, b"", {"ETag": f'"{ETAG}"', **DATE})
        first, last = map(int, asked.headers["range"].removeprefix("bytes=").split("-"))
        etag = ETAG if first < 8 * MIB else "another"
        told = {"ETag": f'"{etag}"', "Content-Range": f"bytes {first}-{last}/{size}", **DATE}
        return Answer(206, bytes(last + 1 - first), told)

    s3.answer = answer
    store = store_on(s3.url).with_traits(READ_BY_COMPARING)
    body = only(store.read_sources([SourceObject("bucket", "k", ETAG, size, 0.0)]))
    assert body.chunks is not None
    with pytest.raises(SourceChanged):
        b"".join(body.chunks())


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


def test_what_head_shows_to_be_another_object_is_not_deleted(s3: ScriptedS3) -> None:
    def answer(asked: Asked) -> Answer:
        key = asked.path.rpartition("/")[2]
        if asked.method == "HEAD" and key == "gone":
            return Answer(404)
        etag = "another" if key == "changed" else f"etag-of-{key}"
        return Answer(200 if asked.method == "HEAD" else 204, b"", {"ETag": f'"{etag}"', **DATE})

    s3.answer = answer
    store = store_on(s3.url).with_traits(BY_HEAD)
    (refused,) = store.delete_sources(sources("same", "changed", "gone")).refused
    assert (refused.key, refused.final) == ("changed", True)
    deleted = [asked.path for asked in s3.asked if asked.method == "DELETE"]
    assert deleted == ["/bucket/same"]
    assert store.requests.snapshot()["HEAD"] == len(s3.asked) - 1


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
