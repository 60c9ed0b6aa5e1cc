"""A whole run as one Spark job, as spark-submit starts it: no workflow and no worker beside it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.spark.job import Ended, Job

pytestmark = pytest.mark.slow
Jobs = Callable[..., Job]
OPTIONS = ("--depth", "1", "--clean-up", "delete", "--retention-days", "0")


def sources() -> dict[str, bytes]:
    return {
        f"{path}{n:02}.json": b'{"id": "record-%d"}\n' % (1_000 * number + n)
        for number, path in enumerate(("a/", "b/", "c/"))
        for n in range(10)
    }


def run(job: Job, *words: str) -> Ended:
    places = (f"s3://{job.source}/logs/", f"s3://{job.lake}/compacted/")
    return job.wait(job.submit_script("compact_run.py", *places, *words))


def report_of(job: Job, ended: Ended) -> dict[str, object]:
    """The report that the last line names."""
    uri = ended.lines[-1].partition("report: ")[2].split()[0]
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    found: dict[str, object] = json.loads(job.store.get(bucket, key))
    return found


def test_one_job_discovers_compacts_cleans_up_and_reports(new_job: Jobs) -> None:
    job = new_job()
    job.seed(sources())
    ended = run(job, *OPTIONS)
    assert ended.code == 0, ended.log[-4000:]
    assert "compact_run: succeeded: 30 objects into 3" in ended.lines
    report = report_of(job, ended)
    assert report["status"] == "succeeded"
    assert len(job.readable()) == 30
    assert set(job.readable().values()) == {1}
    assert job.uploads() == []
