"""Small sources, hundreds at once, by one thread: bodies and errors as of one at a time."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import InvalidInput, SourceChanged, TransientStoreError, UnreadableSource
from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.stores import get_runs, many_gets
from compactor.stores.limiter import Limiter
from compactor.stores.plain_answers import Answered, NotPlain, answer_in
from compactor.stores.s3 import S3Store, make_client
from compactor.stores.signing import GetSigner, Keys, signed
from tests.support.s3_requests import NoTime
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal, scripted_s3

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OK_ANSWER = b'HTTP/1.1 200 OK\r\nETag: "Ab-2"\r\nContent-Length: 5\r\n\r\nhello'


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
    seen = {name for _ in bodies for name in readers() if not name.startswith("read-connect")}
    assert seen == {"read-many"}


def test_connections_are_used_again_by_the_next_sources(s3: ScriptedS3, store: S3Store) -> None:
    for _ in range(3):
        list(store.read_sources(sources(50)))
    assert store._direct is not None
    (idle,) = store._direct.connections._idle.values()
    assert 0 < len(idle) <= 16
    assert all(connection.sock is not None for _, connection in idle)


def test_a_connection_that_waits_holds_nothing_of_the_last_answer() -> None:
    here, there = socket.socketpair()
    with here, there:
        line = get_runs.Line(SimpleNamespace(sock=here))  # type: ignore[arg-type]  # all that it asks of one
        line.run = SimpleNamespace(next=sources(6)[5])  # type: ignore[assignment]  # all that it asks of it
        there.sendall(OK_ANSWER)
        found = line.hear()
        assert found is not None
        assert found.body == b"hello"
        assert line._arrived == b""
        line.run = None
        there.sendall(OK_ANSWER[:9])
        with pytest.raises(ConnectionError, match="nobody asked"):
            line.hear()


def test_small_and_large_sources_are_read_beside_each_other(
    s3: ScriptedS3, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_gets, "MOST_BYTES", 30)
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
def test_what_is_wrong_with_one_source_is_told_of_it_and_no_other(
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
    asked_again: list[bool] = []
    # Time stands until it is asked for, and then all that may be waited for is over.
    clock = SimpleNamespace(monotonic=lambda: 1_100.0 if met.is_set() else 1_000.0)
    monkeypatch.setattr(many_gets, "time", clock)

    def answer(asked: Asked) -> Answer:
        if asked.path.endswith(late.key):
            if met.is_set():
                again.set()
            else:
                met.set()
                asked_again.append(again.wait(60))
        return content_of(asked)

    s3.answer = answer
    found = list(store.read_sources(wanted))
    assert contents(found) == [body_at(one.key) for one in wanted]
    assert asked_again == [True]
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
def test_a_store_with_answers_of_its_own_is_asked_so_once(
    s3: ScriptedS3, store: S3Store, etag: str | None
) -> None:
    def answer(asked: Asked) -> Answer:
        body = body_at(asked.path)
        return Answer(200, body, {"ETag": etag.format(len(body))} if etag else {})

    s3.answer = answer
    wanted = sources(120)
    for _ in range(2):
        found = list(store.read_sources(wanted))
        assert contents(found) == [body_at(one.key) for one in wanted]
    assert len(s3.asked) == 1 + 2 * sum(one.size > 0 for one in wanted)


def test_a_connection_that_is_closed_behind_an_answer_is_left(
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


def test_a_server_that_is_not_there_is_told_as_ever(s3: ScriptedS3) -> None:
    store = S3Store(make_client("http://127.0.0.1:9"), threads=4, patience=NoTime().patience(1.0))
    with pytest.raises(TransientStoreError, match=r"tries|try"):
        list(store.read_sources(sources(3)))
    assert not readers()


def test_an_iteration_given_up_leaves_no_thread_behind(s3: ScriptedS3, store: S3Store) -> None:
    bodies = store.read_sources(sources(300))
    next(bodies)
    assert readers()
    del bodies
    assert not readers()


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


def test_an_error_that_nobody_expected_reaches_who_waits(
    s3: ScriptedS3, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Answered:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr(get_runs, "answer_in", broken)
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


def test_a_store_that_does_not_honour_if_match_is_asked_one_by_one(s3: ScriptedS3) -> None:
    store = store_on(s3)
    store = store.with_traits(replace(store.traits, reads_if_match=False))
    bodies = store.read_sources(sources(40))
    next(bodies)
    assert "read-many" not in readers()
    bodies.close()  # type: ignore[attr-defined] # a generator behind the Iterator


@given(st.integers(0, len(OK_ANSWER) - 1))
def test_an_answer_is_whole_with_its_last_byte(cut: int) -> None:
    assert answer_in(OK_ANSWER[:cut], 5) is None
    assert answer_in(OK_ANSWER, 5) == Answered(200, "ab-2", b"hello", stays=True)
    with pytest.raises(ConnectionError):
        answer_in(OK_ANSWER + OK_ANSWER[:1], 5)


CHUNKED = (
    b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"
)


@given(st.integers(0, len(CHUNKED) - 1))
def test_a_refusal_comes_in_chunks_too(cut: int) -> None:
    assert answer_in(CHUNKED[:cut], 5) is None
    assert answer_in(CHUNKED, 5) == Answered(403, "", b"abc0123456789", stays=True)
    with pytest.raises(ConnectionError):
        answer_in(CHUNKED + b"x", 5)


@pytest.mark.parametrize(
    "head",
    [
        b"Transfer-Encoding: chunked",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Content-Length: 5\r\nContent-Length: 5",
        b"Content-Length: five",
        b"Server: s",
    ],
)
def test_a_success_without_a_plain_length_is_not_read_here(head: bytes) -> None:
    with pytest.raises(NotPlain):
        answer_in(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\nhello", 5)


@pytest.mark.parametrize(
    "arrived",
    [
        b"HTTP/1.0 403 Forbidden\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 403 Forbidden\r\nServer: s\r\n\r\nx",
        b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"no answer\r\n\r\n",
        b"x" * 20_000,
    ],
)
def test_what_says_nothing_is_no_answer(arrived: bytes) -> None:
    with pytest.raises(ConnectionError):
        answer_in(arrived, 5)


@pytest.mark.parametrize("key", ["a/b.json", "a//b/../c", " é+%?#&=~*'()!,;:@$", "\x01"])
@pytest.mark.parametrize("token", [None, "a/token==", "two  blanks"])
def test_a_get_is_signed_as_any_request(key: str, token: str | None) -> None:
    keys, path = Keys("access", "secret", token), "/bucket/" + quote(key, safe="/~")
    signer = GetSigner("host:9000", "agent", keys, "eu-west-1", NOW)
    line, *told = signer.request(path, "etag-2").decode().removesuffix("\r\n\r\n").split("\r\n")
    headers = {"host": "host:9000", "if-match": '"etag-2"'}
    expected = signed(("GET", path, ""), headers, b"", keys=keys, region="eu-west-1", at=NOW)
    sent = dict(one.split(": ", 1) for one in told)
    assert line == f"GET {path} HTTP/1.1"
    assert sent.pop("accept-encoding") == "identity"
    assert sent.pop("user-agent") == "agent"
    assert sent == expected | ({"x-amz-security-token": " ".join(token.split())} if token else {})


def test_a_permit_that_is_not_there_is_not_waited_for() -> None:
    limiter = Limiter(2, clock=itertools.count().__next__)
    taken = [limiter.begin(), limiter.begin()]
    assert None not in taken
    assert limiter.begin() is None
    limiter.end(0.0, 1, good=True)
    with limiter.permit():
        assert limiter.begin() is None
    assert limiter.begin() is not None
