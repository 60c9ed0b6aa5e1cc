"""Every path through the state machine, run by the local engine on fake handlers."""

from __future__ import annotations

import json

import boto3

from compactor_local.embedded import EmbeddedS3
from tests.statemachine.conftest import BUCKET, Run


def test_every_partition_is_compacted_once_and_the_run_succeeds(run: Run) -> None:
    ran = run(partitions=4)

    assert ran.result.status == "SUCCEEDED"
    assert sorted(ran.paths("compact_partition")) == ["00000/", "00001/", "00002/", "00003/"]
    assert ran.paths("clean_up") == []
    assert ran.result.output["totals"] == {"partitions": 4}
    assert ran.result.output["failure"] is None


def test_with_nothing_to_do_there_is_still_a_report(run: Run) -> None:
    ran = run(partitions=0)

    assert ran.result.status == "SUCCEEDED"
    assert [call["function"] for call in ran.calls] == ["discover", "report"]


def test_without_an_engine_nothing_looks_for_what_workers_left(run: Run) -> None:
    ran = run(partitions=1, oversized=2)

    assert ran.result.status == "SUCCEEDED"
    assert _states(ran.result.events) >= {"CompactPartitions", "IsSparkWanted", "Report"}
    assert "FindOversized" not in _states(ran.result.events)


def test_a_partition_with_more_to_do_is_called_again_until_it_is_done(run: Run) -> None:
    ran = run(partitions=2, trouble={"compact_partition 00001/": ["more", "more"]})

    assert ran.result.status == "SUCCEEDED"
    assert ran.steps("compact_partition", "00001/") == ["more", "more", "well"]
    assert ran.steps("compact_partition", "00000/") == ["well"]


def test_transient_errors_of_every_function_are_retried(run: Run) -> None:
    once = ["TransientStoreError"]
    ran = run(
        partitions=1,
        delete_after="30d",
        due=1,
        trouble={
            "discover": once,
            "compact_partition 00000/": [*once, "SourceChanged"],
            "plan_clean_up": once,
            "clean_up old-0/": once,
            "report": once,
        },
    )

    assert ran.result.status == "SUCCEEDED"
    assert ran.steps("discover") == ["TransientStoreError", "well"]
    assert ran.steps("compact_partition", "00000/") == [
        "TransientStoreError",
        "SourceChanged",
        "well",
    ]
    assert ran.steps("plan_clean_up") == ["TransientStoreError", "well"]
    assert ran.steps("clean_up", "old-0/") == ["TransientStoreError", "well"]
    assert ran.steps("report") == ["TransientStoreError", "well"]


def test_invalid_input_ends_the_run_immediately_with_its_own_error(run: Run) -> None:
    ran = run(partitions=3, trouble={"discover": ["InvalidInput"] * 9})

    assert (ran.result.status, ran.result.error) == ("FAILED", "InvalidInput")
    assert json.loads(ran.result.cause or "")["errorMessage"] == "discover : as the script says"
    assert [call["function"] for call in ran.calls] == ["discover"]


def test_one_failing_partition_fails_the_run_after_all_others_are_done(
    run: Run, s3: EmbeddedS3
) -> None:
    ran = run(partitions=5, trouble={"compact_partition 00002/": ["IntegrityError"] * 9})

    assert (ran.result.status, ran.result.error) == ("FAILED", "PartitionsFailed")
    assert ran.result.cause == "failed: 00002/"
    assert sorted(ran.paths("compact_partition")) == [f"{n:05}/" for n in range(5)]
    assert ran.result.progress.partitions_done == 4
    assert ran.result.progress.partitions_failed == 1


def test_the_results_on_s3_name_the_failed_partition_and_its_error(
    run: Run, s3: EmbeddedS3
) -> None:
    ran = run(partitions=3, trouble={"compact_partition 00002/": ["IntegrityError"] * 9})

    client = boto3.client("s3", endpoint_url=s3.endpoint_url)
    event = next(event for event in ran.result.events if "mapRunStartedEventDetails" in event)
    map_run = event["mapRunStartedEventDetails"]["mapRunArn"].rpartition(":")[2]
    home = f"runs/{_execution_name(ran.result.events)}/results/{map_run}"
    manifest = json.load(client.get_object(Bucket=BUCKET, Key=f"{home}/manifest.json")["Body"])
    assert [entry["Key"] for entry in manifest["ResultFiles"]["SUCCEEDED"]] == [
        f"{home}/SUCCEEDED_0.json"
    ]
    (failed_key,) = [entry["Key"] for entry in manifest["ResultFiles"]["FAILED"]]
    (failed,) = json.load(client.get_object(Bucket=BUCKET, Key=failed_key)["Body"])
    assert failed["Error"] == "IntegrityError"
    assert [one["path"] for one in json.loads(failed["Input"])["Items"]] == ["00002/"]


def test_partitions_of_a_batch_are_compacted_one_after_another_by_one_child(run: Run) -> None:
    ran = run(
        partitions=7, batch_partitions=3, trouble={"compact_partition 00001/": ["more", "more"]}
    )

    assert ran.result.status == "SUCCEEDED"
    order = ran.paths("compact_partition")
    assert sorted(set(order)) == [f"{n:05}/" for n in range(7)]
    assert [one for one in order if one < "00003/"] == [
        "00000/",
        *["00001/"] * 3,
        "00002/",
    ]
    assert ran.steps("compact_partition", "00001/") == ["more", "more", "well"]
    assert ran.result.progress.partitions_done == 7
    assert ran.result.progress.objects_done == 7 * 3


def test_a_partition_that_fails_in_a_batch_has_its_retries_and_keeps_no_other_from_its_own(
    run: Run,
) -> None:
    trouble = {
        "compact_partition 00000/": ["IntegrityError"] * 99,
        "compact_partition 00002/": ["TransientStoreError"] * 6,
        "compact_partition 00003/": ["TransientStoreError"] * 99,
    }
    ran = run(partitions=5, batch_partitions=5, trouble=trouble)

    assert (ran.result.status, ran.result.error) == ("FAILED", "PartitionsFailed")
    assert ran.result.cause == "failed: 00000/, 00003/"
    assert ran.steps("compact_partition", "00001/") == ["well"]
    assert ran.steps("compact_partition", "00002/")[-1] == "well"
    # As alone: one call and eight retries behind the last thing that went well.
    assert len(ran.steps("compact_partition", "00003/")) >= 1 + 8
    assert ran.result.progress.partitions_done == 3
    assert ran.result.progress.partitions_failed == 2


def test_of_a_batch_whose_calls_are_killed_only_the_partition_that_kills_them_fails(
    run: Run,
) -> None:
    ran = run(
        partitions=5, batch_partitions=5, trouble={"compact_partition 00002/": ["killed"] * 99}
    )

    assert ran.result.cause == "failed: 00002/"
    for number in (0, 1, 3, 4):
        assert "well" in ran.steps("compact_partition", f"{number:05}/")


def test_a_partition_that_stays_unreachable_fails_after_its_last_retry(run: Run) -> None:
    ran = run(partitions=1, trouble={"compact_partition 00000/": ["TransientStoreError"] * 99})

    assert ran.result.error == "PartitionsFailed"
    assert len(ran.paths("compact_partition")) == 1 + 8


def test_an_answer_with_an_unknown_status_fails_the_partition(run: Run) -> None:
    ran = run(partitions=1, trouble={"compact_partition 00000/": ["nonsense"] * 9})

    assert ran.result.error == "PartitionsFailed"
    assert len(ran.paths("compact_partition")) == 1


def test_a_list_that_cannot_be_read_is_reported_and_fails_the_run(run: Run) -> None:
    ran = run(partitions=1, items_key="no/such/list.json")

    assert (ran.result.status, ran.result.cause) == ("FAILED", "the map run failed")
    assert ran.paths("compact_partition") == []
    assert ran.steps("report") == ["well"]


def test_a_report_that_ran_out_of_time_is_called_again_until_it_is_done(run: Run) -> None:
    ran = run(partitions=1, trouble={"report": ["more", "TransientStoreError", "more"]})

    assert ran.result.status == "SUCCEEDED"
    assert ran.steps("report") == ["more", "TransientStoreError", "more", "well"]
    assert ran.result.output["totals"] == {"partitions": 1}


def test_a_failing_report_fails_the_run_with_its_own_error(run: Run) -> None:
    ran = run(partitions=1, trouble={"report": ["IntegrityError"] * 9})

    assert (ran.result.status, ran.result.error) == ("FAILED", "IntegrityError")
    assert ran.steps("compact_partition", "00000/") == ["well"]


def test_state_stays_far_below_its_limit_whatever_the_number_of_partitions(run: Run) -> None:
    ran = run(partitions=300)

    largest = max(len(json.dumps(event)) for event in ran.result.events)
    assert ran.result.status == "SUCCEEDED"
    assert largest < 16 * 1024


def _states(events: tuple[object, ...]) -> set[str]:
    entered = [event.get("stateEnteredEventDetails") for event in events if isinstance(event, dict)]
    return {details["name"] for details in entered if details}


def _execution_name(events: tuple[object, ...]) -> str:
    for event in events:
        details = event.get("stateEnteredEventDetails") if isinstance(event, dict) else None
        if details and details["name"] == "Report":
            return str(json.loads(details["input"])["run_id"])
    raise AssertionError("no Report")
