"""Requests that libcurl makes: where they go, how they are signed, what they meet."""

from __future__ import annotations

import base64
import hashlib
import socket
import ssl
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from compactor.attributes import Attributes
from compactor.errors import InvalidInput, TransientStoreError
from compactor.model import SourceObject
from compactor.pieces import Pieces
from compactor.s3.retries import Patience
from compactor.s3.routes import Routes
from compactor.s3.store import S3Store, make_client
from tests.support import certificate
from tests.support.s3_requests import NoTime, store_on
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal

KEYS = ["a/b.json", "a//b", "a/../c", " é+%?#&=~*'()!,;:@$", "day=2026-01-02/x y.gz", "\x01"]


@pytest.fixture
def by_botocore(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The requests that botocore sends itself."""
    sent: list[Any] = []
    send = botocore.httpsession.URLLib3Session.send

    def counted(session: Any, request: Any) -> Any:
        sent.append(request)
        return send(session, request)

    monkeypatch.setattr(botocore.httpsession.URLLib3Session, "send", counted)
    return sent


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def signature_of(asked: Asked, host: str, token: str | None) -> str:
    """Of a request, as botocore signs what was sent."""
    by = asked.headers["authorization"]
    names = by.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name: asked.headers[name] for name in names if name != "host"}
    request = AWSRequest(
        asked.method, f"http://{host}{asked.path}", headers=headers, data=asked.body
    )
    request.context["timestamp"] = asked.headers["x-amz-date"]
    auth: Any = S3SigV4Auth(Credentials("access", "secret", token), "s3", "eu-west-1")
    canonical = auth.canonical_request(request)
    made: str = auth.signature(auth.string_to_sign(request, canonical), request)
    return made


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("token", [None, "a/token=="])
@pytest.mark.parametrize("name", ["get", "put", "list", "level", "begin", "part", "large part"])
def test_a_request_is_signed_as_botocore_signs_it(
    s3: ScriptedS3, key: str, token: str | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", token or "")
    s3.answer = _any_answer
    store = store_on(s3.url)
    attributes = Attributes(metadata=(("x", "two  blanks"),), tags=(("a b", "c&d"),))
    asks: dict[str, Any] = {
        "get": lambda: store.get("bucket", key),
        "put": lambda: store.create("bucket", key, b"body", attributes=attributes),
        "list": lambda: list(store.list_objects("bucket", key, start_after=f"{key} +/é")),
        "level": lambda: list(store.list_level("bucket", key)),
        "begin": lambda: store.create_upload("bucket", key, content_type="text/x; a=b"),
        "part": lambda: store.upload_part("bucket", key, "a/b=", 2, b"part"),
        "large part": lambda: store.upload_part("bucket", key, "i", 2, Pieces([b"p" * 99_000])),
    }
    asks[name]()
    told = s3.last.headers["authorization"].partition("Signature=")[2]
    assert told == signature_of(s3.last, s3.url.removeprefix("http://"), token)
    assert s3.last.headers.get("x-amz-security-token") == token


def test_the_same_request_is_sent_either_way(s3: ScriptedS3) -> None:
    about_the_client = {"amz-sdk-invocation-id", "amz-sdk-request", "authorization", "expect"}
    about_the_client |= {"accept", "accept-encoding", "x-amz-date", "user-agent"}

    def told(asked: Asked) -> object:
        path, _, query = asked.path.partition("?")
        headers = {k: v for k, v in asked.headers.items() if k not in about_the_client}
        return asked.method, path, sorted(query.removesuffix("=").split("&")), headers, asked.body

    without, by = store_on(s3.url, direct=True), store_on(s3.url, direct=False)
    for key in KEYS:
        for ask in (
            lambda store, key=key: store.create("bucket", key, b"x", content_type="a/b"),
            lambda store, key=key: store.put("bucket", key, b""),
            lambda store, key=key: store.get("bucket", key),
            lambda store, key=key: store.create_upload("bucket", key, metadata={"A-b": "c"}),
            lambda store, key=key: store.upload_part("bucket", key, "a/b=", 2, b"part"),
            lambda store, key=key: list(store.list_objects("bucket", key, start_after=f"{key}z")),
            lambda store, key=key: list(store.list_level("bucket", key)),
        ):
            s3.asked.clear()
            s3.answer = _any_answer
            ask(without)
            ask(by)
            direct, other = s3.asked
            assert told(direct) == told(other)
            assert "expect" not in direct.headers or ".." in key


def _any_answer(asked: Asked) -> Answer:
    if "uploads" in asked.path:
        body = (
            "<InitiateMultipartUploadResult><UploadId>i</UploadId></InitiateMultipartUploadResult>"
        )
        return Answer(body=body.encode())
    if "list-type" in asked.path:
        return Answer(body=b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
    return Answer(headers={"ETag": '"e"'})


def test_a_bucket_in_another_region_is_found_and_asked_by_botocore_from_then_on(
    s3: ScriptedS3, by_botocore: list[Any]
) -> None:
    def elsewhere(asked: Asked) -> Answer:
        if "/eu-west-1/" in asked.headers["authorization"]:
            return Answer(body=b"hello")
        wrong = refusal(400, "AuthorizationHeaderMalformed")
        body = wrong.body.replace(b"</Error>", b"<Region>eu-west-1</Region></Error>")
        return Answer(400, body, {**wrong.headers, "x-amz-bucket-region": "eu-west-1"})

    s3.answer = elsewhere
    store = store_on(s3.url)
    assert store.get("bucket", "k") == b"hello"
    assert (len(s3.asked), len(by_botocore)) == (2, 1), "the refusal was not asked for twice"
    assert store.get("bucket", "k") == b"hello"
    assert len(by_botocore) == 2


def test_an_answer_that_is_not_as_hoped_for_is_asked_for_once_and_judged_by_botocore(
    s3: ScriptedS3, by_botocore: list[Any]
) -> None:
    odd = b"<x:Result xmlns:x='u'><x:UploadId>i</x:UploadId></x:Result>"
    s3.always(Answer(body=odd))
    assert store_on(s3.url).create_upload("bucket", "k") == "i"
    assert (len(s3.asked), by_botocore) == (1, [])


def test_a_completion_that_breaks_off_is_no_completion(s3: ScriptedS3) -> None:
    s3.always(Answer(body=b"<CompleteMultipartUploadResult><Key>out</Key>"))
    with pytest.raises(TransientStoreError, match="tries"):
        store_on(s3.url).complete_upload("bucket", "out", "id", [], crc32=0)


@pytest.mark.parametrize(
    "config",
    [
        Config(proxies={"http": "http://127.0.0.1:9"}),
        Config(client_cert="/there/is/none.pem"),
        Config(signature_version=botocore.UNSIGNED),
        Config(signature_version="s3"),
    ],
)
def test_what_is_out_of_the_ordinary_is_left_to_botocore(s3: ScriptedS3, config: Config) -> None:
    client = boto3.client("s3", endpoint_url=s3.url, config=config)
    assert _route(client) is None


def test_a_proxy_of_the_environment_is_asked_unless_it_is_to_be_passed_by(
    no_proxies: None, s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch, by_botocore: list[Any]
) -> None:
    s3.always(Answer(body=b"hello"))
    monkeypatch.setenv("http_proxy", s3.url)
    assert store_on("http://s3.example.com").get("bucket", "k") == b"hello"
    assert s3.last.path == "http://s3.example.com/bucket/k"
    monkeypatch.setenv("no_proxy", "127.0.0.1,example.org")
    assert store_on(s3.url).get("bucket", "k") == b"hello"
    assert s3.last.path == "/bucket/k"
    assert by_botocore == []


def test_a_proxy_that_is_asked_over_tls_is_left_to_botocore(
    no_proxies: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "https://127.0.0.1:9")
    assert _route(make_client("https://s3.example.com")) is None


def test_other_credentials_than_those_of_the_environment_are_botocores(s3: ScriptedS3) -> None:
    client = boto3.client(
        "s3", endpoint_url=s3.url, aws_access_key_id="other", aws_secret_access_key="x"
    )
    assert _route(client) is None


@pytest.mark.parametrize(
    ("bucket", "endpoint", "base", "of_bucket"),
    [
        ("bucket", None, "https://bucket.s3.eu-west-1.amazonaws.com/", "/?a=b"),
        ("with.dots", None, "https://s3.eu-west-1.amazonaws.com/with.dots/", "/with.dots?a=b"),
        ("b", "https://127.0.0.1:443/below", "https://127.0.0.1:443/below/b/", "/below/b?a=b"),
        ("bucket", "http://[::1]:9000", "http://[::1]:9000/bucket/", "/bucket?a=b"),
    ],
)
def test_a_bucket_is_where_botocore_says(
    no_proxies: None,
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    endpoint: str | None,
    base: str,
    of_bucket: str,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    route = _route(make_client(endpoint), bucket)
    assert route is not None
    assert (route.base, route.site.region) == (base, "eu-west-1")
    assert route.url("", "a=b").endswith(of_bucket)
    assert route.url("a b/é") == f"{base}a%20b/%C3%A9"


def test_an_endpoint_may_have_an_address_of_ipv6(no_proxies: None) -> None:
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    heads = list[bytes]()

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            heads.append(connection.recv(65_536))
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    with server:
        threading.Thread(target=serve, daemon=True).start()
        url = f"http://[::1]:{server.getsockname()[1]}"
        assert store_on(url).get("bucket", "k") == b"hello"
    assert f"\r\nHost: {url.removeprefix('http://')}\r\n".encode() in heads[0]


def test_directory_buckets_and_access_points_have_ways_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = make_client()
    assert _route(client, "arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap") is None


def _route(client: Any, bucket: str = "bucket") -> Any:
    return Routes(client).of(bucket)


@pytest.mark.parametrize("cuts", [1, 2, 7])
@pytest.mark.parametrize("size", [10, 64 * 1024 + 1, 3 * 1024 * 1024 + 7])
@pytest.mark.parametrize("direct", [True, False])
def test_a_part_arrives_whole_and_signed_in_however_many_pieces(
    s3: ScriptedS3, by_botocore: list[Any], size: int, cuts: int, direct: bool
) -> None:
    part = (bytes(range(251)) * (size // 251 + 1))[:size]
    pieces = [part[size * cut // cuts : size * (cut + 1) // cuts] for cut in range(cuts)]
    s3.always(Answer(headers={"ETag": '"e"'}))
    store = store_on(s3.url, direct=direct)
    stored = store.upload_part("bucket", "k", "id", 1, Pieces(pieces))
    assert (s3.last.body, stored.size, stored.crc32) == (part, size, zlib.crc32(part))
    assert s3.last.headers["x-amz-content-sha256"] == hashlib.sha256(part).hexdigest()
    assert len(by_botocore) == (0 if direct else 1)


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 1024 * 1024])
def test_a_body_arrives_whole(s3: ScriptedS3, by_botocore: list[Any], size: int) -> None:
    body = b"x" * size
    store_on(s3.url).put("bucket", "k", body)
    assert (s3.last.body, s3.last.headers["content-length"]) == (body, str(size))
    assert by_botocore == []


def test_no_header_breaks_into_two(s3: ScriptedS3) -> None:
    with pytest.raises(ValueError, match="line break"):
        store_on(s3.url).create_upload("bucket", "k", metadata={"a": "b\r\nx-amz-acl: public-read"})
    assert s3.asked == []


def test_a_server_that_is_not_there_is_asked_again_and_reported_at_last() -> None:
    time = NoTime()
    with pytest.raises(TransientStoreError, match=r"(?i)could not connect"):
        store_on("http://127.0.0.1:9", time=time).get("bucket", "k")
    assert len(time.waits) > 3


@contextmanager
def tls(directory: Path, parts: list[Asked] | None = None) -> Iterator[str]:
    """An S3 over TLS whose certificate nobody trusts; who does is in ``trusted.pem``.

    What is put there comes to ``parts``.
    """
    made = certificate.make(directory)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("ETag", '"e"')
            self.send_header("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def do_PUT(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers["content-length"]))
            if parts is not None:
                parts.append(Asked("PUT", self.path, headers, body))
            self.send_response(200)
            self.send_header("ETag", '"e"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.chain, made.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # it would print
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_tls_trusts_what_botocore_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_botocore: list[Any]
) -> None:
    patience = Patience(5.0)
    with tls(tmp_path) as url:
        store = S3Store(make_client(url), patience=patience)
        with pytest.raises(InvalidInput, match="certificate"):
            store.get("bucket", "k")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "trusted.pem"))
        store = S3Store(make_client(url), patience=patience)
        assert store.get("bucket", "k") == b"hello"
        (body,) = store.read_sources([SourceObject("bucket", "k", "e", 5, 0.0)])
        assert body.content == b"hello"
    assert by_botocore == []


def test_a_certificate_of_another_host_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "trusted.pem"))
    with tls(tmp_path) as url:
        elsewhere = url.replace("127.0.0.1", "localhost")
        store = S3Store(make_client(elsewhere), patience=NoTime().patience())
        with pytest.raises(InvalidInput, match="certificate"):
            store.get("bucket", "k")
        with pytest.raises(InvalidInput, match="certificate"):
            list(store.read_sources([SourceObject("bucket", "k", "e", 5, 0.0)]))


@pytest.mark.parametrize("size", [5, 3 * 1024 * 1024 + 7])
def test_a_part_is_hashed_once_over_tls_which_keeps_its_checksum_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_botocore: list[Any], size: int
) -> None:
    part, sent = bytes(size), list[Asked]()
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "trusted.pem"))
    with tls(tmp_path, sent) as url:
        stored = S3Store(make_client(url)).upload_part("bucket", "k", "id", 1, part)
    (put,) = sent
    assert (put.body, stored.size) == (part, size)
    assert put.headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"
    crc32 = zlib.crc32(part).to_bytes(4, "big")
    assert put.headers["x-amz-checksum-crc32"] == base64.b64encode(crc32).decode()
    assert by_botocore == []


@pytest.mark.parametrize(
    "bucket",
    [
        *("lake--use1-az4--x-s3", "mfzwi23gnjvgw.mrap", "logs-ap-1234-s3alias"),
        "arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap",
        "arn:aws:s3-outposts:us-east-1:123456789012:outpost/op-1/accesspoint/x",
        *("not a name", "arn:aws:s3:::", "x" * 300),
    ],
)
def test_no_name_of_a_bucket_makes_learning_its_route_fail(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    route = Routes(make_client()).of(bucket)
    assert route is None or route.is_secure
