"""What is wrong with a run is reported in one clear line, and stops nothing else."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from compactor.model import Partition
from compactor.report.report import RunIdentity, report
from compactor_cli.machine.installed import spark_script
from compactor_dev import IMPORT_ROOTS
from compactor_local.embedded import EmbeddedS3
from tests.spark.gate import Denied, Gate, Request
from tests.spark.job import Job


def without_session(job: Job, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The entry point as it is, for mistakes that are seen before Spark is started."""
    given = {**os.environ, **job.s3.environment}
    environment = {name: value for name, value in given.items() if value}
    environment["PYTHONPATH"] = os.pathsep.join(IMPORT_ROOTS)
    # A session would need Java.
    environment["JAVA_HOME"] = os.devnull
    script = str(spark_script())
    return subprocess.run(
        [sys.executable, script, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def seeded(job: Job) -> Job:
    job.seed({"a/1.json": b'{"id": "record-1"}\n'})
    job.discover()
    return job


def remove(job: Job, name: str) -> None:
    job.client.delete_object(Bucket=job.lake, Key=key_of(job, name))


def key_of(job: Job, name: str) -> str:
    return f"{job.place.removeprefix(f's3://{job.lake}/')}{name}"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("settings.json", None, "where discovery has written settings.json"),
        ("settings.json", b"not JSON", "settings.json: 'not JSON' is not accepted"),
        ("settings.json", b"[]", "settings.json: input: [] is not accepted"),
        ("settings.json", b'{"s3_source": 1}', "did you mean s3_source_uri?"),
        (
            "settings.json",
            b'{"s3_source_uri": "s3://abc/x/", "s3_destination_uri": "s3://other/y/"}',
            "an s3_state_uri that contains s3://",
        ),
        ("oversized/a.json", b'{"path": "a/"}', "an object with exactly path, bucket"),
    ],
)
def test_records_that_are_missing_or_wrong_are_reported_in_one_line(
    new_job: Callable[..., Job], name: str, content: bytes | None, told: str
) -> None:
    job = seeded(new_job())
    if content is None:
        remove(job, name)
    else:
        job.client.put_object(Bucket=job.lake, Key=key_of(job, name), Body=content)
    ended = without_session(job, "--run", job.place)
    assert ended.returncode == 1, ended.stderr
    error = job.record("spark-error.json")
    assert error is not None
    assert error["error"] == "InvalidInput"
    assert told in error["cause"]
    assert "\n" not in error["cause"]
    assert f"compact_partitions: failed: InvalidInput: {error['cause']}" in ended.stderr
    assert job.record("spark-result.json") is None
    assert job.outputs() == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--run", "bucket/runs/1"], "run: 'bucket/runs/1' is not accepted; expected an S3 URI"),
        (["--run", "s3://bucket/somewhere/"], "s3://BUCKET/<state prefix>/runs/<run id>/"),
        ([], "the following arguments are required: --run"),
    ],
)
def test_arguments_that_name_no_run_are_refused_immediately(
    new_job: Callable[..., Job], arguments: list[str], told: str
) -> None:
    ended = without_session(new_job(), *arguments)
    assert ended.returncode == 2
    assert told in " ".join(ended.stderr.split())


def test_a_state_bucket_that_is_missing_is_reported_on_the_console(
    new_job: Callable[..., Job],
) -> None:
    ended = without_session(new_job(), "--run", "s3://no-such-bucket/state/runs/1/")
    assert ended.returncode == 1
    assert "failed: InvalidInput: there is no bucket no-such-bucket: " in ended.stderr
    assert "the outcome could not be stored" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_fails_is_named_and_everything_else_is_committed(
    s3: EmbeddedS3, new_job: Callable[..., Job], proxy: Gate
) -> None:
    job = new_job()
    job.endpoint = proxy.endpoint_url
    sources: dict[str, bytes] = {
        "good/1.json": b'{"id": "record-1"}\n',
        "good/2.json": b'{"id": "record-2"}\n',
        "good/broken.json.gz": gzip.compress(b"never read " * 50, mtime=0)[:-9],
        "half/1.json": b'{"id": "record-3"}\n',
        "good/denied.json": b'{"id": "record-6"}\n',
        "half/refused.csv": b"id,record\n4,record-4\n",
        "half/refused-2.csv": b"id,record\n7,record-7\n",
        "half/refused-3.csv": b"id,record\n8,record-8\n",
        "shut/1.json": b'{"id": "record-5"}\n',
    }
    job.seed(sources)
    missing = Partition("no-such-bucket", "logs/lost/", "lost/")
    job.discover(missing)

    def deny(request: Request) -> None:
        # The outputs of CSV may not be written there.
        written = request.method != "GET" and "/compacted/half/" in request.path
        if (
            request.path.endswith("/denied.json")
            or "prefix=logs%2Fshut%2F" in request.query
            or (written and request.path.endswith(".csv"))
        ):
            raise Denied

    proxy.rules.append(deny)
    ended = job.run()
    assert ended.code == 1, ended.log[-4000:]
    assert set(job.readable()) == {1, 2, 3}

    assert job.uploads() == []

    good, half = job.receipt("good/"), job.receipt("half/")
    assert (good.status, good.counts.quarantined, good.counts.objects_in) == ("done", 2, 2)
    assert [one.reason for one in good.quarantined] == ["truncated", "access_denied"]
    assert (half.status, half.error, half.counts.objects_in) == ("failed", "InvalidInput", 1)
    assert "/compacted/half/" in half.cause
    cause = must_tell(job)
    assert ended.lines[-1] == f"compact_partitions: failed: InvalidInput: {cause}"
    identity = RunIdentity(job.run_id, "2026-01-03T00:00:00Z", spark_failure="Unknown Error")
    told = report(identity, job.settings, job.store)
    assert told.status == "failed"
    assert cause in told.spark_failure
    assert sorted(one.path for one in told.failed) == ["half/", "lost/", "shut/"]


def must_tell(job: Job) -> str:
    """The job's record of its failure names all three partitions, in one line."""
    error: dict[str, Any] | None = job.record("spark-error.json")
    assert error is not None
    assert error["error"] == "InvalidInput"
    assert (error["partitions"]["done"], error["partitions"]["failed"]) == (1, 3)
    cause: str = error["cause"]
    assert "\n" not in cause
    for said in ("half/: InvalidInput: group ", "shut/: InvalidInput: not allowed: "):
        assert said in cause
    assert "lost/: InvalidInput: there is no bucket no-such-bucket: " in cause
    return cause
