"""The whole workflow with clean-up: real handlers, the local engine, an embedded S3."""

from __future__ import annotations

import itertools
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor.s3.store import make_client
from compactor_cli.commands import main
from compactor_local.embedded import EmbeddedS3, SeedObject
from tests.e2e.conftest import Workflow

# A store's clock tells whole seconds: what was committed just now is past no retention yet.
_A_SECOND = 1.1
_names = itertools.count(1)


def _day(days_ago: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days_ago)).strftime("%Y/%m/%d/")


class Days:
    """Sources of some days, compacted and kept by a first run."""

    def __init__(self, workflow: Workflow, *days_ago: int) -> None:
        self.workflow = workflow
        self.client = make_client(workflow.s3.endpoint_url)
        self.days = [_day(ago) for ago in days_ago]
        objects = {
            f"logs/{day}{n}.json": b'{"id":"%s-%d"}\n' % (day.encode(), n)
            for day in self.days
            for n in range(3)
        }
        workflow.seed(objects)
        result = self.run(window="30d")
        assert result.status == "SUCCEEDED", result.cause
        assert len(self.sources) == len(objects)
        time.sleep(_A_SECOND)

    def run(self, **fields: object) -> Any:
        return self.workflow.run(date_format="%Y/%m/%d", **fields)

    @property
    def sources(self) -> list[str]:
        return self._keys(self.workflow.source, "logs/")

    @property
    def outputs(self) -> list[str]:
        return self._keys(self.workflow.lake, "compacted/")

    def _keys(self, bucket: str, prefix: str) -> list[str]:
        listed = self.client.list_objects_v2(Bucket=bucket, Prefix=prefix)
        return [one["Key"] for one in listed.get("Contents", [])]

    def report(self, result: Any) -> dict[str, Any]:
        """The report of the last run, found from what it left, whether or not it succeeded."""
        keys = self._keys(self.workflow.lake, "_compactor/compacted/runs/")
        name = next(
            json.loads(event["stateEnteredEventDetails"]["input"])["run_id"]
            for event in result.events
            if event.get("stateEnteredEventDetails", {}).get("name") == "Report"
        )
        (key,) = [key for key in keys if key.endswith(f"/{name}/report.json")]
        body = self.client.get_object(Bucket=self.workflow.lake, Key=key)["Body"].read()
        document: dict[str, Any] = json.loads(body)
        return document


def test_commits_of_days_that_a_run_no_longer_lists_are_cleaned_up(workflow: Workflow) -> None:
    days = Days(workflow, 2, 9)

    result = days.run(window="3d", delete_after="0d")

    assert result.status == "SUCCEEDED", result.cause
    assert (days.sources, len(days.outputs)) == ([], 2)
    assert result.output["clean_up"]["partitions"] == 2
    assert result.progress.clean_ups_done == 2
    assert result.progress.deleted == days.report(result)["clean_up"]["deleted"] == 6


def test_what_is_cleaned_up_is_never_looked_at_again(workflow: Workflow) -> None:
    days = Days(workflow, 2)
    assert days.run(window="3d", delete_after="0d").status == "SUCCEEDED"

    again = days.run(window="3d", delete_after="0d")

    assert again.status == "SUCCEEDED", again.cause
    assert again.output["clean_up"]["partitions"] == 0
    assert again.progress.clean_ups_total == 0


def test_an_output_that_was_tampered_with_fails_the_run_and_keeps_its_own_sources_alone(
    workflow: Workflow,
) -> None:
    days = Days(workflow, 2, 9)
    broken = next(key for key in days.outputs if days.days[1] in key)
    size = days.client.head_object(Bucket=workflow.lake, Key=broken)["ContentLength"]
    days.client.put_object(Bucket=workflow.lake, Key=broken, Body=b"x" * size)

    result = days.run(window="3d", delete_after="0d")

    assert (result.status, result.error) == ("FAILED", "PartitionsFailed")
    assert result.cause is not None
    assert result.cause.startswith(f"clean-up: {days.days[1]}")
    assert {key.removeprefix("logs/")[:11] for key in days.sources} == {days.days[1]}
    report = days.report(result)
    assert (report["status"], report["clean_up"]["deleted"]) == ("failed", 3)
    assert len(report["clean_up"]["unsafe"]) == 1


def test_a_damaged_log_fails_the_run_and_the_others_are_cleaned_up(workflow: Workflow) -> None:
    days = Days(workflow, 2, 9)
    log = f"_compactor/compacted/partitions/{days.days[1]}commits/"
    (entry,) = [key for key in days._keys(workflow.lake, log) if key.endswith(f"{1:020}.json.gz")]
    days.client.put_object(Bucket=workflow.lake, Key=entry, Body=b"no entry at all")

    result = days.run(window="3d", delete_after="0d")

    assert (result.status, result.error) == ("FAILED", "PartitionsFailed")
    assert result.cause is not None
    assert f"clean-up: {days.days[1]}: IntegrityError" in result.cause
    assert len(days.sources) == 3
    assert days.report(result)["clean_up"]["deleted"] == 3


def test_compactor_run_shows_what_it_cleaned_up(
    s3: EmbeddedS3, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket = f"told-{next(_names)}"
    old = time.time() - 7 * 86_400
    s3.seed(bucket, [SeedObject(f"logs/{n}.json", b'{"id":%d}\n' % n, old) for n in range(4)])
    uris = [f"s3://{bucket}/logs/", f"s3://{bucket}/compacted/"]
    words = ["run", *uris, "--endpoint-url", s3.endpoint_url]
    assert main(words) == 0
    assert "clean-up" not in capsys.readouterr().out
    time.sleep(_A_SECOND)

    code = main([*words, "--delete-after", "0d"])

    out = capsys.readouterr().out
    assert code == 0
    assert "clean-up: 4 sources of 1 commit deleted, 36 B" in out.splitlines()
