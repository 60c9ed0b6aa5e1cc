"""Bodies that end early, come slowly, or are not what was asked for: noticed, and asked again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from compactor.errors import IntegrityError, InvalidInput, ObjectMissing, TransientStoreError
from compactor.model import SourceObject
from compactor.s3.bodies import PIECE_BYTES, SentBody, read_body
from compactor.s3.store import S3Store
from compactor.s3.translate import Again
from tests.support.s3_requests import ETAG, MIB, only, sources
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal

CONTENT = b"".join(number.to_bytes(4, "big") for number in range(900_000))
HEADERS = {"ETag": f'"{ETAG}"'}


def served(asked: Asked, sent: int | None = None) -> Answer:
    """The content, or its rest from where the request says; cut after ``sent`` bytes."""
    first = re.match(r"bytes=(\d+)-$", asked.headers.get("range", ""))
    if first is None:
        return Answer(200, CONTENT, HEADERS, sent)
    start = int(first[1])
    told = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
    return Answer(206, CONTENT[start:], HEADERS | {"Content-Range": told}, sent)


@pytest.mark.parametrize("cuts", [(), (0,), (1,), (PIECE_BYTES,), (MIB + 7, 0, 0, 3, MIB)])
def test_a_body_is_resumed_where_it_broke_off(
    s3: ScriptedS3, store: S3Store, cuts: tuple[int, ...]
) -> None:
    lengths = iter(cuts)
    s3.answer = lambda asked: served(asked, next(lengths, None))
    assert b"".join(store.open("bucket", "k")) == CONTENT
    assert len(s3.asked) == 1 + len(cuts)
    rest = [asked.headers for asked in s3.asked if "range" in asked.headers]
    assert {headers["if-match"] for headers in rest} <= {f'"{ETAG}"'}
    assert store.requests.snapshot()["bytes_read"] == len(CONTENT)


def test_a_body_that_never_gets_on_is_given_up(s3: ScriptedS3, store: S3Store) -> None:
    s3.answer = lambda asked: served(asked, 2 * MIB if "range" not in asked.headers else 0)
    with pytest.raises(InvalidInput, match="8 tries"):
        list(store.open("bucket", "k"))
    assert len(s3.asked) == 9


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (refusal(412, "PreconditionFailed"), "replaced while it was read"),
        (Answer(200, CONTENT, HEADERS), "no range to bytes"),
    ],
)
def test_the_rest_of_another_object_is_not_taken_for_it(
    s3: ScriptedS3, store: S3Store, answer: Answer, expected: str
) -> None:
    s3.answer = lambda asked: answer if "range" in asked.headers else served(asked, 2 * MIB)
    with pytest.raises(TransientStoreError, match=expected):
        list(store.open("bucket", "k"))


def test_an_object_that_goes_while_it_is_read_is_missing(s3: ScriptedS3, store: S3Store) -> None:
    gone = refusal(404, "NoSuchKey")
    s3.answer = lambda asked: gone if "range" in asked.headers else served(asked, 2 * MIB)
    with pytest.raises(ObjectMissing):
        list(store.open("bucket", "k"))


def test_an_empty_object_has_no_pieces(s3: ScriptedS3, store: S3Store) -> None:
    s3.always(Answer(200, b"", HEADERS))
    assert list(store.open("bucket", "k")) == []


RANGE_TOLD = (
    # body, Content-Range, whether that is bytes 2 to 5 of the object
    (b"2345", "bytes 2-5/10", True),
    (b"23", "bytes 2-3/4", True),
    (b"23", "bytes 2-5/10", False),
    (b"2345", "bytes 2-3/10", False),
    (b"23", "bytes 2-3/10", False),
    (b"23456", "bytes 2-6/10", False),
    (b"0123", "bytes 0-3/10", False),
    (b"0123456789", "", False),
    (b"2345", "", False),
)


@pytest.mark.parametrize(("body", "told", "sound"), RANGE_TOLD)
def test_a_range_is_taken_only_for_what_it_is(
    s3: ScriptedS3, store: S3Store, body: bytes, told: str, sound: bool
) -> None:
    s3.always(Answer(206 if told else 200, body, {**HEADERS, "Content-Range": told}))
    if sound:
        assert store.get_range("bucket", "k", 2, 4) == body
    else:
        with pytest.raises((TransientStoreError, InvalidInput), match="to bytes 2 to 5"):
            store.get_range("bucket", "k", 2, 4)


def test_a_store_may_give_all_of_an_object_for_a_range_of_all_of_it(
    s3: ScriptedS3, store: S3Store
) -> None:
    s3.always(Answer(200, b"0123", HEADERS))
    assert store.get_range("bucket", "k", 0, 4) == b"0123"


class Trickle:
    """A body of which each piece takes its time."""

    def __init__(self) -> None:
        self.pieces = 0

    def iter_chunks(self, size: int) -> Iterator[bytes]:
        for _ in range(1_000):
            self.pieces += 1
            yield b"x"


def test_a_body_that_comes_too_slowly_is_given_up() -> None:
    body = Trickle()
    with pytest.raises(Again, match="too slowly"):
        read_body({"Body": body}, lambda: body.pieces == 3)
    assert body.pieces == 3


def test_a_body_is_sent_in_pieces_that_are_neither_small_nor_slow() -> None:
    content = CONTENT[: 2 * MIB + 5]
    body = SentBody(content, lambda: False)
    pieces = list(iter(lambda: body.read(128 * 1024), b""))
    assert [len(piece) for piece in pieces] == [MIB, MIB, 5]
    assert b"".join(pieces) == content
    assert SentBody(content, lambda: False).read() == content


def test_a_body_that_is_sent_too_slowly_is_given_up() -> None:
    body = SentBody(CONTENT, lambda: body.tell() > MIB)
    assert len(body.read(1)) + len(body.read(1)) == 2 * MIB
    with pytest.raises(TimeoutError):
        body.read(1)


def test_half_a_listing_is_never_taken_for_a_whole_one(s3: ScriptedS3, store: S3Store) -> None:
    entries = "".join(
        f"<Contents><Key>k{number}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
        f"<ETag>{ETAG}</ETag><Size>7</Size></Contents>"
        for number in range(5)
    )
    whole = f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
    half = Answer(body=whole.encode(), sent=len(whole) // 2)
    s3.answer = lambda asked: half if len(s3.asked) == 1 else Answer(body=whole.encode())
    (page,) = store.list_objects("bucket", "")
    assert (len(page), len(s3.asked)) == (5, 2)


def test_a_listing_that_leads_to_itself_ends(s3: ScriptedS3, store: S3Store) -> None:
    more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
    s3.always(Answer(body=f"<ListBucketResult>{more}</ListBucketResult>".encode()))
    for listing in (store.list_objects("bucket", ""), store.list_level("bucket", "")):
        with pytest.raises(IntegrityError, match="again and again"):
            list(listing)


def test_a_listing_of_uploads_that_leads_to_itself_ends(s3: ScriptedS3, store: S3Store) -> None:
    markers = "<NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>i</NextUploadIdMarker>"
    more = f"<IsTruncated>true</IsTruncated>{markers}"
    text = f"<ListMultipartUploadsResult>{more}</ListMultipartUploadsResult>"
    s3.always(Answer(body=text.encode()))
    with pytest.raises(IntegrityError, match="in order"):
        list(store.list_uploads("bucket", ""))


def test_a_source_that_is_cut_short_is_read_again(s3: ScriptedS3, reader: S3Store) -> None:
    (wanted,) = sources("k")
    whole = Answer(200, b"x", {"ETag": f'"{wanted.etag}"'})
    s3.answer = lambda asked: replace(whole, sent=0) if len(s3.asked) < 3 else whole
    assert only(reader.read_sources([wanted])).content == b"x"
    assert len(s3.asked) == 3


# Over plain HTTP.


def read_with(s3: ScriptedS3, store: S3Store, etag: str, *bodies: bytes) -> bytes | None:
    """What comes of a source when these bodies are sent, one a request, the last for ever."""
    left = list(bodies)
    s3.answer = lambda _: Answer(200, left.pop(0) if len(left) > 1 else left[0], {"ETag": etag})
    (body,) = store.read_sources([SourceObject("bucket", "k", etag, len(bodies[0]), 0.0)])
    return body.content


def md5_of(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def test_a_byte_that_changed_on_its_way_is_noticed_by_the_etag(
    s3: ScriptedS3, store: S3Store
) -> None:
    assert read_with(s3, store, md5_of(b"whole"), b"whore", b"whole") == b"whole"
    assert len(s3.asked) == 2
    assert read_with(s3, store, md5_of(b"whole"), b"whore", b"shole", b"whole") == b"whole"
    assert len(s3.asked) == 5


def test_a_source_that_never_comes_whole_is_given_up(s3: ScriptedS3, store: S3Store) -> None:
    with pytest.raises(TransientStoreError, match="no two alike"):
        read_with(s3, store, md5_of(b"whole"), b"0hole", b"1hole", b"2hole", b"3hole")
    assert len(s3.asked) == 4


def test_an_etag_that_is_no_md5_sum_costs_one_more_read_and_no_other_after_it(
    s3: ScriptedS3, store: S3Store
) -> None:
    etag = md5_of(b"encrypted by a key of KMS")
    assert read_with(s3, store, etag, b"content") == b"content"
    assert read_with(s3, store, etag, b"another") == b"another"
    assert len(s3.asked) == 3


def test_the_etag_of_a_multipart_object_says_nothing_of_its_bytes(
    s3: ScriptedS3, store: S3Store
) -> None:
    assert read_with(s3, store, md5_of(b"parts") + "-2", b"content") == b"content"
    assert len(s3.asked) == 1
