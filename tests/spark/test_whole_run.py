"""A whole run as one Spark job: no workflow, and no worker beside it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compactor.clock import NoDeadline, SystemClock
from compactor.orchestration.in_process import ThisProcess
from compactor.orchestration.messages import Desk
from compactor.orchestration.run import Given, run_whole
from compactor.settings.settings import Settings
from compactor_dev import REPOSITORY
from compactor_spark import compact_run
from tests.spark.job import Job

pytestmark = pytest.mark.slow
Jobs = Callable[..., Job]
GUIDE = REPOSITORY / "docs" / "spark.md"
BY_DATE = ("--date-format", "%Y/%m/%d", "--window", "7d")
ROWS = ("--output-format", "parquet")
DELETE = ("--delete-after", "0d")


def day(ago: int) -> str:
    return (datetime.now(UTC) - timedelta(days=ago)).strftime("%Y/%m/%d")


def sources() -> dict[str, bytes]:
    """Ten objects of each of three days, whose records have numbers of their own."""
    return {
        f"{day(ago)}/{n:02}.json": b'{"id": "record-%d"}\n' % (100 * ago + n)
        for ago in (1, 2, 3)
        for n in range(10)
    }


def report_of(job: Job, said: str) -> dict[str, Any]:
    """The report that a job has named."""
    uri = re.findall(r"^compact_run: report: (\S+)", said, re.MULTILINE)[-1]
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    found: dict[str, Any] = json.loads(job.store.get(bucket, key))
    return found


def test_the_command_of_the_guide_compacts_a_source_on_this_machine(new_job: Jobs) -> None:
    section = GUIDE.read_text().partition("## On this machine\n")[2]
    block = section.partition("```bash\n")[2].partition("```")[0]
    program, *words = shlex.split(block.splitlines()[-1])
    assert program == "spark-submit"
    job = new_job()
    job.seed(sources())
    places = {"s3://my-logs/raw/": f"s3://{job.source}/logs/"}
    places["s3://my-lake/compacted/"] = f"s3://{job.lake}/compacted/"
    ended = job.wait(job.submit_words([places.get(word, word) for word in words]))
    assert ended.code == 0, ended.log[-4000:]
    assert "compact_run: succeeded: 10 objects into 1" in ended.lines
    assert report_of(job, ended.log)["status"] == "succeeded"
    assert job.readable() == dict.fromkeys(range(100, 110), 1), "yesterday, as no window is given"
    assert job.uploads() == []


class Here:
    """The job in this process, whose session is not its own, as on Databricks."""

    def __init__(self, job: Job, capsys: pytest.CaptureFixture[str]) -> None:
        self.job = job
        self._capsys = capsys

    def run(self, *words: str, lake: str = "compacted") -> tuple[int, dict[str, Any]]:
        """A run's exit code and report."""
        places = (f"s3://{self.job.source}/logs/", f"s3://{self.job.lake}/{lake}/")
        code = compact_run.main([*places, *words])
        return code, report_of(self.job, self._capsys.readouterr().err)


@pytest.fixture
def here(
    new_job: Jobs,
    spark_session: SparkSession,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Here:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    job = new_job()
    job.seed(sources())
    return Here(job, capsys)


def by_workers(settings: Settings, job: Job) -> str:
    """The same run as a loop with a worker; its status."""
    clock = SystemClock()
    ended = run_whole(
        Given(
            settings=settings,
            run_id="run-workers",
            started_at="2026-01-01T00:00:00Z",
            store=job.store,
            clock=clock,
            deadline=NoDeadline(),
            workers=lambda store: ThisProcess(
                Desk(settings, store, clock, "run-workers"), NoDeadline()
            ),
        )
    )
    assert ended.report is not None
    return ended.report.status


@pytest.mark.parametrize("options", [(), ROWS], ids=["bytes", "rows"])
def test_the_outputs_are_those_of_a_run_by_workers(here: Here, options: tuple[str, ...]) -> None:
    code, report = here.run(*BY_DATE, *options)
    assert (code, report["totals"]["objects_in"]) == (0, 30)
    job = here.job
    settings = Settings.from_input(
        {
            "s3_source_uri": f"s3://{job.source}/logs/",
            "s3_destination_uri": f"s3://{job.lake}/by-workers/",
            "date_format": "%Y/%m/%d",
            "window": "7d",
            "engine": "worker",
            **({"output_format": "parquet"} if options else {}),
        }
    )
    assert by_workers(settings, job) == "succeeded"
    outputs = {key.partition("/")[2]: body for key, body in job.outputs().items()}
    theirs = job.bodies(job.lake, "by-workers/")
    assert outputs == {key.partition("/")[2]: body for key, body in theirs.items()}
    assert len(outputs) == 3


def test_a_run_cleans_up_and_the_next_one_has_nothing_to_do(here: Here) -> None:
    code, report = here.run(*BY_DATE, *DELETE)
    assert (code, report["status"]) == (0, "succeeded")
    assert report["clean_up"]["deleted"] == 30
    assert here.job.bodies(here.job.source) == {}
    assert len(here.job.readable()) == 30
    code, report = here.run(*BY_DATE, *DELETE)
    assert (code, report["totals"]["objects_in"]) == (0, 0)
    assert set(here.job.readable().values()) == {1}


def test_a_group_that_fails_fails_the_run_and_nothing_else(here: Here) -> None:
    here.job.seed({f"{day(4)}/1.json": b'{"x": 1}\n'})
    code, report = here.run(*BY_DATE, *ROWS, "--parquet-schema", "id STRING")
    assert code == 1
    assert report["status"] == "failed"
    assert len(here.job.outputs()) == 3


def test_a_wrong_option_is_refused_before_spark_starts() -> None:
    ended = subprocess.run(
        [sys.executable, compact_run.__file__, "s3://logs/a/", "s3://lake/a/", "--depth", "many"],
        env={"PYTHONPATH": ":".join(sys.path), "JAVA_HOME": "/dev/null"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 2
    assert "depth: 'many' is not accepted" in ended.stderr


def test_a_store_that_lacks_the_state_bucket_is_reported_in_one_line(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    places = (f"s3://{here.job.source}/logs/", "s3://no-such-lake-anywhere/compacted/")
    assert compact_run.main(places) == 2
    assert "compact_run: failed: InvalidInput: " in capsys.readouterr().err
