"""What the S3 store makes of S3's answers to deletes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from compactor.errors import CompactorError, InvalidInput, TransientStoreError
from compactor.model import SourceObject
from compactor.ports import Deletion, Refused
from compactor.s3.store import S3Store
from tests.support.s3_requests import SOURCE, deletes, sources
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal

ODD = SourceObject("bucket", "\x01", "etag-of-odd", 1, 0.0)
ANOTHER = "PreconditionFailed: it has another ETag"


def there(etag: str) -> Answer:
    """An answer of HEAD."""
    return Answer(headers={"ETag": f'"{etag}"', "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT"})


def with_heads(
    answer: Callable[[Asked], Answer], heads: dict[str, Answer]
) -> Callable[[Asked], Answer]:
    """Answers each HEAD by the last letter of its key, and everything else otherwise."""
    return lambda asked: heads[asked.path[-1]] if asked.method == "HEAD" else answer(asked)


def test_head_distinguishes_a_source_that_changed_from_one_that_is_gone(
    s3: ScriptedS3, store: S3Store
) -> None:
    codes = dict.fromkeys("abc", "PreconditionFailed")
    heads = {"a": there("new"), "b": Answer(404), "c": there("etag-of-c")}
    s3.answer = with_heads(partial(deletes, **codes), heads)
    assert store.delete_sources(sources("a", "b", "c", "d")).refused == (
        Refused("a", ANOTHER, final=True),
        Refused("c", "PreconditionFailed: m"),
    )


def test_a_source_gone_needs_no_head_where_s3_says_so(s3: ScriptedS3, store: S3Store) -> None:
    s3.answer = partial(deletes, a="NoSuchKey", b="AccessDenied")
    found = store.delete_sources(sources("a", "b"))
    assert found == Deletion((Refused("b", "AccessDenied: m"),), absent=frozenset({"a"}))
    assert [asked.method for asked in s3.asked] == ["POST"]


def test_a_head_that_is_denied_leaves_the_refusal_open(s3: ScriptedS3, store: S3Store) -> None:
    s3.answer = with_heads(partial(deletes, a="PreconditionFailed"), {"a": Answer(403)})
    (refused,) = store.delete_sources(sources("a")).refused
    assert refused.reason.startswith("PreconditionFailed: m; HEAD: not allowed")
    assert not refused.final


@pytest.mark.parametrize(
    ("deleted", "head", "expected"),
    [
        (refusal(404, "NoSuchKey"), None, ()),
        (refusal(412, "PreconditionFailed"), Answer(404), ()),
        (refusal(412, "PreconditionFailed"), there("new"), (Refused("\x01", ANOTHER, True),)),
        (refusal(409, "ConditionalRequestConflict"), Answer(404), ()),
    ],
)
def test_a_source_deleted_alone_is_judged_alike(
    s3: ScriptedS3,
    store: S3Store,
    deleted: Answer,
    head: Answer | None,
    expected: tuple[Refused, ...],
) -> None:
    s3.answer = with_heads(lambda asked: deleted, {} if head is None else {"1": head})
    absent = frozenset() if expected else frozenset({ODD.key})
    assert store.delete_sources([ODD]) == Deletion(expected, absent=absent)


@pytest.mark.parametrize("source", [SOURCE, ODD])
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "AccessDenied"),
        (403, "AllAccessDisabled"),
        (405, "MethodNotAllowed"),
        (400, "MissingContentMD5"),
        (400, "InvalidRequest"),
        (501, "NotImplemented"),
    ],
)
def test_a_refused_request_is_a_refusal_of_each_of_its_keys(
    s3: ScriptedS3, store: S3Store, source: SourceObject, status: int, code: str
) -> None:
    s3.always(refusal(status, code))
    refused = Refused(source.key, f"{code}: message of {code}")
    assert store.delete_sources([source]) == Deletion((refused,))


def test_a_refused_request_stops_no_other(s3: ScriptedS3, store: S3Store) -> None:
    s3.answer = lambda asked: refusal(403, "AccessDenied") if len(s3.asked) == 1 else deletes(asked)
    deletion = store.delete_sources(sources(*(f"{n:04}" for n in range(1_001))))
    assert [one.key for one in deletion.refused] == [f"{n:04}" for n in range(1_000)]
    assert len(s3.asked) == 2


@pytest.mark.parametrize("source", [SOURCE, ODD])
@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (403, "InvalidAccessKeyId", InvalidInput),
        (400, "ExpiredToken", InvalidInput),
        (404, "NoSuchBucket", InvalidInput),
        (403, "RequestTimeTooSkewed", TransientStoreError),
        (429, "TooManyRequests", TransientStoreError),
    ],
)
def test_what_is_not_about_the_keys_is_an_error(
    s3: ScriptedS3,
    store: S3Store,
    source: SourceObject,
    status: int,
    code: str,
    expected: type[CompactorError],
) -> None:
    s3.always(refusal(status, code))
    with pytest.raises(expected):
        store.delete_sources([source])


def test_keys_that_s3_was_too_busy_for_are_asked_again(s3: ScriptedS3, store: S3Store) -> None:
    codes = [{"a": "SlowDown", "b": "AccessDenied"}, {"a": "InternalError"}, {}]
    s3.answer = lambda asked: deletes(asked, **codes[len(s3.asked) - 1])
    deletion = store.delete_sources(sources("a", "b", "c"))
    assert deletion.refused == (Refused("b", "AccessDenied: m"),)
    assert [asked.body.count(b"<Object>") for asked in s3.asked] == [3, 1, 1]


def test_keys_that_s3_is_always_too_busy_for_are_refused(s3: ScriptedS3, store: S3Store) -> None:
    s3.answer = partial(deletes, a="SlowDown")
    assert store.delete_sources(sources("a")).refused == (Refused("a", "SlowDown: m"),)
    assert len(s3.asked) == 4


def test_busy_keys_are_not_waited_for_beyond_the_end_of_the_invocation(
    s3: ScriptedS3, store: S3Store
) -> None:
    class Ending:
        def remaining_seconds(self) -> float:
            # Five of them are kept for the invocation's own end, and the first wait takes 0.5.
            return 6.0

    s3.answer = partial(deletes, a="SlowDown")
    refused = store.within(Ending()).delete_sources(sources("a")).refused
    assert refused == (Refused("a", "SlowDown: m"),)
    assert len(s3.asked) == 2


def test_a_key_that_the_answer_does_not_speak_of_is_looked_at(
    s3: ScriptedS3, store: S3Store
) -> None:
    error = "<Error><Code>AccessDenied</Code><Message>of some key</Message></Error>"
    answer = Answer(body=f"<DeleteResult>{error}</DeleteResult>".encode())
    heads = {"a": there("etag-of-a"), "b": Answer(404)}
    s3.answer = with_heads(lambda asked: answer, heads)
    (refused,) = store.delete_sources(sources("a", "b")).refused
    assert (refused.key, refused.final) == ("a", False)


def test_delete_markers_are_counted(s3: ScriptedS3, store: S3Store) -> None:
    marker = "<DeleteMarker>true</DeleteMarker>"
    deleted = f"<Deleted><Key>a</Key>{marker}</Deleted><Deleted><Key>b</Key></Deleted>"
    together = Answer(body=f"<DeleteResult>{deleted}</DeleteResult>".encode())
    alone = Answer(204, headers={"x-amz-delete-marker": "true"})
    s3.answer = lambda asked: together if asked.method == "POST" else alone
    assert store.delete_sources([*sources("a", "b"), ODD]) == Deletion(markers=2)
    assert b"Quiet" not in s3.asked[-1].body


@pytest.mark.parametrize(
    ("date", "expected"),
    [("Fri, 02 Jan 2026 00:00:00 GMT", 1_767_312_000.0), ("yesterday", None), ("", None)],
)
def test_head_returns_the_time_of_the_store(
    s3: ScriptedS3, store: S3Store, date: str, expected: float | None
) -> None:
    headers = {**there("e").headers, "Date": date}
    s3.always(Answer(headers=headers))
    head = store.head("bucket", "k")
    assert head is not None
    assert head.answered_at == expected


def test_a_checksum_of_checksums_is_not_that_of_the_whole_even_without_its_type(
    s3: ScriptedS3, store: S3Store
) -> None:
    s3.always(Answer(headers={**there("e").headers, "x-amz-checksum-crc32": "AAAABQ==-2"}))
    head = store.head("bucket", "k")
    assert head is not None
    assert head.crc32 is None
