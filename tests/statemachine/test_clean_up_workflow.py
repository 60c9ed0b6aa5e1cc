"""Every path through clean-up, run by the local engine on fake handlers."""

from __future__ import annotations

import json

import boto3

from compactor_cli.run_status import CLEAN_UPS_LABEL, PARTITIONS_LABEL
from compactor_local.embedded import EmbeddedS3
from tests.statemachine.conftest import BUCKET, Ran, Run

_CLEAN_UP = {"PlanCleanUp", "IsAnythingDue", "CleanUpPartitions"}


def _states(ran: Ran) -> set[str]:
    entered = [event.get("stateEnteredEventDetails") for event in ran.result.events]
    return {details["name"] for details in entered if details}


def _results(ran: Ran, s3: EmbeddedS3, label: str) -> list[dict[str, str]]:
    """What the Map Run of this label left in its results, by the file of each status."""
    client = boto3.client("s3", endpoint_url=s3.endpoint_url)
    started = [event.get("mapRunStartedEventDetails") for event in ran.result.events]
    (name,) = [
        one["mapRunArn"].rpartition(":")[2]
        for one in started
        if one and f"/{label}:" in one["mapRunArn"]
    ]
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="runs/")
    keys = [one["Key"] for page in pages for one in page["Contents"] if f"/{name}/" in one["Key"]]
    bodies = [
        json.load(client.get_object(Bucket=BUCKET, Key=key)["Body"])
        for key in keys
        if not key.endswith("manifest.json")
    ]
    return [one for body in bodies for one in body]


def test_clean_up_goes_through_what_is_due_and_not_through_the_runs_own_partitions(
    run: Run,
) -> None:
    ran = run(partitions=2, delete_after="30d", due=3)

    assert ran.result.status == "SUCCEEDED"
    assert sorted(ran.paths("clean_up")) == ["old-0/", "old-1/", "old-2/"]
    order = [call["function"] for call in ran.calls]
    assert order[:4] == ["discover", "compact_partition", "compact_partition", "plan_clean_up"]
    assert order[-1] == "report"


def test_nothing_of_clean_up_is_done_unless_the_settings_ask_for_it(run: Run) -> None:
    ran = run(partitions=1, delete_after=None, due=3)

    assert ran.result.status == "SUCCEEDED"
    assert [call["function"] for call in ran.calls] == ["discover", "compact_partition", "report"]
    assert not _CLEAN_UP & _states(ran)


def test_with_nothing_due_no_map_run_is_started(run: Run) -> None:
    ran = run(partitions=1, delete_after="30d", due=0)

    assert ran.result.status == "SUCCEEDED"
    assert _CLEAN_UP & _states(ran) == {"PlanCleanUp", "IsAnythingDue"}
    assert ran.paths("clean_up") == []


def test_what_is_due_is_cleaned_up_when_there_is_nothing_to_compact(run: Run) -> None:
    ran = run(partitions=0, delete_after="30d", due=2)

    assert ran.result.status == "SUCCEEDED"
    assert "CompactPartitions" not in _states(ran)
    assert sorted(ran.paths("clean_up")) == ["old-0/", "old-1/"]


def test_a_failed_partition_keeps_no_other_from_being_cleaned_up(run: Run) -> None:
    ran = run(
        partitions=1,
        delete_after="30d",
        due=1,
        trouble={"compact_partition 00000/": ["IntegrityError"] * 9},
    )

    assert (ran.result.error, ran.result.cause) == ("PartitionsFailed", "failed: 00000/")
    assert ran.paths("clean_up") == ["old-0/"]


def test_a_clean_up_with_more_to_do_is_called_again_until_it_is_done(run: Run) -> None:
    ran = run(
        partitions=0, delete_after="30d", due=2, trouble={"clean_up old-1/": ["more", "more"]}
    )

    assert ran.result.status == "SUCCEEDED"
    assert ran.steps("clean_up", "old-1/") == ["more", "more", "well"]
    assert ran.steps("clean_up", "old-0/") == ["well"]
    # Three sources a call, each call's count the sum of all so far.
    assert ran.result.progress.deleted == 12


def test_one_unsafe_clean_up_fails_the_run_after_all_others_are_done(run: Run) -> None:
    ran = run(
        partitions=1,
        delete_after="30d",
        due=3,
        trouble={"clean_up old-1/": ["IntegrityError"] * 9},
    )

    assert (ran.result.status, ran.result.error) == ("FAILED", "PartitionsFailed")
    assert ran.result.cause == "failed: old-1/"
    assert sorted(ran.paths("clean_up")) == ["old-0/", "old-1/", "old-2/"]
    assert ran.steps("report") == ["well"]


def test_a_lost_clean_up_worker_is_replaced_and_when_it_stays_lost_fails_the_run(run: Run) -> None:
    ran = run(
        partitions=0,
        delete_after="30d",
        due=2,
        trouble={"clean_up old-0/": ["killed"], "clean_up old-1/": ["killed"] * 9},
    )

    assert ran.steps("clean_up", "old-0/") == ["killed", "well"]
    assert ran.steps("clean_up", "old-1/") == ["killed"] * 5
    assert (ran.result.error, ran.result.cause) == ("PartitionsFailed", "failed: old-1/")


def test_an_answer_with_an_unknown_status_fails_the_clean_up(run: Run) -> None:
    ran = run(
        partitions=0, delete_after="30d", due=1, trouble={"clean_up old-0/": ["nonsense"] * 9}
    )

    assert ran.result.error == "PartitionsFailed"
    assert len(ran.paths("clean_up")) == 1


def test_a_plan_that_fails_is_reported_and_fails_the_run(run: Run) -> None:
    ran = run(
        partitions=1, delete_after="30d", due=1, trouble={"plan_clean_up": ["IntegrityError"] * 9}
    )

    assert (ran.result.status, ran.result.cause) == ("FAILED", "clean-up: IntegrityError")
    assert ran.steps("compact_partition", "00000/") == ["well"]
    assert (ran.paths("clean_up"), ran.steps("report")) == ([], ["well"])


def test_a_list_of_what_is_due_that_cannot_be_read_is_reported_and_fails_the_run(run: Run) -> None:
    ran = run(partitions=0, delete_after="30d", due=1, clean_up_key="no/such/list.json")

    assert ran.result.status == "FAILED"
    assert (ran.result.cause or "").startswith("clean-up: ")
    assert (ran.paths("clean_up"), ran.steps("report")) == ([], ["well"])


def test_each_map_run_writes_its_own_results(run: Run, s3: EmbeddedS3) -> None:
    ran = run(
        partitions=2,
        delete_after="30d",
        due=3,
        trouble={"clean_up old-2/": ["IntegrityError"] * 9},
    )

    compacted = _results(ran, s3, PARTITIONS_LABEL)
    done = [json.loads(one["Output"])["partitions"] for one in compacted]
    assert sorted(one["path"] for (one,) in done) == ["00000/", "00001/"]
    cleaned = _results(ran, s3, CLEAN_UPS_LABEL)
    (failed,) = [one for one in cleaned if one["Status"] == "FAILED"]
    assert json.loads(failed["Input"])["path"] == "old-2/"
    done = [json.loads(one["Output"]) for one in cleaned if one["Status"] == "SUCCEEDED"]
    assert done == [
        {"path": "old-0/", "counts": {"deleted": 3}},
        {"path": "old-1/", "counts": {"deleted": 3}},
    ]


def test_progress_separates_partitions_and_clean_ups(run: Run) -> None:
    ran = run(
        partitions=2,
        delete_after="30d",
        due=3,
        trouble={"clean_up old-2/": ["IntegrityError"] * 9},
    )

    last = ran.result.progress
    assert (last.partitions_total, last.partitions_done, last.partitions_failed) == (2, 2, 0)
    assert (last.clean_ups_total, last.clean_ups_done, last.clean_ups_failed) == (3, 2, 1)
    assert (last.objects_done, last.deleted) == (6, 6)


def test_state_stays_far_below_its_limit_however_much_is_due(run: Run) -> None:
    ran = run(partitions=1, delete_after="30d", due=200)

    largest = max(len(json.dumps(event)) for event in ran.result.events)
    assert ran.result.status == "SUCCEEDED"
    assert largest < 16 * 1024
