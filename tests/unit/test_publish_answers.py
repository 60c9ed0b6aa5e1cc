"""What becomes of a commit when S3 answers CompleteMultipartUpload with 409, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compactor.errors import TransientStoreError, UploadLost
from compactor.log.entries import Commit, Output
from compactor.model import Compression, Format
from compactor.outputs.publish import publish
from compactor.s3.store import S3Store
from tests.support.s3_requests import ETAG, PARTS
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal

OUTPUT = Output(
    bucket="lake",
    key="out",
    upload_id="id",
    parts=PARTS,
    size=4,
    crc32=5,
    plain_bytes=4,
    records=1,
    format=Format.TEXT,
    compression=Compression.NONE,
)
COMMIT = Commit(
    sequence=1,
    commit_id="c",
    run_id="r",
    created_at=0.0,
    source_bucket="logs",
    group_id="g",
    output=OUTPUT,
    rows=(),
    quarantined=(),
)
CONFLICT = refusal(409, "ConditionalRequestConflict")
COMPLETED = Answer(
    body=b"<CompleteMultipartUploadResult><Key>out</Key></CompleteMultipartUploadResult>"
)
PUBLISHED = Answer(
    body=b"body",
    headers={
        "ETag": f'"{ETAG}"',
        "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT",
        "x-amz-checksum-crc32": "AAAABQ==",
        "x-amz-checksum-type": "FULL_OBJECT",
    },
)


def answering(head: Answer, *completes: Answer) -> Callable[[Asked], Answer]:
    """HEAD gets one answer; each POST the next of those given, the last one for ever."""
    left = list(completes)

    def answer(asked: Asked) -> Answer:
        if asked.method == "HEAD":
            return head
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


def test_a_conflict_that_passes_is_asked_again_and_published(
    s3: ScriptedS3, store: S3Store
) -> None:
    s3.answer = answering(Answer(404), CONFLICT, CONFLICT, COMPLETED)
    assert publish(COMMIT, store)
    assert len(s3.asked) == 3


@pytest.mark.parametrize("first", [CONFLICT, Answer(0), refusal(500, "InternalError")])
@pytest.mark.parametrize("then", [refusal(412, "PreconditionFailed"), refusal(404, "NoSuchUpload")])
def test_a_publisher_that_finds_the_output_published_meanwhile_is_done(
    s3: ScriptedS3, store: S3Store, first: Answer, then: Answer
) -> None:
    s3.answer = answering(PUBLISHED, first, then)
    assert not publish(COMMIT, store)
    assert [asked.method for asked in s3.asked] == ["POST", "POST", "HEAD"]


def test_an_upload_that_a_conflict_has_cost_is_built_again(s3: ScriptedS3, store: S3Store) -> None:
    s3.answer = answering(Answer(404), CONFLICT, refusal(404, "NoSuchUpload"))
    with pytest.raises(UploadLost):
        publish(COMMIT, store)


def test_a_conflict_that_lasts_is_left_to_the_next_run_and_nothing_is_aborted(
    s3: ScriptedS3, store: S3Store
) -> None:
    s3.answer = answering(Answer(404), CONFLICT)
    with pytest.raises(TransientStoreError, match=r"complete upload .* 409 Conditional"):
        publish(COMMIT, store)
    assert {asked.method for asked in s3.asked} == {"POST"}
