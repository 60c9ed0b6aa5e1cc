"""The embedded S3: seeding, and the requests answered past moto."""

from __future__ import annotations

import datetime
import socket
import subprocess
import sys
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from compactor_local.embedded import EmbeddedS3, SeedObject
from compactor_local.model import EngineError

KEYS = [
    "a",
    "a b+c&d%25<é>.json",
    "logs/2024/01/01/x.json",
    "logs/2024/01/02/y.json",
    "logs/2024/02/01/z.json",
    "logs/2024/",
    "logs//odd",
    "z/last",
]


@pytest.fixture(scope="module")
def client(s3: EmbeddedS3) -> Any:
    return boto3.client("s3", endpoint_url=s3.endpoint_url)


@pytest.fixture(scope="module")
def bucket(s3: EmbeddedS3) -> str:
    objects = [SeedObject(key, key.encode(), 1_600_000_000.0 + n) for n, key in enumerate(KEYS)]
    assert s3.seed("seeded", objects) == len(KEYS)
    return "seeded"


def test_seeded_objects_look_as_old_as_they_were_said_to_be(client: Any, bucket: str) -> None:
    for n, key in enumerate(KEYS):
        got = client.get_object(Bucket=bucket, Key=key)
        assert got["Body"].read() == key.encode()
        moment = datetime.datetime.fromtimestamp(1_600_000_000 + n, datetime.UTC)
        assert got["LastModified"] == moment


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("prefix", ["", "logs/", "logs/2024/01", "nothing"])
def test_a_listing_holds_every_key_once_in_order_whatever_the_page_size(
    client: Any, bucket: str, prefix: str, size: int
) -> None:
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": size}
    )
    found = [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    assert found == sorted(key for key in KEYS if key.startswith(prefix))


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_a_delimited_listing_holds_objects_and_common_prefixes(
    client: Any, bucket: str, size: int
) -> None:
    pages = list(
        client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix="logs/2024/", Delimiter="/", PaginationConfig={"PageSize": size}
        )
    )

    prefixes = [one["Prefix"] for page in pages for one in page.get("CommonPrefixes", [])]
    assert prefixes == ["logs/2024/01/", "logs/2024/02/"]
    assert [one["Key"] for page in pages for one in page.get("Contents", [])] == ["logs/2024/"]


def test_a_listing_starts_after_the_key_given(client: Any, bucket: str) -> None:
    page = client.list_objects_v2(Bucket=bucket, StartAfter="logs/2024/01/01/x.json")

    assert [entry["Key"] for entry in page["Contents"]] == [
        "logs/2024/01/02/y.json",
        "logs/2024/02/01/z.json",
        "z/last",
    ]


def test_a_listing_follows_writes_overwrites_and_deletes(client: Any, s3: EmbeddedS3) -> None:
    s3.create_bucket("changing")
    for key in ("b", "a", "c", "b"):
        client.put_object(Bucket="changing", Key=key, Body=key.encode())
    client.delete_object(Bucket="changing", Key="a")
    client.delete_object(Bucket="changing", Key="never-there")

    page = client.list_objects_v2(Bucket="changing")

    assert [entry["Key"] for entry in page["Contents"]] == ["b", "c"]
    assert page["KeyCount"] == 2


def test_a_get_pinned_to_another_etag_is_refused(client: Any, bucket: str) -> None:
    etag = client.head_object(Bucket=bucket, Key="a")["ETag"]

    assert client.get_object(Bucket=bucket, Key="a", IfMatch=etag)["Body"].read() == b"a"
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.get_object(Bucket=bucket, Key="a", IfMatch='"0"')


def test_gets_of_objects_are_counted_and_nothing_else(
    client: Any, s3: EmbeddedS3, bucket: str
) -> None:
    (key, *_) = [one["Key"] for one in client.list_objects_v2(Bucket=bucket)["Contents"]]
    before = s3.gets()
    client.list_objects_v2(Bucket=bucket)
    client.head_object(Bucket=bucket, Key=key)
    # Others look at what is in that bucket.
    s3.create_bucket("counted")
    client.put_object(Bucket="counted", Key="counted", Body=b"1")
    assert s3.gets() == before
    for _ in range(3):
        client.get_object(Bucket=bucket, Key=key)["Body"].read()
    assert s3.gets() == before + 3


def test_ranges_and_missing_keys_are_answered_as_s3_does(client: Any, bucket: str) -> None:
    got = client.get_object(Bucket=bucket, Key="z/last", Range="bytes=2-4")

    assert (got["Body"].read(), got["ContentRange"]) == (b"las", "bytes 2-4/6")
    with pytest.raises(ClientError, match="NoSuchKey"):
        client.get_object(Bucket=bucket, Key="nothing")
    with pytest.raises(ClientError, match="NoSuchBucket"):
        client.list_objects_v2(Bucket="no-such-bucket")


def test_of_many_writers_that_want_one_key_absent_exactly_one_wins(
    client: Any, s3: EmbeddedS3
) -> None:
    s3.create_bucket("contested")

    def write(n: int) -> str:
        try:
            client.put_object(Bucket="contested", Key=str(n // 8), Body=b"%d" % n, IfNoneMatch="*")
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return "written"

    with ThreadPoolExecutor(8) as threads:
        outcomes = Counter(threads.map(write, range(160)))
    assert outcomes == {"written": 20, "PreconditionFailed": 140}


def test_a_connection_stays_open_for_the_next_request(s3: EmbeddedS3) -> None:
    s3.seed("kept-open", [SeedObject("a", b"a")])
    server = urlsplit(s3.endpoint_url)
    with closing(HTTPConnection(str(server.hostname), server.port)) as connection:
        connection.connect()
        before = connection.sock
        for method, body in (("GET", b"a"), ("HEAD", b""), ("PUT", b""), ("GET", b"new")):
            sent = b"new" if method == "PUT" else None
            connection.request(method, "/kept-open/a", sent)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, body)
            assert connection.sock is before


def test_a_body_in_chunks_is_taken_whole(s3: EmbeddedS3, client: Any) -> None:
    s3.create_bucket("chunks")
    server = urlsplit(s3.endpoint_url)
    with closing(HTTPConnection(str(server.hostname), server.port)) as connection:
        pieces = iter([b"one,", b"two,", b"three"])
        connection.request("PUT", "/chunks/a", pieces, encode_chunked=True)
        assert connection.getresponse().status == 200
    assert client.get_object(Bucket="chunks", Key="a")["Body"].read() == b"one,two,three"


def test_what_is_no_request_is_refused_and_stops_no_other(
    s3: EmbeddedS3, client: Any, bucket: str
) -> None:
    server = urlsplit(s3.endpoint_url)
    for words in (b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nno header\r\n\r\n"):
        with socket.create_connection((server.hostname, server.port)) as connection:
            connection.sendall(words)
            assert connection.recv(65_536).startswith(b"HTTP/1.1 400 ")
    assert client.head_object(Bucket=bucket, Key="a")["ContentLength"] == 1


def test_what_replaces_an_object_has_none_of_its_metadata_and_tags(
    client: Any, s3: EmbeddedS3
) -> None:
    s3.create_bucket("replaced")
    where = {"Bucket": "replaced", "Key": "one"}
    client.put_object(**where, Body=b"old", Metadata={"a": "1"}, Tagging="b=2")
    client.put_object(**where, Body=b"newer", ContentType="text/x", Metadata={"c": "3"})
    head = client.head_object(**where)
    assert (head["ContentLength"], head["ContentType"]) == (5, "text/x")
    assert head["Metadata"] == {"c": "3"}
    assert client.get_object_tagging(**where)["TagSet"] == []
    assert client.get_object(**where)["ETag"] == head["ETag"]


def test_what_is_not_plain_about_a_write_is_kept(client: Any, s3: EmbeddedS3) -> None:
    s3.create_bucket("special")
    where = {"Bucket": "special", "Key": "one"}
    client.put_object(**where, Body=b"x", StorageClass="STANDARD_IA", Tagging="a=1")
    assert client.head_object(**where)["StorageClass"] == "STANDARD_IA"
    assert client.get_object_tagging(**where)["TagSet"] == [{"Key": "a", "Value": "1"}]
    enabled = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket="special", VersioningConfiguration=enabled)
    made = {client.put_object(**where, Body=body)["VersionId"] for body in (b"1", b"2")}
    versions = client.list_object_versions(Bucket="special")["Versions"]
    assert made < {one["VersionId"] for one in versions}
    assert len(versions) == 3


def test_a_name_that_is_no_bucket_name_is_refused(s3: EmbeddedS3) -> None:
    with pytest.raises(EngineError, match="'x' is not a valid bucket name"):
        s3.create_bucket("x")


def test_archived_objects_cannot_be_read(client: Any, s3: EmbeddedS3) -> None:
    s3.seed("archive", [SeedObject("old", b"cold", storage_class="DEEP_ARCHIVE")])

    (entry,) = client.list_objects_v2(Bucket="archive")["Contents"]
    assert entry["StorageClass"] == "DEEP_ARCHIVE"
    with pytest.raises(ClientError, match="InvalidObjectState"):
        client.get_object(Bucket="archive", Key="old")


# In a process of its own, for what is put right of moto's S3 stays so until the process ends.
_RECORDED = """
import sys
from compactor_local import s3_patches, s3_server
from compactor_local.s3_http import serve
from compactor.s3.store import S3Store, make_client

s3_patches.install()
left_to_moto = []
create = s3_server.DomainDispatcherApplication

def recorded(*given):
    moto = create(*given)
    def serve_and_record(environ, start_response):
        if environ["REQUEST_METHOD"] in sys.argv[1:]:
            left_to_moto.append(environ["PATH_INFO"])
        return moto(environ, start_response)
    return serve_and_record

s3_server.DomainDispatcherApplication = recorded
url = f"http://127.0.0.1:{serve(s3_server.application())}"
make_client(url).create_bucket(Bucket="lake")
store = S3Store(make_client(url))
"""
_WRITES = """
store.create("lake", "entry", b"1")
store.put("lake", "receipt", b"2")
upload = store.create_upload("lake", "output", metadata={})
part = store.upload_part("lake", "output", upload, 1, b"3")
store.complete_upload("lake", "output", upload, [part], crc32=None)
found = [store.get("lake", key) for key in ("entry", "receipt", "output")]
print(left_to_moto, found)
"""


def test_what_a_worker_writes_does_not_go_through_moto() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _RECORDED + _WRITES, "PUT", "POST"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.stdout.strip() == "['/lake'] [b'1', b'2', b'3']", ran.stderr


def test_a_checksum_that_was_sent_with_an_object_is_reported(client: Any, s3: EmbeddedS3) -> None:
    s3.create_bucket("checksums")
    client.put_object(Bucket="checksums", Key="k", Body=b"abc", ChecksumAlgorithm="CRC32")
    head = client.head_object(Bucket="checksums", Key="k", ChecksumMode="ENABLED")
    assert head["ChecksumCRC32"] == "NSRBwg=="


_READS = """
from compactor.errors import ObjectMissing
store.create("lake", "marker", b"1")
try:
    store.get("lake", "nothing")
except ObjectMissing:
    print("missing", end=" ")
head = store.head("lake", "marker")
listed = [one.key for page in store.list_objects("lake", "") for one in page]
print(left_to_moto, store.get("lake", "marker"), head.crc32, store.head("lake", "nothing"), listed)
"""


def test_what_a_worker_reads_does_not_go_through_moto() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _RECORDED + _READS, "GET", "HEAD"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    crc32 = zlib.crc32(b"1")
    assert ran.stdout.strip() == f"missing [] b'1' {crc32} None ['marker']", ran.stderr


def test_a_checksum_is_returned_only_on_request(client: Any, s3: EmbeddedS3) -> None:
    s3.create_bucket("asked")
    where = {"Bucket": "asked", "Key": "k"}
    client.put_object(**where, Body=b"abc", ChecksumAlgorithm="CRC32")
    plain = boto3.client(
        "s3",
        endpoint_url=s3.endpoint_url,
        config=Config(response_checksum_validation="when_required"),
    )
    for ask in (plain.get_object, plain.head_object):
        assert "ChecksumCRC32" not in ask(**where)
        assert ask(**where, ChecksumMode="ENABLED")["ChecksumCRC32"] == "NSRBwg=="


def test_an_object_with_a_checksum_is_nothing_for_a_client_without_credentials(
    client: Any, s3: EmbeddedS3
) -> None:
    s3.create_bucket("closed")
    client.put_object(Bucket="closed", Key="k", Body=b"abc", ChecksumAlgorithm="CRC32")
    nobody = boto3.client(
        "s3", endpoint_url=s3.endpoint_url, config=Config(signature_version=UNSIGNED)
    )
    with pytest.raises(ClientError, match="403"):
        nobody.get_object(Bucket="closed", Key="k")


def test_what_is_not_there_is_answered_as_s3_does_and_a_version_under_a_marker_is_not(
    client: Any, s3: EmbeddedS3
) -> None:
    s3.create_bucket("gone")
    for key in ("a<b>&c", "é"):
        with pytest.raises(ClientError) as told:
            client.get_object(Bucket="gone", Key=key)
        error: Any = told.value.response["Error"]
        assert (error["Code"], error["Key"]) == ("NoSuchKey", key)
    enabled = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket="gone", VersioningConfiguration=enabled)
    client.put_object(Bucket="gone", Key="k", Body=b"1")
    client.delete_object(Bucket="gone", Key="k")
    with pytest.raises(ClientError, match="NoSuchKey"):
        client.get_object(Bucket="gone", Key="k")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /pieces/a HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /pieces/a HTTP/1.1\nHost: x\n\n",
        b"GET /pieces/a HTTP/1.1\r\nHost: x\nX-Other: y\r\n\r\n",
    ],
)
@pytest.mark.parametrize("cut", [0, 10, 40])
def test_a_request_is_taken_however_its_head_comes(s3: EmbeddedS3, head: bytes, cut: int) -> None:
    s3.seed("pieces", [SeedObject("a", b"hello")])
    server = urlsplit(s3.endpoint_url)
    with socket.create_connection((server.hostname, server.port)) as connection:
        for piece in (head[:cut], head[cut:]):
            connection.sendall(piece)
            time.sleep(0.02)
        with connection.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
