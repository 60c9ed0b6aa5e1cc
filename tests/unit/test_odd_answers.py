"""Whatever bytes answer the GET of a small source: what was listed is read, or an error raised."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest

from compactor.errors import CompactorError
from compactor.model import SourceObject
from compactor.s3 import many_gets
from compactor.s3.curl_handle import Keys, Received, Request, Site
from compactor.s3.routes import Route
from compactor.s3.store import S3Store, make_client
from compactor.s3.transfers import Transfers
from tests.support import certificate
from tests.support.raw_s3 import Piece, RawS3, raw_s3
from tests.support.s3_requests import NoTime

SIZE = 40
Odd = Callable[[bytes, str], Sequence[Piece]]
XML = "<Error><Code>{0}</Code><Message>message of {0}</Message></Error>"


def source(number: int) -> SourceObject:
    # Of an upload in parts, so that it says nothing of the bytes.
    return SourceObject("bucket", f"logs/{number:04}.json", f"{number:04}-3", SIZE, 0.0)


def body_of(one: SourceObject) -> bytes:
    return f"{one.key} ".encode().ljust(SIZE, b".")


def head(*lines: str, status: str = "200 OK", version: str = "1.1") -> bytes:
    return "\r\n".join((f"HTTP/{version} {status}", *lines, "", "")).encode()


def plain(body: bytes, etag: str, *lines: str, length: str = str(SIZE)) -> bytes:
    """The success that was asked for, but for what is told here."""
    return head(f'ETag: "{etag}"', f"Content-Length: {length}", *lines) + body


def in_chunks(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    told = f"{len(body):x}".encode()
    return (
        head("Transfer-Encoding: chunked", *lines, status=status)
        + told
        + b"\r\n"
        + body
        + b"\r\n0\r\n\r\n"
    )


def refused(status: str, code: str, *lines: str) -> bytes:
    body = XML.format(code).encode()
    return head(f"Content-Length: {len(body)}", *lines, status=status) + body


def of_another() -> bytes:
    return plain(body_of(source(0)), source(0).etag)


def part(body: bytes, etag: str) -> bytes:
    told = f"Content-Range: bytes 0-{len(body) - 1}/{SIZE}"
    whole = plain(body, etag, told, length=str(len(body)))
    return whole.replace(b"200 OK", b"206 Partial Content")


# Where the answer to one request begins and ends, and the next.
EDGES: Mapping[str, Odd] = {
    "plain": lambda b, e: [plain(b, e)],
    "byte by byte": lambda b, e: [bytes([byte]) for byte in plain(b, e)],
    "two glued": lambda b, e: [plain(b, e) * 2],
    "another's glued": lambda b, e: [plain(b, e) + of_another()],
    "another's later": lambda b, e: [plain(b, e), 0.02, of_another()],
    "another's before": lambda b, e: [of_another() + plain(b, e)],
    "another's instead": lambda b, e: [of_another()],
    "bytes behind": lambda b, e: [plain(b, e) + b"x"],
    "bytes behind later": lambda b, e: [plain(b, e), 0.02, b"HTTP/1.1 200 "],
    "broken off": lambda b, e: [plain(b, e)[:-1], None],
    "nothing": lambda b, e: [None],
    "half a head": lambda b, e: [plain(b, e)[:30], None],
    "half a body, and silence": lambda b, e: [plain(b, e)[:-9], 5.0, plain(b, e)[-9:]],
    "an answer that comes too late": lambda b, e: [5.0, plain(b, e)],
    "a byte now and then": lambda b, e: [
        piece for byte in plain(b, e) for piece in (bytes([byte]), 0.05)
    ],
    "100 before": lambda b, e: [head(status="100 Continue") + plain(b, e)],
    "103 before": lambda b, e: [head("Link: x", status="103 Early Hints"), 0.02, plain(b, e)],
    "HTTP/1.0": lambda b, e: [plain(b, e).replace(b"1.1", b"1.0", 1), None],
    "closes": lambda b, e: [plain(b, e, "Connection: close"), None],
    "closes among others": lambda b, e: [plain(b, e, "connection: x, Close"), None],
    "closes unsaid": lambda b, e: [plain(b, e), None],
    "no HTTP": lambda b, e: [b"SSH-2.0-x\r\n\r\n", None],
}
# How long it says that it is, and what of the object that is.
LENGTHS: Mapping[str, Odd] = {
    "blanks": lambda b, e: [plain(b, e, length=f"\t {SIZE} \t")],
    "shorter": lambda b, e: [plain(b[:-1], e, length=str(SIZE - 1))],
    "longer": lambda b, e: [plain(b + b"x", e, length=str(SIZE + 1))],
    "very long": lambda b, e: [plain(b, e, length="999999999"), None],
    "a part": lambda b, e: [part(b[:5], e)],
    "a range that is all": lambda b, e: [part(b, e)],
    "long head": lambda b, e: [plain(b, e, "X-A: " + "b" * 60_000)],
    "endless head": lambda b, e: [head("X-A: " + "b" * 300_000)[:-4], None],
    "a line in two": lambda b, e: [plain(b, e, "X-A: b", " c")],
    "stored with an encoding": lambda b, e: [plain(b, e, "Content-Encoding: gzip")],
}
REFUSALS: Mapping[str, Odd] = {
    "an error with status 200": lambda b, e: [refused("200 OK", "InternalError")],
    "304": lambda b, e: [head(status="304 Not Modified")],
    "301": lambda b, e: [refused("301 Moved Permanently", "PermanentRedirect")],
    "307": lambda b, e: [head("Location: /", "Content-Length: 0", status="307 Temporary")],
    "404 without a word": lambda b, e: [head("Content-Length: 0", status="404 Not Found")],
    "400 RequestTimeout": lambda b, e: [refused("400 Bad Request", "RequestTimeout"), None],
    "408": lambda b, e: [refused("408 Request Timeout", "x", "Connection: close"), None],
    "429": lambda b, e: [refused("429 Too Many Requests", "SlowDown")],
    "500": lambda b, e: [refused("500 Internal", "InternalError", "Connection: close"), None],
    "503": lambda b, e: [refused("503 Slow Down", "SlowDown", "Connection: close"), None],
    "503 packed": lambda b, e: [refused("503 Slow Down", "\x1f", "Content-Encoding: gzip")],
    "endless refusal": lambda b, e: [
        head("Transfer-Encoding: chunked", status="503 Slow Down"),
        *[b"10000\r\n" + bytes(0x10000) + b"\r\n"] * 9,
        None,
    ],
}
# Of stores and proxies that answer otherwise than S3.
OTHER_KINDS: Mapping[str, Odd] = {
    "length twice": lambda b, e: [plain(b, e, f"Content-Length: {SIZE}")],
    "two lengths": lambda b, e: [plain(b, e, "Content-Length: 5"), None],
    "plus": lambda b, e: [plain(b, e, length=f"+{SIZE}"), None],
    "negative": lambda b, e: [plain(b, e, length=f"-{SIZE}"), None],
    "huge": lambda b, e: [plain(b, e, length="9" * 30), None],
    "both lengths": lambda b, e: [plain(b, e, "Transfer-Encoding: chunked"), None],
    "in chunks": lambda b, e: [in_chunks(b, f'ETag: "{e}"')],
    "no length": lambda b, e: [head(f'ETag: "{e}"') + b, None],
    "weak ETag": lambda b, e: [plain(b, e).replace(b'"', b'W/"', 1)],
    "bare ETag": lambda b, e: [plain(b, e).replace(b'"', b"")],
    "no ETag": lambda b, e: [plain(b, e).replace(b"ETag", b"X-Tag")],
}


@pytest.fixture(params=["plain", "TLS"])
def tls(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ssl.SSLContext | None:
    if request.param == "plain":
        return None
    made = certificate.make(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(made.trusted))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.chain, made.key)
    return context


def store_on(s3: RawS3, *, libcurl: bool = True) -> S3Store:
    client = make_client(s3.url)
    return S3Store(client, threads=6, libcurl=libcurl, patience=NoTime().patience())


def answers(odd: Mapping[int, Odd], times: float = 1) -> Callable[[str, int], Sequence[Piece]]:
    """Odd answers to some sources, as often as told; plain ones to all others."""

    def answer(path: str, time: int) -> Sequence[Piece]:
        number = int(path[-9:-5])
        chosen = odd.get(number) if time <= times else None
        return (chosen or EDGES["plain"])(body_of(source(number)), source(number).etag)

    return answer


def outcomes(store: S3Store, wanted: Sequence[SourceObject]) -> list[object]:
    """Contents, and errors by their kind; or the one that ended the reading."""
    try:
        bodies = list(store.read_sources(wanted))
    except CompactorError as failed:
        return [type(failed).__name__]
    assert [body.source for body in bodies] == list(wanted)
    return [type(one.error).__name__ if one.error else one.content for one in bodies]


@pytest.mark.parametrize("odd", [EDGES, LENGTHS, REFUSALS], ids=["edges", "lengths", "refusals"])
def test_odd_answers_among_plain_ones_change_no_content(
    odd: Mapping[str, Odd], tls: ssl.SSLContext | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_gets, "_GET_SECONDS", 2.0)
    # Each behind a plain one and before two, some of which come on the same connection.
    wanted = [source(number) for number in range(4 * len(odd) + 1)]
    with raw_s3(answers({4 * n + 2: one for n, one in enumerate(odd.values())}), tls) as s3:
        store = store_on(s3)
        assert outcomes(store, wanted) == [body_of(one) for one in wanted]
        # libcurl itself asks once more where a connection that it kept has died.
        assert 2 <= max(s3.asked.values()) <= 3, "asked for once more"


def test_early_hints_change_no_content_where_botocore_asks() -> None:
    wanted = [source(number) for number in range(3)]
    with raw_s3(answers({1: EDGES["103 before"]}), None) as s3:
        assert outcomes(store_on(s3, libcurl=False), wanted) == [body_of(one) for one in wanted]


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_answers_of_another_kind_change_no_content(name: str) -> None:
    wanted = [source(number) for number in range(12)]
    with raw_s3(answers({7: OTHER_KINDS[name]})) as s3:
        store = store_on(s3)
        for _ in range(2):
            assert outcomes(store, wanted) == [body_of(one) for one in wanted]
        assert sum(s3.asked.values()) == store.requests.snapshot()["GET"]


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (EDGES["two glued"], None),
        (EDGES["another's before"], "SourceChanged"),
        (EDGES["another's instead"], "SourceChanged"),
        (EDGES["100 before"], None),
        (EDGES["broken off"], "InvalidInput"),
        (EDGES["nothing"], "TransientStoreError"),
        (LENGTHS["shorter"], "InvalidInput"),
        (LENGTHS["longer"], "SourceChanged"),
        (LENGTHS["a part"], "InvalidInput"),
        (LENGTHS["a range that is all"], None),
        (LENGTHS["stored with an encoding"], None),
        (REFUSALS["an error with status 200"], "SourceChanged"),
        (REFUSALS["304"], "InvalidInput"),
        (REFUSALS["404 without a word"], "SourceChanged"),
        (REFUSALS["503"], "TransientStoreError"),
        (OTHER_KINDS["no ETag"], None),
        (lambda b, e: [refused("404 Not Found", "NoSuchKey")], "SourceChanged"),
        (lambda b, e: [refused("404 Not Found", "NoSuchBucket")], "InvalidInput"),
        (lambda b, e: [refused("412 Precondition Failed", "x")], "SourceChanged"),
        (lambda b, e: [refused("403 Forbidden", "AccessDenied")], "UnreadableSource"),
        (lambda b, e: [refused("403 Forbidden", "RequestTimeTooSkewed")], "TransientStoreError"),
        (lambda b, e: [refused("400 Bad Request", "ExpiredToken")], "InvalidInput"),
        (lambda b, e: [refused("501 Not Implemented", "NotImplemented")], "InvalidInput"),
    ],
)
@pytest.mark.parametrize("libcurl", [True, False])
def test_what_is_answered_each_time_means_the_same_in_both_ways(
    odd: Odd, told: str | None, libcurl: bool
) -> None:
    wanted = [source(number) for number in range(12)]
    with raw_s3(answers({7: odd}, times=float("inf"))) as s3:
        found = outcomes(store_on(s3, libcurl=libcurl), wanted)
    if told in {"TransientStoreError", "InvalidInput"}:
        assert found == [told]
    else:
        bodies: list[object] = [body_of(one) for one in wanted]
        assert found == [*bodies[:7], told or bodies[7], *bodies[8:]]


@pytest.mark.parametrize(
    "pieces",
    [
        [head("Content-Length: 999999999"), bytes(90_000)],
        [head(), *[bytes(90_000)] * 20],
        [head("Content-Length: 999999999", status="403 Forbidden"), bytes(90_000)],
        [
            head("Transfer-Encoding: chunked", status="403 Forbidden") + b"fffffff\r\n",
            bytes(90_000),
        ],
        [head("X-A: " + "b" * 500_000)],
    ],
)
def test_no_answer_makes_its_reader_hold_much_more_than_was_listed(
    pieces: Sequence[Piece],
) -> None:
    with raw_s3(lambda path, time: [*pieces, 60.0]) as s3:
        route = Route(f"{s3.url}/bucket/", Site("us-east-1", "", ""), "access")
        request = Request(route.site, Keys("a", "s"), route.url("k"), [], 60.0, SIZE)
        transfers, answered = Transfers(), Future[Received | Exception]()
        transfers.call(lambda: transfers.start(request, answered.set_result))
        assert re.search(r"(?i)exceeded|too large|error 100", str(answered.result()))


def test_sources_that_were_stored_with_an_encoding_are_read_as_quickly() -> None:
    wanted = [source(number) for number in range(200)]
    odd = LENGTHS["stored with an encoding"]
    with raw_s3(answers(dict.fromkeys(range(200), odd), times=2)) as s3:
        store = store_on(s3)
        assert outcomes(store, wanted) == [body_of(one) for one in wanted]
    assert set(s3.asked.values()) == {1}
