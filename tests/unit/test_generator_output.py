from __future__ import annotations

import argparse
import hashlib
import io
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from compactor.errors import InvalidInput, TransientStoreError
from compactor_cli.generator import (
    GeneratedObject,
    GeneratorSpec,
    LogFormat,
    Written,
    add_arguments,
    generate,
    run,
    write,
)
from tests.support.moto_server import moto_server

SPEC = GeneratorSpec(objects=60, rows=4, formats=tuple(LogFormat), seed=3, empty_rate=0.1)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def client(endpoint: str) -> Any:
    return boto3.client("s3", endpoint_url=endpoint)


@pytest.fixture
def bucket(client: Any, request: pytest.FixtureRequest) -> str:
    name = "t" + hashlib.blake2b(request.node.name.encode(), digest_size=8).hexdigest()
    client.create_bucket(Bucket=name)
    return name


def stored(client: Any, bucket: str, prefix: str = "") -> dict[str, bytes]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
    return {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_local_directory_gets_every_object_with_its_time(tmp_path: Path) -> None:
    written = write(generate(SPEC), str(tmp_path / "new" / "out"), workers=4)
    expected = list(generate(SPEC))
    for one in expected:
        path = tmp_path / "new" / "out" / one.key
        assert path.read_bytes() == one.content
        assert path.stat().st_mtime == one.last_modified
    found = [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
    assert len(found) == len(expected) == written.objects
    assert written.records == sum(one.records for one in expected)
    assert written.bytes == sum(len(one.content) for one in expected)
    assert written.objects_per_second > 0


def test_a_local_directory_may_be_given_as_a_uri(tmp_path: Path) -> None:
    write(generate(SPEC), (tmp_path / "with space").as_uri(), workers=1)
    assert sum(path.is_file() for path in (tmp_path / "with space").rglob("*")) == SPEC.objects


def test_s3_gets_exactly_the_generated_bytes(client: Any, bucket: str, endpoint: str) -> None:
    written = write(generate(SPEC), f"s3://{bucket}/in/logs", endpoint_url=endpoint, workers=4)
    expected = {f"in/logs/{one.key}": one.content for one in generate(SPEC)}
    assert stored(client, bucket) == expected
    assert written.objects == SPEC.objects


def test_s3_objects_are_written_in_one_put(client: Any, bucket: str, endpoint: str) -> None:
    large = GeneratedObject("large", bytes(6 * 1024 * 1024), 0.0, 0)
    write([large], f"s3://{bucket}/", endpoint_url=endpoint, workers=1)
    # The ETag of a multipart upload ends in "-" and the number of parts.
    etag = client.head_object(Bucket=bucket, Key="large")["ETag"].strip('"')
    assert etag == hashlib.md5(large.content, usedforsecurity=False).hexdigest()


def test_gzip_objects_are_not_compressed_a_second_time(
    client: Any, bucket: str, endpoint: str
) -> None:
    content = b"not compressed at all"
    write([GeneratedObject("a.gz", content, 0.0, 1)], f"s3://{bucket}", endpoint_url=endpoint)
    answer = client.get_object(Bucket=bucket, Key="a.gz")
    assert answer["Body"].read() == content
    assert "ContentEncoding" not in answer


def test_the_endpoint_may_come_from_the_environment(
    client: Any, bucket: str, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    write(generate(GeneratorSpec(objects=3)), f"s3://{bucket}", workers=1)
    assert len(stored(client, bucket)) == 3


def test_progress_counts_up_to_the_total(tmp_path: Path) -> None:
    seen: list[Written] = []
    written = write(generate(SPEC), str(tmp_path), workers=3, on_progress=seen.append)
    counts = [one.objects for one in seen]
    assert counts == sorted(set(counts))
    assert seen[-1] == written


def test_a_failing_worker_ends_the_others_and_is_reported(tmp_path: Path) -> None:
    def broken() -> Iterator[GeneratedObject]:
        yield from generate(GeneratorSpec(objects=40))
        raise RuntimeError("the source broke")

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="the source broke"):
        write(broken(), str(tmp_path), workers=4)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "s3://",
        "s3:///prefix",
        "s3://key:secret@bucket/prefix",
        "s3://bucket/a//b",
        "s3://bucket/../b",
        "s3://bucket/a\nb",
        "gs://bucket/prefix",
        "file://elsewhere/tmp",
        "https://bucket.example.com",
    ],
)
def test_a_wrong_output_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        write(generate(SPEC), uri)
    assert caught.value.field == "output"


@pytest.mark.parametrize("workers", [0, -1, 1_025])
def test_a_wrong_number_of_workers_is_refused(workers: int, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="workers"):
        write(generate(SPEC), str(tmp_path), workers=workers)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(InvalidInput, match="a writable path"):
        write(generate(SPEC), str(tmp_path / "taken" / "out"))


def test_a_bucket_that_does_not_exist_is_refused(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match=r"s3://no-such-bucket.*existing bucket"):
        write(generate(SPEC), "s3://no-such-bucket/logs", endpoint_url=endpoint)


def test_a_bucket_name_that_cannot_be_is_refused(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match="bucket"):
        write(generate(SPEC), "s3://no such bucket/logs", endpoint_url=endpoint)


def test_a_wrong_endpoint_is_refused() -> None:
    with pytest.raises(InvalidInput, match="endpoint_url"):
        write(generate(SPEC), "s3://bucket/logs", endpoint_url="localhost")


def test_an_endpoint_that_does_not_answer_is_reported_as_such() -> None:
    with pytest.raises(TransientStoreError, match="does not answer"):
        write(generate(SPEC), "s3://b-1/logs", endpoint_url=f"http://127.0.0.1:{free_port()}")


def test_missing_credentials_are_reported_as_such(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(InvalidInput, match="credentials"):
        write(generate(SPEC), "s3://bucket/logs", endpoint_url=endpoint)


def test_the_flags_of_the_seed_application_work(
    client: Any, bucket: str, endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-r", "3", "-f", "12", "-b", bucket, "--endpoint-url", endpoint, "--workers", "2"]
    assert run(parsed(*words)) == 0
    objects = stored(client, bucket)
    assert len(objects) == 12
    assert all(re.match(r"\d{4}/\d\d/\d\d/", key) for key in objects)
    for content in objects.values():
        for line in content.splitlines():
            json.loads(line)
    captured = capsys.readouterr()
    assert re.fullmatch(r"12 objects, .* objects/s\) to s3://\S+\n", captured.out)
    assert captured.err == ""


def test_a_prefix_goes_before_the_keys(client: Any, bucket: str, endpoint: str) -> None:
    words = ["-b", bucket, "--prefix", "raw/", "-f", "5", "--endpoint-url", endpoint]
    assert run(parsed(*words, "--start", "2025-12-31", "--days", "2")) == 0
    assert {key[:7] for key in stored(client, bucket)} == {"raw/202"}


def test_the_json_summary_is_all_there_is_on_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(parsed(str(tmp_path), "-f", "9", "--format", "mixed", "--json")) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["objects"] == 9
    assert summary["bytes"] == sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())
    assert set(summary) == {
        "output",
        "objects",
        "records",
        "bytes",
        "seconds",
        "objects_per_second",
    }


def test_the_same_options_write_the_same_directory_twice(tmp_path: Path) -> None:
    trees = []
    for name in ("one", "two"):
        options = ["-f", "30", "--format", "csv,alb", "--seed", "11", "--compression", "mixed"]
        run(parsed(str(tmp_path / name), *options))
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        trees.append({str(p.relative_to(tmp_path / name)): p.read_bytes() for p in files})
    assert len(trees[0]) == 30
    assert trees[0] == trees[1]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_progress_bar_on_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    run(parsed(str(tmp_path), "-f", "20"))
    assert "generating" in terminal.getvalue()
    assert "20/20" in terminal.getvalue()
    assert "generating" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ([], "output"),
        (["out", "-b", "bucket"], "bucket"),
        (["out", "--prefix", "p"], "prefix"),
        (["-b", "s3://bucket"], "bucket"),
        (["out", "--format", "xml"], "format"),
        (["out", "--start", "soon"], "start"),
        (["out", "-f", "0"], "objects"),
        (["out", "-r", "0"], "rows"),
        (["out", "--workers", "0"], "workers"),
    ],
)
def test_a_wrong_option_is_refused_by_name(
    words: list[str], field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        run(parsed(*words))
    assert caught.value.field == field
    assert list(tmp_path.iterdir()) == []
