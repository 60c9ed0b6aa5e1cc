"""Stores that want the checksum of each part again when an upload is completed."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from compactor.errors import IntegrityError
from compactor.s3.store import S3Store
from tests.support.s3_requests import PARTS, complete
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal

COMPLETED = Answer(
    body=b"<CompleteMultipartUploadResult><Key>out</Key></CompleteMultipartUploadResult>"
)
XML = {"Content-Type": "application/xml"}


def listed(*parts: tuple[int, str, str]) -> Answer:
    entries = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag>{checksum}</Part>"
        for number, etag, checksum in parts
    )
    body = f"<ListPartsResult><IsTruncated>false</IsTruncated>{entries}</ListPartsResult>"
    return Answer(body=body.encode(), headers=XML)


def crc(text: str) -> str:
    return f"<ChecksumCRC32>{text}</ChecksumCRC32>"


def wants_checksums(code: str, parts: Answer) -> Callable[[Asked], Answer]:
    """A server that refuses with this code until each part has a checksum."""

    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":
            return parts
        given = len(re.findall(b"<ChecksumCRC32>", asked.body))
        return COMPLETED if given == len(PARTS) else refusal(400, code)

    return answer


GOOD = listed((1, '"etag-1"', crc("AAAAAQ==")), (2, "etag-2", crc("AAAAAg==")))


@pytest.mark.parametrize("code", ["InvalidRequest", "InvalidPart"])
def test_a_store_that_wants_the_checksum_of_each_part_is_given_those_it_keeps(
    s3: ScriptedS3, store: S3Store, code: str
) -> None:
    s3.answer = wants_checksums(code, GOOD)
    complete(store)
    first, _, again = s3.asked
    assert [asked.method for asked in s3.asked] == ["POST", "GET", "POST"]
    assert b"ChecksumCRC32" not in first.body
    assert re.findall(rb"<ChecksumCRC32>([^<]*)<", again.body) == [b"AAAAAQ==", b"AAAAAg=="]
    assert again.headers["if-none-match"] == first.headers["if-none-match"] == "*"
    assert again.headers["x-amz-checksum-crc32"] == first.headers["x-amz-checksum-crc32"]
    assert dict(store.requests.snapshot()) == {"PUT": 2, "LIST": 1}


@pytest.mark.parametrize(
    "parts",
    [
        listed((1, '"etag-1"', crc("AAAAAQ=="))),
        listed((1, '"etag-1"', crc("AAAAAQ==")), (2, '"another"', crc("AAAAAg=="))),
        listed((1, '"etag-1"', ""), (2, '"etag-2"', "")),
        refusal(403, "AccessDenied"),
    ],
    ids=["a part is gone", "a part is another", "no checksums kept", "parts may not be listed"],
)
def test_a_part_that_is_not_what_was_stored_stays_an_integrity_error(
    s3: ScriptedS3, store: S3Store, parts: Answer
) -> None:
    s3.answer = wants_checksums("InvalidPart", parts)
    with pytest.raises(IntegrityError, match="InvalidPart"):
        complete(store)
    assert [asked.method for asked in s3.asked] == ["POST", "GET"]


def test_a_store_that_wants_none_is_asked_once(s3: ScriptedS3, store: S3Store) -> None:
    s3.always(COMPLETED)
    complete(store)
    assert [asked.method for asked in s3.asked] == ["POST"]
