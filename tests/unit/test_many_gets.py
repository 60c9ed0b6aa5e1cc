"""Small sources, hundreds concurrently, by one thread: bodies and errors as of one at a time."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator, Iterator, Sequence

import pytest

from compactor.errors import InvalidInput, SourceChanged, TransientStoreError, UnreadableSource
from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.s3 import many_gets
from compactor.s3.limiter import Limiter
from compactor.s3.store import S3Store, make_client
from tests.support.raw_s3 import Piece, raw_s3
from tests.support.s3_requests import NoTime
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal, scripted_s3


@pytest.fixture
def s3() -> Iterator[ScriptedS3]:
    with scripted_s3() as script:
        script.answer = content_of
        yield script


@pytest.fixture
def store(s3: ScriptedS3) -> S3Store:
    return store_on(s3)


def store_on(s3: ScriptedS3) -> S3Store:
    return S3Store(make_client(s3.url), threads=16, patience=NoTime().patience())


def sources(count: int) -> list[SourceObject]:
    """Of 0 to 39 bytes; their ETags say how many."""
    return [
        SourceObject("bucket", f"logs/{n:03}.json", f"{n % 40}-2", n % 40, 0.0)
        for n in range(count)
    ]


def body_at(key: str) -> bytes:
    number = int(key.rpartition("/")[2].partition(".")[0])
    return (f"{number} " * 40).encode()[: number % 40]


def content_of(asked: Asked) -> Answer:
    body = body_at(asked.path)
    return Answer(200, body, {"ETag": f'"{len(body)}-2"'})


def contents(bodies: Sequence[SourceBody]) -> list[bytes | None]:
    return [body.content for body in bodies]


def readers() -> list[str]:
    """Threads that read; that of all transfers ends soon after the last of them."""
    return [one.name for one in threading.enumerate() if one.name.startswith("read")]


def gets_of(s3: ScriptedS3, source: SourceObject) -> int:
    return sum(asked.path.endswith(source.key) for asked in s3.asked)


def test_sources_are_asked_for_once_each_and_come_in_order(s3: ScriptedS3, store: S3Store) -> None:
    wanted = sources(200)
    found = list(store.read_sources(wanted))
    assert [body.source for body in found] == wanted
    assert contents(found) == [body_at(source.key) for source in wanted]
    asked = [one for one in wanted if one.size]
    assert sorted(one.path for one in s3.asked) == [f"/bucket/{one.key}" for one in asked]
    assert {one.headers["if-match"] for one in s3.asked} == {f'"{one.etag}"' for one in asked}
    counts = store.requests.snapshot()
    assert counts == {"GET": len(asked), "bytes_read": sum(one.size for one in asked)}
    assert not readers()


def test_one_thread_reads_what_many_would(s3: ScriptedS3, store: S3Store) -> None:
    bodies = store.read_sources(sources(400))
    seen = {one.name for _ in bodies for one in threading.enumerate()}
    assert {name for name in seen if name.startswith(("read", "transfers"))} == {"transfers"}


def test_connections_are_used_again_by_the_next_sources() -> None:
    def answer(path: str, _: int) -> list[Piece]:
        body = body_at(path)
        told = f'ETag: "{len(body)}-2"\r\nContent-Length: {len(body)}'
        return [f"HTTP/1.1 200 OK\r\n{told}\r\n\r\n".encode() + body]

    with raw_s3(answer) as s3:
        store = S3Store(make_client(s3.url), threads=16, patience=NoTime().patience())
        for _ in range(3):
            assert contents(list(store.read_sources(sources(50))))
        assert 0 < s3.connections <= 16


def test_small_and_large_sources_are_read_beside_each_other(
    s3: ScriptedS3, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_gets, "GET_BYTES", 30)
    wanted = sources(400)
    assert contents(list(store.read_sources(wanted))) == [body_at(one.key) for one in wanted]
    assert len(s3.asked) == sum(one.size > 0 for one in wanted)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusal(412, "PreconditionFailed"), SourceChanged),
        (refusal(404, "NoSuchKey"), SourceChanged),
        (refusal(403, "AccessDenied"), UnreadableSource),
        (refusal(403, "InvalidObjectState"), UnreadableSource),
    ],
)
def test_what_is_wrong_with_one_source_is_reported_with_it_and_no_other(
    s3: ScriptedS3, store: S3Store, answer: Answer, kind: type[Exception]
) -> None:
    wanted = sources(30)
    bad = wanted[13]
    s3.answer = lambda asked: answer if asked.path.endswith(bad.key) else content_of(asked)
    found = list(store.read_sources(wanted))
    assert [body.source for body in found if body.error is not None] == [bad]
    assert isinstance(found[13].error, kind)
    assert contents(found[:13]) == [body_at(one.key) for one in wanted[:13]]
    assert contents(found[14:]) == [body_at(one.key) for one in wanted[14:]]
    assert gets_of(s3, bad) == 1


def test_what_is_wrong_with_all_of_them_ends_the_reading(s3: ScriptedS3, store: S3Store) -> None:
    s3.always(refusal(400, "ExpiredToken"))
    with pytest.raises(InvalidInput, match="credentials"):
        list(store.read_sources(sources(30)))
    assert not readers()


@pytest.mark.parametrize(
    "first",
    [
        Answer(0),
        Answer(200, b"x" * 13, {"ETag": '"13-2"'}, sent=5),
        Answer(200, b"too long by far", {"ETag": '"13-2"'}),
        Answer(500, b"?"),
        Answer(302, b"", {"Location": "/elsewhere"}),
        Answer(404, b""),
    ],
)
def test_what_comes_to_no_plain_answer_is_asked_again(
    s3: ScriptedS3, store: S3Store, first: Answer
) -> None:
    wanted = sources(30)
    bad, met = wanted[13], threading.Event()

    def answer(asked: Asked) -> Answer:
        if asked.path.endswith(bad.key) and not met.is_set():
            met.set()
            return first
        return content_of(asked)

    s3.answer = answer
    found = list(store.read_sources(wanted))
    assert contents(found) == [body_at(one.key) for one in wanted]
    assert met.is_set()
    assert max(gets_of(s3, one) for one in wanted if one != bad) == 1


def test_of_an_answer_that_does_not_come_the_other_way_hears(
    s3: ScriptedS3, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = sources(30)
    late, met, again = wanted[13], threading.Event(), threading.Event()
    # Connections that the server's queue has no place for come about after a second.
    monkeypatch.setattr(many_gets, "_GET_SECONDS", 4)

    def answer(asked: Asked) -> Answer:
        if asked.path.endswith(late.key):
            if met.is_set():
                again.set()
            else:
                met.set()
                again.wait(60)
        return content_of(asked)

    s3.answer = answer
    found = list(store.read_sources(wanted))
    assert contents(found) == [body_at(one.key) for one in wanted]
    assert again.is_set()
    assert gets_of(s3, late) == 2


def test_a_server_that_asks_to_slow_down_is_heard_and_asked_later(
    s3: ScriptedS3, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []
    monkeypatch.setattr(store.limiter, "slow_down", lambda: heard.append(1))
    wanted = sources(60)
    refused: set[str] = set()

    def answer(asked: Asked) -> Answer:
        if asked.path in refused:
            return content_of(asked)
        refused.add(asked.path)
        return refusal(503, "SlowDown")

    s3.answer = answer
    found = list(store.read_sources(wanted))
    assert contents(found) == [body_at(one.key) for one in wanted]
    assert len(heard) == len(refused) == sum(one.size > 0 for one in wanted)


@pytest.mark.parametrize("etag", [None, 'W/"{0}-2"', "{0}-2"])
def test_a_store_with_etags_of_its_own_is_asked_once_for_each(
    s3: ScriptedS3, store: S3Store, etag: str | None
) -> None:
    def answer(asked: Asked) -> Answer:
        body = body_at(asked.path)
        return Answer(200, body, {"ETag": etag.format(len(body))} if etag else {})

    s3.answer = answer
    wanted = sources(120)
    assert contents(list(store.read_sources(wanted))) == [body_at(one.key) for one in wanted]
    assert len(s3.asked) == sum(one.size > 0 for one in wanted)


def test_a_connection_that_is_closed_after_an_answer_is_left(
    s3: ScriptedS3, store: S3Store
) -> None:
    def answer(asked: Asked) -> Answer:
        given = content_of(asked)
        headers = {**given.headers, "Connection": "close"}
        return Answer(200, given.body, headers, sent=len(given.body))

    s3.answer = answer
    wanted = sources(60)
    assert contents(list(store.read_sources(wanted))) == [body_at(one.key) for one in wanted]
    assert len(s3.asked) == sum(one.size > 0 for one in wanted)


def test_a_server_that_is_not_there_is_reported_as_before(s3: ScriptedS3) -> None:
    store = S3Store(make_client("http://127.0.0.1:9"), threads=4, patience=NoTime().patience(1.0))
    with pytest.raises(TransientStoreError, match=r"tries|try"):
        list(store.read_sources(sources(3)))
    assert not readers()


def test_an_iteration_given_up_leaves_no_thread(s3: ScriptedS3, store: S3Store) -> None:
    bodies = store.read_sources(sources(300))
    next(bodies)
    del bodies
    assert not readers()
    for one in threading.enumerate():
        if one.name == "transfers":
            one.join(60)
            assert not one.is_alive()


def test_reads_that_are_given_up_leave_their_permits_and_are_counted(
    s3: ScriptedS3, store: S3Store
) -> None:
    wanted = sources(300)
    for _ in range(4):
        bodies = store.read_sources(wanted)
        assert [next(bodies).content, next(bodies).content] == [b"", b"1"]
        assert isinstance(bodies, Generator)
        bodies.close()
    # A request may be lost with its connection, and yet went out.
    assert store.requests.snapshot()["GET"] >= len(s3.asked)
    taken = [store.limiter.begin() for _ in range(store.limiter.limit)]
    assert None not in taken


def test_an_error_that_was_not_expected_reaches_who_waits(
    s3: ScriptedS3, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> SourceBody:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr(many_gets, "_body_of", broken)
    with pytest.raises(RuntimeError, match="not foreseen"):
        list(store.read_sources(sources(100)))
    assert not readers()


def test_no_read_begins_once_the_invocation_ends(s3: ScriptedS3, store: S3Store) -> None:
    class Over:
        def remaining_seconds(self) -> float:
            return 0.0

    with pytest.raises(TransientStoreError, match="the invocation ends"):
        list(store.within(Over()).read_sources(sources(30)))
    assert s3.asked == []


def test_a_permit_that_is_not_there_is_not_waited_for() -> None:
    limiter = Limiter(2, clock=itertools.count().__next__)
    taken = [limiter.begin(), limiter.begin()]
    assert None not in taken
    assert limiter.begin() is None
    limiter.end(0.0, 1, good=True)
    with limiter.permit():
        assert limiter.begin() is None
    assert limiter.begin() is not None
