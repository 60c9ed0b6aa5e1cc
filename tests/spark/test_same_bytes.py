"""What Spark writes for a partition is what the Lambda function writes for it."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from compactor.invocation import kept_store
from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.report.report import RunIdentity, report
from compactor.settings.settings import Settings
from compactor_handlers import compact_partition
from compactor_local.embedded import EmbeddedS3
from tests.spark.job import Ended, Job
from tests.support.world import LOG_LINE
from tests.unit.test_handlers import Context

MIB = 1024 * 1024
TARGET = 5 * MIB
RECORD_LINE = LOG_LINE.format("record-{}")


def lines(first: int, count: int, form: str = '{{"id": "record-{}"}}', size: int = 0) -> bytes:
    text = "\n".join(form.format(first + number) + " " * size for number in range(count))
    return text.encode() + b"\n"


def mixed_sources() -> dict[str, bytes]:
    """Every kind of trouble in one partition, and a quiet one beside it."""
    sources = {f"a/{n:03}.json": lines(n * 10, 9, size=20_000) for n in range(40)}
    sources |= {f"a/{n:03}.json": lines(n * 10, 1, RECORD_LINE) for n in range(40, 46)}
    sources |= {
        f"a/b{n}.log.gz": gzip.compress(lines(600 + n, 1, RECORD_LINE), mtime=0) for n in range(9)
    }
    sources["a/b5.log.gz"] = gzip.compress(b"never read " * 100, mtime=0)[:-9]
    sources["a/large.log"] = lines(700, 30, RECORD_LINE, size=120_000)
    sources["a/empty.json"] = b""
    sources |= {f"b/{n}.csv": lines(800 + n, 1, "id,record\n{0},record-{0}") for n in range(5)}
    return sources


def by_lambda(items: list[Partition], settings: Settings) -> None:
    for item in items:
        event: dict[str, Any] = {
            "run_id": "run-lambda",
            "settings": settings.to_dict(),
            "partition": {"path": item.path, "bucket": item.bucket, "prefix": item.prefix},
        }
        assert compact_partition.handler(event, Context())["status"] == "done"


def log_of(job: Job, settings: Settings, item: Partition) -> dict[str, Any]:
    """What the log says, but for times, ids and the order in which groups were finished."""
    told = {}
    for commit in CommitLog(job.store, settings, item).every_commit():
        output = commit.output
        if output is not None:
            key = output.key.removeprefix(settings.destination.prefix)
            output = replace(output, upload_id="", key=key)
        same = replace(
            commit, sequence=0, commit_id="", log_id="", run_id="", created_at=0.0, output=output
        )
        told[commit.group_id] = same
    return told


def test_spark_and_lambda_write_the_same_keys_bytes_and_commits(
    s3: EmbeddedS3, new_job: Callable[..., Job]
) -> None:
    job = new_job(target_bytes=TARGET)
    job.seed(mixed_sources())
    items = job.discover()
    assert [item.path for item in items] == ["a/", "b/"]
    ended = job.run()
    assert ended.code == 0, ended.log[-4000:]

    other = replace(
        job.settings,
        engine="worker",
        s3_destination_uri=f"s3://{job.lake}/by-lambda/",
        s3_state_uri=f"s3://{job.lake}/_compactor/by-lambda/",
    )
    kept_store.cache_clear()
    by_lambda(items, other)
    kept_store.cache_clear()

    outputs = job.outputs()
    expected = job.bodies(job.lake, "by-lambda/")
    assert {k.removeprefix("compacted/"): v for k, v in outputs.items()} == {
        k.removeprefix("by-lambda/"): v for k, v in expected.items()
    }
    for item in items:
        mine, theirs = log_of(job, job.settings, item), log_of(job, other, item)
        assert mine == theirs
        assert mine
    readable = job.readable()
    assert set(readable.values()) == {1}
    assert len(readable) == 9 * 40 + 6 + 8 + 30 + 5
    assert job.uploads() == []
    must_be_accounted_for(job, ended)


def must_be_accounted_for(job: Job, ended: Ended) -> None:
    receipt = job.receipt("a/")
    assert (receipt.status, receipt.counts.quarantined, receipt.counts.copied) == ("done", 1, 1)
    assert receipt.counts.objects_in == len(mixed_sources()) - 5 - 1
    gets = receipt.counts.requests["GET"]
    assert gets >= receipt.counts.objects_in - 2, "those of the tasks are among them"
    result = job.record("spark-result.json")
    assert result is not None
    assert (result["partitions"]["done"], result["partitions"]["failed"]) == (2, 0)
    assert any("groups, " in line and "objects/s, " in line for line in ended.lines), ended.lines

    identity = RunIdentity(job.run_id, "2026-01-03T00:00:00Z")
    told = report(identity, job.settings, job.store)
    assert (told.status, [one.path for one in told.partitions]) == ("succeeded", ["a/", "b/"])
    assert told.totals.objects_in == receipt.counts.objects_in + 5
