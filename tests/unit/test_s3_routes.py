"""Reads by libcurl: where they go, how they are signed, what they meet."""

from __future__ import annotations

import socket
import ssl
import threading
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

from compactor.errors import InvalidInput
from compactor.model import SourceObject
from compactor.s3.retries import Patience
from compactor.s3.routes import Routes
from compactor.s3.store import S3Store, make_client
from tests.support import certificate
from tests.support.s3_requests import NoTime, store_on
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3

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


def read(store: S3Store, key: str = "k") -> bytes | None:
    (body,) = store.read_sources([SourceObject("bucket", key, "e", 5, 0.0)])
    if body.error is not None:
        raise body.error
    return body.content


HELLO = Answer(body=b"hello", headers={"ETag": '"e"'})


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("token", [None, "a/token=="])
def test_a_read_is_signed_as_botocore_signs_it(
    s3: ScriptedS3, key: str, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", token or "")
    s3.always(HELLO)
    read(store_on(s3.url), key)
    signature = s3.last.headers["authorization"].partition("Signature=")[2]
    assert signature == signature_of(s3.last, s3.url.removeprefix("http://"), token)
    assert s3.last.headers.get("x-amz-security-token") == token


def test_the_same_read_is_sent_either_way(s3: ScriptedS3) -> None:
    about_the_client = {"amz-sdk-invocation-id", "amz-sdk-request", "authorization"}
    about_the_client |= {"accept", "accept-encoding", "x-amz-date", "user-agent"}
    s3.always(HELLO)
    for key in KEYS:
        sent = []
        for libcurl in (True, False):
            read(store_on(s3.url, libcurl=libcurl), key)
            headers = {k: v for k, v in s3.last.headers.items() if k not in about_the_client}
            sent.append((s3.last.method, s3.last.path, headers))
        assert sent[0] == sent[1]


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
    s3.always(HELLO)
    monkeypatch.setenv("http_proxy", s3.url)
    assert read(store_on("http://s3.example.com")) == b"hello"
    assert s3.last.path == "http://s3.example.com/bucket/k"
    monkeypatch.setenv("no_proxy", "127.0.0.1,example.org")
    assert read(store_on(s3.url)) == b"hello"
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
    ("bucket", "endpoint", "base"),
    [
        ("bucket", None, "https://bucket.s3.eu-west-1.amazonaws.com/"),
        ("with.dots", None, "https://s3.eu-west-1.amazonaws.com/with.dots/"),
        ("b", "https://127.0.0.1:443/below", "https://127.0.0.1:443/below/b/"),
        ("bucket", "http://[::1]:9000", "http://[::1]:9000/bucket/"),
    ],
)
def test_a_bucket_is_where_botocore_says(
    no_proxies: None,
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    endpoint: str | None,
    base: str,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    route = _route(make_client(endpoint), bucket)
    assert route is not None
    assert (route.base, route.site.region) == (base, "eu-west-1")
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
            connection.sendall(b'HTTP/1.1 200 OK\r\nETag: "e"\r\nContent-Length: 5\r\n\r\nhello')

    with server:
        threading.Thread(target=serve, daemon=True).start()
        url = f"http://[::1]:{server.getsockname()[1]}"
        assert read(store_on(url)) == b"hello"
    assert f"\r\nHost: {url.removeprefix('http://')}\r\n".encode() in heads[0]


def test_directory_buckets_and_access_points_have_ways_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = make_client()
    assert _route(client, "arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap") is None


def _route(client: Any, bucket: str = "bucket") -> Any:
    return Routes(client).of(bucket)


@contextmanager
def tls(directory: Path) -> Iterator[str]:
    """An S3 over TLS whose certificate nobody trusts; who does is in ``trusted.pem``."""
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
            read(store)
        by_botocore.clear()
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "trusted.pem"))
        assert read(S3Store(make_client(url), patience=patience)) == b"hello"
    assert by_botocore == []


def test_a_certificate_of_another_host_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "trusted.pem"))
    with tls(tmp_path) as url:
        elsewhere = url.replace("127.0.0.1", "localhost")
        store = S3Store(make_client(elsewhere), patience=NoTime().patience())
        with pytest.raises(InvalidInput, match="certificate"):
            read(store)


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
    assert route is None or route.base.startswith("https://")
