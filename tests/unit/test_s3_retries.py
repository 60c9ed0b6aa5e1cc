"""Each kind of request of the S3 store against each kind of trouble on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest

from compactor.errors import (
    CompactorError,
    IntegrityError,
    InvalidInput,
    ObjectMissing,
    SourceChanged,
    TransientStoreError,
)
from compactor.model import SourceObject
from compactor.ports import ObjectHead
from compactor.s3.retries import Patience
from compactor.s3.store import S3Store, make_client
from tests.support.every_request import HEADERS, REQUESTS, read
from tests.support.s3_requests import ETAG, SOURCE, NoTime, complete, only
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal, scripted_s3


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedS3]:
    with scripted_s3() as script:
        yield script


@pytest.fixture
def s3(server: ScriptedS3) -> ScriptedS3:
    """One server and one client for all tests here: a client takes 0.1 seconds to make."""
    server.asked.clear()
    return server


client_on = cache(make_client)


def store_on(
    url: str, *, libcurl: bool = False, time: NoTime | None = None, threads: int = 2
) -> S3Store:
    patience = (time or NoTime()).patience()
    return S3Store(client_on(url), threads=threads, libcurl=libcurl, patience=patience)


TROUBLE: dict[str, Answer] = {
    "slow down": refusal(503, "SlowDown"),
    "unavailable": refusal(503, "ServiceUnavailable"),
    "internal error": refusal(500, "InternalError"),
    "too many requests": refusal(429, "TooManyRequests"),
    "a proxy's error": Answer(502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"}),
    "a throttled key": refusal(400, "KMS.ThrottlingException"),
    "a request that came too slowly": refusal(400, "RequestTimeout"),
    "half a request": refusal(400, "IncompleteBody"),
    "aborted": refusal(409, "OperationAborted"),
    "damaged on the way": refusal(400, "XAmzContentSHA256Mismatch"),
    "no answer": Answer(0),
    "half an answer": Answer(200, b"<ListBucketResult></ListBucketResult>", HEADERS, sent=11),
}
# Answers without a body cannot be cut short, nor tell S3's code; open() has tests of its own.
NO_HALVES = {"head", "part", "put", "create", "abort", "delete alone", "open"}
CODELESS = {"head"}
USELESS = ((400, "InvalidArgument"), (405, "MethodNotAllowed"))
# Those that libcurl makes, too.
BY_LIBCURL = {"read"}
BOTH = [(name, libcurl) for name in REQUESTS for libcurl in {False, name in BY_LIBCURL}]


@dataclass(frozen=True)
class Left:
    """So much of an invocation."""

    seconds: float

    def remaining_seconds(self) -> float:
        return self.seconds


def of_no_time(answer: object) -> object:
    """The answer without the second in which it was given."""
    return replace(answer, answered_at=0.0) if isinstance(answer, ObjectHead) else answer


@pytest.mark.parametrize(
    ("name", "libcurl", "trouble"),
    [
        (name, libcurl, trouble)
        for name, libcurl in BOTH
        for trouble, answer in TROUBLE.items()
        if not (trouble == "half an answer" and name in NO_HALVES)
        if not (answer.status in {400, 409} and name in CODELESS)
    ],
)
def test_after_trouble_on_the_way_the_same_is_asked_again(
    s3: ScriptedS3, name: str, libcurl: bool, trouble: str
) -> None:
    ask, sound = REQUESTS[name]
    s3.answer = sound
    store = store_on(s3.url, libcurl=libcurl)
    expected, asked = ask(store), len(s3.asked)
    s3.asked.clear()

    def troubled(request: Asked) -> Answer:
        # The HEAD before the ranges has a case of its own, without a body.
        heads = name == "ranges" and sum(one.method == "HEAD" for one in s3.asked)
        is_first = len(s3.asked) - heads <= 2 and not (heads and request.method == "HEAD")
        return TROUBLE[trouble] if is_first else sound(request)

    s3.answer = troubled
    assert of_no_time(ask(store)) == of_no_time(expected)
    assert len(s3.asked) == asked + 2
    if asked == 1:
        first, *_, last = s3.asked
        assert (first.method, first.path, first.body) == (last.method, last.path, last.body)
        for header in ("if-match", "if-none-match", "range", "x-amz-copy-source-if-match"):
            assert first.headers.get(header) == last.headers.get(header)


@pytest.mark.parametrize(("name", "libcurl"), BOTH)
def test_no_kind_of_request_outlives_the_deadline(s3: ScriptedS3, name: str, libcurl: bool) -> None:
    time = NoTime()
    s3.always(refusal(503, "SlowDown"))
    began = time.now
    with pytest.raises(TransientStoreError, match=r"tries in \d+\.\d s, the last answer: 503"):
        REQUESTS[name][0](store_on(s3.url, libcurl=libcurl, time=time))
    # Of ranges several are asked for at once, and each waits.
    assert 100.0 < time.now - began < 120.0 or name == "ranges"


@pytest.mark.parametrize(("name", "libcurl"), BOTH)
@pytest.mark.parametrize(("status", "code"), [*USELESS, (501, "NotImplemented")])
def test_what_another_try_cannot_help_is_asked_once(
    s3: ScriptedS3, name: str, libcurl: bool, status: int, code: str
) -> None:
    s3.always(refusal(status, code))
    ask = REQUESTS[name][0]
    store = store_on(s3.url, libcurl=libcurl)
    if name.startswith("delete"):
        # Told key by key, because others may be deleted nevertheless.
        (refused,) = ask(store).refused
        assert refused.reason.startswith(code)
    else:
        with pytest.raises(InvalidInput, match=rf"s3://bucket/\S+: {status}") as caught:
            ask(store)
        assert caught.value.field == "request"
    # botocore asks HEAD of the bucket, whether the object's 400 means another region.
    assert len(s3.asked) == 1 or name == "ranges" or (name, status) == ("head", 400)


def test_a_range_past_the_end_of_an_object_is_missing_and_asked_once(s3: ScriptedS3) -> None:
    s3.always(refusal(416, "InvalidRange"))
    with pytest.raises(ObjectMissing):
        REQUESTS["range"][0](store_on(s3.url))
    assert len(s3.asked) == 1


@pytest.mark.parametrize(("name", "libcurl"), BOTH)
def test_being_asked_to_slow_down_by_whatever_request_reaches_the_limiter(
    s3: ScriptedS3, name: str, libcurl: bool
) -> None:
    store = store_on(s3.url, libcurl=libcurl, threads=8)
    s3.always(refusal(503, "SlowDown"))
    with pytest.raises(TransientStoreError):
        REQUESTS[name][0](store)
    assert store.limiter.limit == 4


def test_a_try_may_hear_nothing_for_no_longer_than_the_invocation_lasts(s3: ScriptedS3) -> None:
    silences: list[float | None] = []
    client = make_client(s3.url)
    store = S3Store(client, libcurl=False, patience=NoTime().patience())
    client.meta.events.register_last(
        "before-send.s3",
        lambda request, **_: silences.append(request.context.get("read_timeout")),
    )
    s3.always(Answer(200, b"hello", HEADERS))
    store.within(Left(25.0)).get("bucket", "k")
    store.get("bucket", "k")
    assert silences == [20.0, None]


@pytest.mark.parametrize("libcurl", [True, False])
def test_a_source_is_not_waited_for_when_only_the_time_for_its_commit_is_left(
    s3: ScriptedS3, libcurl: bool
) -> None:
    time = NoTime()
    store = store_on(s3.url, libcurl=libcurl, time=time).within(Left(900.0))
    s3.always(refusal(503, "SlowDown"))
    time.now += 850
    with pytest.raises(TransientStoreError):
        only(store.read_sources([SOURCE]))
    assert 900 - (time.now - 1_000) >= 45, "no wait reached beyond the time for reading"
    s3.always(Answer())
    time.now += 6
    with pytest.raises(TransientStoreError, match="the invocation ends"):
        only(store.read_sources([SOURCE]))
    store.put("bucket", "k", b"body")


def test_a_store_within_an_invocation_is_the_same_store(s3: ScriptedS3) -> None:
    class Ended:
        def remaining_seconds(self) -> float:
            return 0.0

    store = store_on(s3.url, libcurl=True)
    late = store.within(Ended())
    s3.always(Answer(200, b"hello", HEADERS))
    assert late.get("bucket", "k") == b"hello"
    assert store.requests.snapshot() == late.requests.snapshot() != {}
    with pytest.raises(TransientStoreError, match="the invocation ends"):
        only(late.read_sources([SOURCE]))
    assert only(store.read_sources([SOURCE])).content == b"hello"


def test_reading_that_is_given_up_waits_for_no_retry(s3: ScriptedS3) -> None:
    cut_short: list[bool] = []
    refused = threading.Event()

    def pause(stopped: threading.Event, _: float) -> bool:
        refused.set()
        cut_short.append(stopped.wait(100))
        return True

    store = S3Store(client_on(s3.url), threads=2, patience=Patience(pause=pause))
    sound = Answer(200, b"hello", HEADERS)
    s3.answer = lambda asked: refusal(503, "SlowDown") if "slow" in asked.path else sound
    # More than the first task reads.
    keys = [*(f"sound-{number}" for number in range(8)), "slow"]
    bodies = store.read_sources(SourceObject("bucket", key, ETAG, 5, 0.0) for key in keys)
    next(bodies)
    assert refused.wait(100)
    bodies.close()  # type: ignore[attr-defined] # it is a generator
    assert cut_short == [True]


@pytest.mark.parametrize(("name", "code"), [("part", "BadDigest"), ("put", "BadDigest")])
def test_what_never_arrives_as_it_was_sent_is_damaged(s3: ScriptedS3, name: str, code: str) -> None:
    s3.always(refusal(400, code))
    with pytest.raises(IntegrityError, match="18 tries"):
        REQUESTS[name][0](store_on(s3.url))


def test_an_output_that_differs_from_its_checksum_is_not_tried_again(s3: ScriptedS3) -> None:
    s3.always(refusal(400, "BadDigest"))
    with pytest.raises(IntegrityError):
        complete(store_on(s3.url))
    assert len(s3.asked) == 1


@pytest.mark.parametrize("name", ["complete", "copy"])
def test_an_error_with_status_200_is_an_error(s3: ScriptedS3, name: str) -> None:
    ask, sound = REQUESTS[name]
    begun_too_early = Answer(200, refusal(200, "InternalError").body)
    s3.answer = lambda asked: begun_too_early if len(s3.asked) == 1 else sound(asked)
    ask(store_on(s3.url))
    assert len(s3.asked) == 2


def test_a_clock_that_is_wrong_must_be_set_first(s3: ScriptedS3) -> None:
    s3.always(refusal(403, "RequestTimeTooSkewed"))
    with pytest.raises(CompactorError) as caught:
        store_on(s3.url).get("bucket", "k")
    assert (type(caught.value), len(s3.asked)) == (TransientStoreError, 1)


@pytest.mark.parametrize(
    ("after", "date", "wait"),
    [
        ("7", "Fri, 02 Jan 2026 00:00:00 GMT", 7.1),
        ("Fri, 02 Jan 2026 00:00:09 GMT", "Fri, 02 Jan 2026 00:00:00 GMT", 9.1),
        ("Thu, 01 Jan 2026 00:00:00 GMT", "Fri, 02 Jan 2026 00:00:00 GMT", 0.1),
        ("soon", "Fri, 02 Jan 2026 00:00:00 GMT", 0.1),
    ],
)
def test_a_retry_after_of_the_store_is_obeyed(
    s3: ScriptedS3, after: str, date: str, wait: float
) -> None:
    time = NoTime()
    busy = refusal(503, "SlowDown")
    busy = Answer(busy.status, busy.body, {"Retry-After": after, "Date": date})
    s3.answer = lambda asked: busy if len(s3.asked) == 1 else Answer(200, b"hello", HEADERS)
    store_on(s3.url, time=time).get("bucket", "k")
    assert time.waits == [pytest.approx(wait)]


def test_a_source_that_another_key_names_busy_is_not_asked_to_slow_down(s3: ScriptedS3) -> None:
    store = store_on(s3.url, libcurl=True, threads=8)
    s3.always(refusal(500, "InternalError"))
    source = SourceObject("bucket", "logs/503-SlowDown-429.json", ETAG, 5, 0.0)
    with pytest.raises(TransientStoreError):
        only(store.read_sources([source]))
    assert store.limiter.limit == 8


def test_a_source_refused_for_good_is_read_once(s3: ScriptedS3) -> None:
    s3.always(refusal(400, "ExpiredToken"))
    with pytest.raises(InvalidInput) as caught:
        read(store_on(s3.url, libcurl=True))
    assert (caught.value.field, len(s3.asked)) == ("credentials", 1)


def test_a_source_that_changed_between_two_tries_is_reported_so(s3: ScriptedS3) -> None:
    answers = [refusal(503, "SlowDown"), refusal(412, "PreconditionFailed")]
    s3.answer = lambda asked: answers[len(s3.asked) - 1]
    with pytest.raises(SourceChanged):
        read(store_on(s3.url, libcurl=True))
