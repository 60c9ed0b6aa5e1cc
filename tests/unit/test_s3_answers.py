"""What the S3 store makes of S3's answers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from compactor.errors import (
    AlreadyExists,
    CompactorError,
    IntegrityError,
    InvalidInput,
    ObjectArchived,
    ObjectMissing,
    SourceChanged,
    TransientStoreError,
    UnreadableSource,
)
from compactor.model import SourceObject
from compactor.s3.store import S3Store
from tests.support.s3_requests import (
    ETAG,
    MIB,
    SOURCE,
    complete,
    only,
    sends_ranges_of,
    store_on,
)
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal

ASK: dict[str, Callable[[S3Store], Any]] = {
    "list": lambda store: list(store.list_objects("bucket", "p/")),
    "level": lambda store: list(store.list_level("bucket", "p/")),
    "get": lambda store: store.get("bucket", "k"),
    "range": lambda store: store.get_range("bucket", "k", 0, 1),
    "open": lambda store: list(store.open("bucket", "k")),
    "put": lambda store: store.put("bucket", "k", b""),
    "create": lambda store: store.create("bucket", "k", b""),
    "start": lambda store: store.create_upload("bucket", "k"),
    "part": lambda store: store.upload_part("bucket", "k", "id", 1, b""),
    "copy": lambda store: store.copy_part("bucket", "k", "id", 1, SOURCE, 0, 5),
    "complete": complete,
    "abort": lambda store: store.abort_upload("bucket", "k", "id"),
    "delete": lambda store: store.delete_sources([SOURCE]),
    "delete alone": lambda store: store.delete_sources([SourceObject("b", "\x01", "e", 1, 0.0)]),
    "source range": lambda store: store.read_range(SOURCE, 0, 1),
    "read": lambda store: [body.content for body in store.read_sources([SOURCE])],
}
RETRIABLE = ((503, "SlowDown"), (500, "InternalError"), (503, "ServiceUnavailable"))


@pytest.mark.parametrize("name", ASK)
@pytest.mark.parametrize(("status", "code"), RETRIABLE)
def test_a_store_in_trouble_is_a_reason_to_call_again_later(
    s3: ScriptedS3, store: S3Store, name: str, status: int, code: str
) -> None:
    s3.always(refusal(status, code))
    with pytest.raises(TransientStoreError, match=f"(?s)s3://b.*{code}"):
        ASK[name](store)
    assert len(s3.asked) > 5, "asked again until its time was up"


OF_SOURCES = ("copy", "read", "source range")


@pytest.mark.parametrize(
    "name", [name for name in ASK if not name.startswith("delete") and name not in OF_SOURCES]
)
def test_denied_access_is_the_callers_mistake(s3: ScriptedS3, store: S3Store, name: str) -> None:
    s3.always(refusal(403, "AccessDenied"))
    with pytest.raises(InvalidInput, match="s3://b") as caught:
        ASK[name](store)
    assert caught.value.field == "permission"
    # A denied listing is requested again, as by a requester who pays.
    assert len(s3.asked) == (2 if name in {"list", "level"} else 1)


@pytest.mark.parametrize("name", ["list", "level"])
def test_a_bucket_whose_requesters_pay_is_refused_as_such(
    s3: ScriptedS3, store: S3Store, name: str
) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.headers.get("x-amz-request-payer") != "requester":
            return refusal(403, "AccessDenied", "Access Denied")
        assert "prefix=p%2F" in asked.path
        return Answer(body=b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")

    s3.answer = answer
    with pytest.raises(InvalidInput, match="the bucket bucket is Requester Pays, which") as caught:
        ASK[name](store)
    assert caught.value.field == "bucket"
    assert "\n" not in str(caught.value)


TABLE: tuple[tuple[str, int, str, type[CompactorError], str], ...] = (
    ("complete", 409, "ConditionalRequestConflict", TransientStoreError, ""),
    ("create", 409, "ConditionalRequestConflict", TransientStoreError, ""),
    ("complete", 412, "PreconditionFailed", AlreadyExists, ""),
    ("create", 412, "PreconditionFailed", AlreadyExists, ""),
    ("complete", 404, "NoSuchUpload", ObjectMissing, ""),
    ("part", 404, "NoSuchUpload", ObjectMissing, ""),
    ("complete", 400, "BadDigest", IntegrityError, ""),
    ("complete", 400, "InvalidPart", IntegrityError, ""),
    ("complete", 400, "InvalidPartOrder", IntegrityError, ""),
    ("part", 400, "BadDigest", IntegrityError, ""),
    ("get", 404, "NoSuchKey", ObjectMissing, ""),
    ("open", 404, "NoSuchKey", ObjectMissing, ""),
    ("list", 404, "NoSuchBucket", InvalidInput, "bucket"),
    ("start", 404, "NoSuchBucket", InvalidInput, "bucket"),
    ("get", 403, "InvalidAccessKeyId", InvalidInput, "credentials"),
    ("get", 403, "SignatureDoesNotMatch", InvalidInput, "credentials"),
    ("get", 400, "ExpiredToken", InvalidInput, "credentials"),
    ("copy", 412, "PreconditionFailed", SourceChanged, ""),
    ("copy", 404, "NoSuchKey", SourceChanged, ""),
    ("copy", 404, "NoSuchUpload", ObjectMissing, ""),
    ("copy", 403, "InvalidObjectState", UnreadableSource, ""),
    ("copy", 403, "AccessDenied", UnreadableSource, ""),
    ("source range", 403, "AccessDenied", UnreadableSource, ""),
    ("open", 403, "InvalidObjectState", ObjectArchived, "archived"),
    ("open", 400, "KMS.DisabledException", InvalidInput, "request"),
)


@pytest.mark.parametrize(("name", "status", "code", "expected", "field"), TABLE)
def test_an_answer_becomes_the_error_that_says_what_to_do(
    s3: ScriptedS3,
    store: S3Store,
    name: str,
    status: int,
    code: str,
    expected: type[CompactorError],
    field: str,
) -> None:
    s3.always(refusal(status, code))
    with pytest.raises(CompactorError) as caught:
        ASK[name](store)
    assert type(caught.value) is expected
    assert getattr(caught.value, "field", "") == field


def test_an_upload_that_is_gone_needs_no_aborting(s3: ScriptedS3, store: S3Store) -> None:
    s3.always(refusal(404, "NoSuchUpload"))
    store.abort_upload("bucket", "k", "id")
    assert len(s3.asked) == 1


@pytest.mark.parametrize(("status", "code"), [(412, "PreconditionFailed"), (404, "NoSuchKey")])
def test_a_source_that_changed_or_went_comes_back_as_such(
    s3: ScriptedS3, reader: S3Store, status: int, code: str
) -> None:
    s3.always(refusal(status, code))
    error = only(reader.read_sources([SOURCE])).error
    assert isinstance(error, SourceChanged)
    assert (error.key, error.etag) == (SOURCE.key, ETAG)


def test_a_source_in_an_archive_tier_is_unreadable(s3: ScriptedS3, reader: S3Store) -> None:
    s3.always(refusal(403, "InvalidObjectState"))
    error = only(reader.read_sources([SOURCE])).error
    assert isinstance(error, UnreadableSource)
    assert error.reason == "archived_access_tier"


# What S3 answers to a GET of one object, the message as it stands in its API reference or was
# seen, and what is wrong with that object.
_POLICY = (
    "User: arn:aws:sts::1:assumed-role/r is not authorized to perform: s3:GetObject on resource:"
    ' "arn:aws:s3:::b/kms/k" with an explicit deny in a resource-based policy'
)
_DECRYPT = (
    "User: arn:aws:sts::1:assumed-role/r is not authorized to perform: kms:Decrypt on resource:"
    " arn:aws:kms:us-east-1:1:key/2"
)
_CIPHERTEXT = (
    "The ciphertext refers to a customer master key that does not exist, does not exist in this"
    " region, or you are not allowed to access."
)
_CUSTOMER_KEY = (
    "The object was stored using a form of Server Side Encryption. The correct parameters must be"
    " provided to retrieve the object."
)
REFUSED_READS = (
    (403, "AccessDenied", "Access Denied", "access_denied"),
    (403, "AccessDenied", _POLICY, "access_denied"),
    (403, "AccessDenied", _DECRYPT, "encrypted"),
    (403, "AccessDenied", _CIPHERTEXT, "encrypted"),
    (400, "InvalidRequest", _CUSTOMER_KEY, "encrypted"),
    (400, "KMS.DisabledException", "arn:aws:kms:us-east-1:1:key/2 is disabled.", "encrypted"),
    (400, "KMS.KMSInvalidStateException", "key/2 is pending deletion.", "encrypted"),
    (403, "InvalidObjectState", "The operation is not valid", "archived_access_tier"),
)


@pytest.mark.parametrize(("status", "code", "message", "reason"), REFUSED_READS)
def test_what_is_wrong_with_one_source_is_reported_with_that_source(
    s3: ScriptedS3, reader: S3Store, status: int, code: str, message: str, reason: str
) -> None:
    s3.always(refusal(status, code, message))
    error = only(reader.read_sources([SOURCE])).error
    assert isinstance(error, UnreadableSource)
    assert error.reason == reason
    assert len(s3.asked) == 1


@pytest.mark.parametrize("code", ["InvalidAccessKeyId", "ExpiredToken", "SignatureDoesNotMatch"])
def test_wrong_credentials_are_never_blamed_on_a_source(
    s3: ScriptedS3, reader: S3Store, code: str
) -> None:
    s3.always(refusal(403, code))
    with pytest.raises(InvalidInput, match="credentials"):
        only(reader.read_sources([SOURCE]))


def test_a_store_that_is_slow_for_a_moment_is_asked_again(s3: ScriptedS3, reader: S3Store) -> None:
    sound = sends_ranges_of(b"hello")
    s3.answer = lambda asked: refusal(503, "SlowDown") if len(s3.asked) < 3 else sound(asked)
    assert only(reader.read_sources([SOURCE])).content == b"hello"
    assert len(s3.asked) == 3


def test_a_source_cut_short_on_the_way_is_never_taken_for_whole(
    s3: ScriptedS3, reader: S3Store
) -> None:
    s3.always(Answer(200, b"hello", {"ETag": f'"{ETAG}"'}, sent=3))
    with pytest.raises(InvalidInput, match="cut short"):
        only(reader.read_sources([SOURCE]))


@pytest.mark.parametrize("name", ["get", "range", "open", "list"])
def test_an_answer_cut_short_on_the_way_is_never_taken_for_whole(
    s3: ScriptedS3, store: S3Store, name: str
) -> None:
    s3.always(Answer(200, b"<ListBucketResult></ListBucketResult>", {"ETag": '"e"'}, sent=20))
    with pytest.raises((InvalidInput, TransientStoreError), match="the last answer"):
        ASK[name](store)


def test_a_range_cut_short_on_the_way_is_never_taken_for_whole(
    s3: ScriptedS3, store: S3Store
) -> None:
    s3.always(Answer(206, b"x" * 8 * MIB, {"ETag": f'"{ETAG}"'}, sent=1_000))
    body = only(store.read_sources([SourceObject("bucket", "k", ETAG, 20 * MIB, 0.0)]))
    assert body.chunks is not None
    with pytest.raises(InvalidInput, match="cut short"):
        next(body.chunks())


def test_a_source_of_another_size_than_listed_has_changed(s3: ScriptedS3, reader: S3Store) -> None:
    s3.answer = sends_ranges_of(b"hello!")
    assert isinstance(only(reader.read_sources([SOURCE])).error, SourceChanged)


def test_an_endpoint_without_a_listener_is_a_reason_to_call_again_later() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        for store in (store_on(url), store_on(url, libcurl=False)):
            for name in ("list", "get", "put", "read"):
                with pytest.raises(TransientStoreError):
                    ASK[name](store)


def test_missing_credentials_are_the_callers_mistake(
    s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    for store in (store_on(s3.url), store_on(s3.url, libcurl=False)):
        for name in ("get", "read"):
            with pytest.raises(InvalidInput) as caught:
                ASK[name](store)
            assert caught.value.field == "credentials"
    assert s3.asked == []


@pytest.mark.parametrize(("kind", "expected"), [("FULL_OBJECT", 5), ("COMPOSITE", None), (None, 5)])
def test_only_a_checksum_of_the_whole_object_is_taken_for_one(
    s3: ScriptedS3, store: S3Store, kind: str | None, expected: int | None
) -> None:
    headers = {
        "ETag": '"e"',
        "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT",
        "x-amz-checksum-crc32": "AAAABQ==",
        "x-amz-storage-class": "GLACIER_IR",
    }
    if kind:
        headers["x-amz-checksum-type"] = kind
    s3.always(Answer(200, b"body", headers))
    head = store.head("bucket", "k")
    assert head is not None
    assert s3.last.headers["x-amz-checksum-mode"] == "ENABLED"
    assert (head.crc32, head.size, head.etag, head.storage_class) == (
        expected,
        4,
        "e",
        "GLACIER_IR",
    )


def test_no_object_and_no_bucket_have_no_head(s3: ScriptedS3, store: S3Store) -> None:
    s3.always(Answer(404))
    assert store.head("bucket", "k") is None


QUESTION = "x-amz-optional-object-attributes"


def listing(*entries: str, token: str = "") -> Answer:
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    truncated = f"<IsTruncated>{str(bool(token)).lower()}</IsTruncated>{more}"
    head = '<?xml version="1.0"?><ListBucketResult><EncodingType>url</EncodingType>'
    return Answer(body=f"{head}{truncated}{''.join(entries)}</ListBucketResult>".encode())


def entry(key: str, kind: str = "STANDARD") -> str:
    return (
        f"<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
        f"<ETag>&quot;{ETAG}&quot;</ETag><Size>7</Size><StorageClass>{kind}</StorageClass>"
        "<Owner><ID>1</ID><DisplayName>Key</DisplayName></Owner></Contents>"
    )


def test_keys_are_decoded_as_s3_encodes_them(s3: ScriptedS3, store: S3Store) -> None:
    # S3 writes a blank as "+"; other servers as "%20".
    s3.always(listing(entry("a+b%2Bc%20d%25/%C3%A9"), entry("x%26%3Cy", "GLACIER")))
    ((first, second),) = store.list_objects("bucket", "")
    assert (first.key, second.key) == ("a b+c d%/é", "x&<y")
    assert (first.bucket, first.etag, first.size) == ("bucket", ETAG, 7)
    assert first.last_modified == 1_767_323_045.0
    assert (first.storage_class, second.storage_class) == ("STANDARD", "GLACIER")


def test_a_page_with_archived_objects_is_listed_again_to_see_which_are_restored(
    s3: ScriptedS3, store: S3Store
) -> None:
    archived = entry("b", "DEEP_ARCHIVE")
    restored = archived.replace(
        "</StorageClass>",
        "</StorageClass><RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress>"
        "<RestoreExpiryDate>2026-03-02T00:00:00.000Z</RestoreExpiryDate></RestoreStatus>",
    )

    def answer(asked: Asked) -> Answer:
        if "continuation-token" in asked.path:
            return listing(entry("c", "GLACIER"))
        if "start-after" in asked.path:
            return listing()
        return listing(entry("a"), restored if QUESTION in asked.headers else archived, token="t")

    s3.answer = answer
    found = [one for page in store.list_objects("bucket", "") for one in page]
    assert [(one.key, one.restored_until) for one in found] == [
        ("a", 0.0),
        ("b", 1_772_409_600.0),
        ("c", 0.0),
    ]
    first, *others = [QUESTION in one.headers for one in s3.asked]
    assert not first
    assert all(others)


def test_a_listing_without_archived_objects_asks_nothing_more(
    s3: ScriptedS3, store: S3Store
) -> None:
    s3.always(listing(entry("a"), entry("b", "GLACIER_IR")))
    assert len(list(store.list_objects("bucket", ""))) == 1
    assert len(s3.asked) == 1


@pytest.mark.parametrize(("status", "code"), [(400, "InvalidArgument"), (501, "NotImplemented")])
def test_a_store_that_refuses_the_question_lists_as_before(
    s3: ScriptedS3, store: S3Store, status: int, code: str
) -> None:
    s3.answer = lambda asked: (
        refusal(status, code) if QUESTION in asked.headers else listing(entry("a", "GLACIER"))
    )
    ((one,),) = store.list_objects("bucket", "")
    assert (one.key, one.restored_until) == ("a", 0.0)


def test_a_level_is_decoded_as_s3_encodes_it(s3: ScriptedS3, store: S3Store) -> None:
    prefixes = "<CommonPrefixes><Prefix>p/a+b%2B/</Prefix></CommonPrefixes>"
    s3.always(listing(entry("p/k"), prefixes))
    (page,) = store.list_level("bucket", "p/")
    assert page.prefixes == ("p/a b+/",)
    assert [one.key for one in page.objects] == ["p/k"]
    assert "delimiter=%2F" in s3.last.path


def test_pages_are_asked_for_by_the_token_of_the_page_before(
    s3: ScriptedS3, store: S3Store
) -> None:
    pages = [listing(entry("pa"), token="t+1/=="), listing(token="t2"), listing(entry("pc"))]
    s3.answer = lambda asked: pages[len(s3.asked) - 1]
    found = list(store.list_objects("bucket", "p", start_after="p0"))
    assert [[one.key for one in page] for page in found] == [["pa"], [], ["pc"]]
    assert [("continuation-token=t%2B1%2F%3D%3D" in asked.path) for asked in s3.asked] == [
        False,
        True,
        False,
    ]
    assert "start-after=p0" in s3.asked[0].path


def answer_pages(s3: ScriptedS3, pages: list[list[str]]) -> None:
    tokens = [*(f"t{number}" for number in range(1, len(pages))), ""]
    answers = [listing(*page, token=token) for page, token in zip(pages, tokens, strict=True)]
    s3.answer = lambda asked: answers[min(len(s3.asked), len(answers)) - 1]


UNUSUAL = entry("p/a").replace("<Size>7</Size>", "<Size>\n7</Size>")


@pytest.mark.parametrize(
    "pages",
    [
        [[entry("p/a"), entry("p/a")]],
        [[entry("p/a+b"), entry("p/a%20b")]],
        [[entry("p/b"), entry("p/a")]],
        [[UNUSUAL, UNUSUAL]],
        [[entry("p/b")], [entry("p/b")]],
        [[entry("p/b")], [entry("p/a")]],
        [[entry("p/b")], [], [entry("p/b")]],
        [[entry("o")]],
    ],
)
def test_a_listing_that_repeats_a_key_or_is_out_of_order_is_refused(
    s3: ScriptedS3, store: S3Store, pages: list[list[str]]
) -> None:
    answer_pages(s3, pages)
    with pytest.raises(IntegrityError, match="does not list keys in order, each once"):
        list(store.list_objects("bucket", "", start_after="o"))


def common(*prefixes: str) -> str:
    return "".join(f"<CommonPrefixes><Prefix>{one}</Prefix></CommonPrefixes>" for one in prefixes)


@pytest.mark.parametrize(
    "pages",
    [
        [[common("p/a/", "p/a/")]],
        [[common("p/b/", "p/a/")]],
        [[entry("p/a"), entry("p/a")]],
        [[common("p/b/")], [common("p/b/")]],
        [[entry("p/a"), common("p/c/")], [entry("p/b")]],
        [[entry("p/b")], [entry("p/c"), common("p/a/")]],
    ],
)
def test_a_level_that_repeats_a_name_or_is_out_of_order_is_refused(
    s3: ScriptedS3, store: S3Store, pages: list[list[str]]
) -> None:
    answer_pages(s3, pages)
    with pytest.raises(IntegrityError, match="does not list keys in order, each once"):
        list(store.list_level("bucket", "p/"))


@pytest.mark.parametrize("libcurl", [True, False], ids=["libcurl", "botocore"])
@pytest.mark.parametrize("region", [{"x-amz-bucket-region": "eu-west-1"}, {}])
@pytest.mark.parametrize("status", [301, 307, 400])
def test_a_server_that_always_redirects_is_reported_in_one_line(
    s3: ScriptedS3, status: int, region: dict[str, str], *, libcurl: bool
) -> None:
    body = b"<Error><Code>PermanentRedirect</Code></Error>"
    s3.always(Answer(status, body, region))
    with pytest.raises(InvalidInput) as caught:
        list(store_on(s3.url, libcurl=libcurl).list_objects("bucket", "p/"))
    assert "\n" not in str(caught.value)
    assert "bucket" in str(caught.value)
