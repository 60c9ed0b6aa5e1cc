"""Reads over libcurl: connections, threads, processes, and what an answer is made of."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

import pytest

from compactor.s3 import transfers as module
from compactor.s3.curl_handle import Keys, Received, Request, Site
from compactor.s3.transfers import Transfers
from compactor.s3.translate import Again
from tests.conftest import REPO_ROOT
from tests.support.raw_s3 import Piece, RawS3, raw_s3
from tests.support.scripted_s3 import Answer, ScriptedS3, scripted_s3

SITE, KEYS = Site("us-east-1", "", ""), Keys("access", "secret")
PLAIN = b'HTTP/1.1 200 OK\r\nETag: "e"\r\nContent-Length: 5\r\n\r\nhello'
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
TWICE = b"HTTP/1.1 200 OK\r\nA: 1\r\nA: 2\r\nContent-Length: 5\r\n\r\nhello"
CONTINUED = b"HTTP/1.1 100 Continue\r\nETag: no\r\n\r\n" + PLAIN
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
OLD = b"HTTP/1.0 200 OK\r\n\r\nhello"
REFUSED = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello"
TRAILED = (
    b'HTTP/1.1 200 OK\r\nETag: "e"\r\nTransfer-Encoding: chunked\r\n\r\n'
    b"5\r\nhello\r\n0\r\nETag: no\r\n\r\n"
)


def get(s3: RawS3, **given: object) -> Request:
    request = Request(SITE, KEYS, f"{s3.url}/bucket/key", [], 60.0, 1_000)
    return request._replace(**given)  # type: ignore[arg-type]  # its own fields


def ask(transfers: Transfers, request: Request) -> Received:
    answered: Future[Received | Exception] = Future()
    transfers.call(lambda: transfers.start(request, answered.set_result))
    answer = answered.result()
    if isinstance(answer, Exception):
        raise answer
    return answer


def always(*pieces: Piece) -> Callable[[str, int], Sequence[Piece]]:
    return lambda path, number: pieces


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("answer", [PLAIN, CHUNKED, TWICE, CONTINUED, TRAILED])
def test_an_answer_is_whole_however_it_comes_and_leaves_its_connection_open(
    answer: bytes, cut: bool
) -> None:
    pieces: list[Piece] = [answer]
    if cut:
        pieces = [answer[:9], 0.01, answer[9:24], 0.01, answer[24:-3], 0.01, answer[-3:]]
    transfers = Transfers()
    with raw_s3(always(*pieces)) as s3:
        for _ in range(3):
            received = ask(transfers, get(s3))
            assert (received.status, received.body) == (200, b"hello")
        assert s3.connections == 1


@pytest.mark.parametrize("answer", [CLOSING, OLD])
def test_an_answer_that_ends_its_connection_is_whole_and_the_next_one_has_another(
    answer: bytes,
) -> None:
    transfers = Transfers()
    with raw_s3(always(answer, None)) as s3:
        assert [ask(transfers, get(s3)).body for _ in range(2)] == [b"hello"] * 2
        assert s3.connections == 2


@pytest.mark.parametrize("more", [PLAIN, PLAIN[:9], b"x"])
def test_after_more_than_an_answer_a_connection_is_not_used_again(more: bytes) -> None:
    transfers = Transfers()
    with raw_s3(always(PLAIN + more)) as s3:
        assert [ask(transfers, get(s3)).body for _ in range(3)] == [b"hello"] * 3
        assert s3.connections == 3


@pytest.mark.parametrize("answer", [PLAIN, CONTINUED, TRAILED])
def test_headers_are_those_of_the_last_answer_alone(answer: bytes) -> None:
    with raw_s3(always(answer)) as s3:
        received = ask(Transfers(), get(s3))
    assert received.etag == received.headers["etag"] == '"e"'


def test_names_of_headers_are_in_lower_case_and_values_without_the_blanks_around_them() -> None:
    answer = b'HTTP/1.1 200 OK\r\nETag:"e"\r\nX-Blank: \t a b \r\ncontent-LENGTH: 0\r\n\r\n'
    with raw_s3(always(answer)) as s3:
        received = ask(Transfers(), get(s3))
    assert received.headers == {"etag": '"e"', "x-blank": "a b", "content-length": "0"}


@pytest.mark.parametrize("answer", [PLAIN[:-1], TWICE[:-1]])
def test_a_body_that_breaks_off_is_no_answer(answer: bytes) -> None:
    with raw_s3(always(answer, None)) as s3, pytest.raises(Again) as caught:
        ask(Transfers(), get(s3))
    assert caught.value.cut_short


@pytest.mark.parametrize("answer", [b"", PLAIN[:3], b"hello\r\n\r\n"])
def test_what_has_no_status_is_no_answer(answer: bytes) -> None:
    with raw_s3(always(answer, None)) as s3, pytest.raises(Again):
        ask(Transfers(), get(s3))


def test_no_time_limit_is_no_error() -> None:
    with raw_s3(always(PLAIN)) as s3:
        assert ask(Transfers(), get(s3, seconds=float("inf"))).body == b"hello"


def test_an_answer_that_does_not_come_in_time_is_an_error() -> None:
    with raw_s3(always(60.0)) as s3, pytest.raises(Again, match="timed out"):
        ask(Transfers(), get(s3, seconds=0.2))


@pytest.mark.parametrize(("seconds", "needed"), [(29, 1), (31, 2), (90_000, 2), (-1, 2)])
def test_a_connection_that_waited_long_is_not_used_again(
    seconds: float, needed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a process that was frozen meanwhile, the other side may have tried to end it in vain.
    transfers, now = Transfers(), 1e9
    monkeypatch.setattr(time, "time", lambda: now)
    with raw_s3(always(PLAIN)) as s3:
        ask(transfers, get(s3))
        now += seconds
        ask(transfers, get(s3))
        assert s3.connections == needed


def test_the_thread_ends_soon_and_connections_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINGER_SECONDS", 0.0)
    transfers = Transfers()
    with raw_s3(always(PLAIN)) as s3:
        for _ in range(5):
            assert ask(transfers, get(s3)).status == 200
            thread = transfers._thread
            if thread is not None:
                thread.join(60)
                assert not thread.is_alive()
        assert s3.connections == 1


def test_a_process_that_was_forked_has_connections_of_its_own() -> None:
    transfers = Transfers()
    with raw_s3(always(PLAIN)) as s3:
        ask(transfers, get(s3))
        child = os.fork()
        if not child:
            status = 1
            try:
                status = 0 if ask(transfers, get(s3)).body == b"hello" else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        ask(transfers, get(s3))
        assert s3.connections == 2


def test_an_error_that_was_not_expected_reaches_who_waits_and_not_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transfers = Transfers()

    def broken() -> None:
        monkeypatch.undo()
        raise RuntimeError("not foreseen")

    monkeypatch.setattr(transfers, "_finish", broken)
    with raw_s3(always(PLAIN)) as s3:
        with pytest.raises(RuntimeError, match="not foreseen"):
            ask(transfers, get(s3))
        assert ask(transfers, get(s3)).body == b"hello"


def test_a_thousand_requests_of_many_threads_are_each_answered() -> None:
    transfers, found = Transfers(), list[Received]()
    with raw_s3(always(PLAIN)) as s3:

        def ask_often() -> None:
            found.extend(ask(transfers, get(s3)) for _ in range(50))

        threads = [threading.Thread(target=ask_often) for _ in range(20)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert [one.body for one in found] == [b"hello"] * 1_000
        assert s3.connections <= 20


@pytest.fixture
def s3() -> Iterator[ScriptedS3]:
    with scripted_s3() as script:
        yield script


def test_no_request_has_anything_of_the_one_before(s3: ScriptedS3) -> None:
    s3.always(Answer(body=b"hello"))
    transfers, url = Transfers(), f"{s3.url}/b/k"
    bare = Request(SITE, KEYS, url, [b"if-match: a"], 60.0, 100)
    ask(transfers, bare)
    expected = (s3.last.method, s3.last.body, s3.last.headers.keys())
    others = [
        bare._replace(headers=[b'If-Match: "e"', b"x-amz-security-token: t"], most_bytes=5),
        bare._replace(url=f"{url}2", headers=[b"x-a: b"], seconds=9.0),
    ]
    for one in others:
        ask(transfers, one)
        for _ in range(2):
            assert ask(transfers, bare).body == b"hello"
            assert (s3.last.method, s3.last.body, s3.last.headers.keys()) == expected
            assert s3.last.path == "/b/k"


_WITHOUT_PYCURL = """
import sys
sys.modules["pycurl"] = None
from compactor.model import SourceObject
from compactor.s3.store import S3Store, make_client
store = S3Store(make_client(sys.argv[1]))
(body,) = store.read_sources([SourceObject("bucket", "k", "e", 5, 0.0)])
print(store.get("bucket", "k"), body.content)
"""


def test_without_pycurl_botocore_makes_every_request(s3: ScriptedS3) -> None:
    date = "Fri, 02 Jan 2026 00:00:00 GMT"
    s3.always(Answer(200, b"hello", {"ETag": '"e"', "Last-Modified": date}))
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_PYCURL, s3.url],
        cwd=REPO_ROOT / "functions",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "b'hello' b'hello'\n"
    assert all("amz-sdk-request" in one.headers for one in s3.asked)
