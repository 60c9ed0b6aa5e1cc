"""How long jobs and queries took, asked of services that answer as their models say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore.stub import ANY, Stubber

from compactor.errors import InvalidInput, TransientStoreError
from compactor.settings.tables import parse_table
from compactor_tables.aws.run_times import AthenaQueries, ClusterStep, GlueJob, ServerlessJob

NOW = 1_795_000_000.0
TABLE = parse_table("glue:gold.orders")


def moment(before: float) -> datetime:
    return datetime.fromtimestamp(NOW - before, UTC)


@pytest.fixture
def stubbed(request: pytest.FixtureRequest) -> Iterator[Any]:
    client = botocore.session.get_session().create_client(
        request.param, "us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    with Stubber(client) as stub:
        yield client, stub
        stub.assert_no_pending_responses()


def job_run(before: float, seconds: int, state: str = "SUCCEEDED") -> dict[str, Any]:
    return {
        "Id": f"jr_{before}",
        "JobName": "nightly",
        "StartedOn": moment(before),
        "JobRunState": state,
        "ExecutionTime": seconds,
    }


@pytest.mark.parametrize("stubbed", ["glue"], indirect=True)
def test_the_runs_of_a_glue_job_that_succeeded_are_reported_newest_first(stubbed: Any) -> None:
    client, stub = stubbed
    asked = {"JobName": "nightly", "MaxResults": 200}
    first = [job_run(10, 5, "RUNNING"), job_run(100, 40), job_run(200, 9, "FAILED")]
    stub.add_response("get_job_runs", {"JobRuns": first, "NextToken": "t"}, asked)
    # Everything on this page is older than what is asked for: no page behind it is.
    second = [job_run(1_200, 70), job_run(1_300, 71)]
    stub.add_response(
        "get_job_runs", {"JobRuns": second, "NextToken": "u"}, asked | {"NextToken": "t"}
    )
    found = GlueJob("nightly", client).last(7, NOW - 1_000)
    assert found == [40.0]


@pytest.mark.parametrize("stubbed", ["glue"], indirect=True)
def test_a_job_that_is_not_there_is_the_mistake_of_the_rule(stubbed: Any) -> None:
    client, stub = stubbed
    stub.add_client_error("get_job_runs", "EntityNotFoundException", "Job nightly not found")
    with pytest.raises(InvalidInput, match="glue_job:nightly") as refused:
        GlueJob("nightly", client).last(7, 0)
    assert refused.value.field == "latency"


@pytest.mark.parametrize("stubbed", ["glue"], indirect=True)
def test_a_service_that_is_busy_is_asked_again_later(stubbed: Any) -> None:
    client, stub = stubbed
    stub.add_client_error("get_job_runs", "ThrottlingException", "Rate exceeded", 400)
    with pytest.raises(TransientStoreError, match="glue_job:nightly"):
        GlueJob("nightly", client).last(7, 0)


@pytest.mark.parametrize("stubbed", ["emr-serverless"], indirect=True)
def test_the_runs_with_a_name_of_an_application_are_asked_one_by_one(stubbed: Any) -> None:
    client, stub = stubbed
    run = {
        "applicationId": "00f1",
        "arn": "arn:aws:emr-serverless:us-east-1:1:/applications/00f1/jobruns/j",
        "createdBy": "arn:aws:iam::1:user/me",
        "createdAt": moment(300),
        "updatedAt": moment(100),
        "executionRole": "arn:aws:iam::123456789012:role/r",
        "state": "SUCCESS",
        "stateDetails": "done",
        "releaseLabel": "emr-7.0.0",
    }
    stub.add_response(
        "list_job_runs",
        {"jobRuns": [run | {"id": "j1", "name": "load"}, run | {"id": "j2", "name": "other"}]},
        {
            "applicationId": "00f1",
            "states": ["SUCCESS"],
            "createdAtAfter": moment(1_000),
            "maxResults": 50,
        },
    )
    told = run | {"jobRunId": "j1", "startedAt": moment(250), "totalExecutionDurationSeconds": 90}
    told |= {"jobDriver": {"sparkSubmit": {"entryPoint": "s3://a/b.py"}}}
    stub.add_response("get_job_run", {"jobRun": told}, {"applicationId": "00f1", "jobRunId": "j1"})
    found = ServerlessJob("00f1", "load", client).last(7, NOW - 1_000)
    assert found == [90.0]


@pytest.mark.parametrize("stubbed", ["emr"], indirect=True)
def test_the_steps_with_a_name_of_a_cluster_are_returned(stubbed: Any) -> None:
    client, stub = stubbed

    def step(name: str, before: float, seconds: float) -> dict[str, Any]:
        time = {
            "CreationDateTime": moment(before + 9),
            "StartDateTime": moment(before),
            "EndDateTime": moment(before - seconds),
        }
        return {"Id": "s", "Name": name, "Status": {"State": "COMPLETED", "Timeline": time}}

    steps = [step("load", 100, 60), step("other", 200, 10), step("load", 300, 50)]
    asked = {"ClusterId": "j-1", "StepStates": ["COMPLETED"]}
    stub.add_response("list_steps", {"Steps": steps}, asked)
    found = ClusterStep("j-1", "load", client).last(7, NOW - 1_000)
    assert found == [60.0, 50.0]


def query(
    sql: str, before: float, millis: int, *, database: str = "gold", state: str = "SUCCEEDED"
) -> dict[str, Any]:
    return {
        "Query": sql,
        "QueryExecutionContext": {"Database": database},
        "Status": {"State": state, "SubmissionDateTime": moment(before)},
        "Statistics": {"EngineExecutionTimeInMillis": millis},
    }


COUNTED = [
    query("SELECT * FROM gold.orders", 10, 1_000, database="other"),
    query('-- nightly\nselect a from "gold"."orders" o', 20, 2_000),
    query("WITH x AS (SELECT 1) SELECT * FROM orders, x", 30, 3_000),
]
PASSED_OVER = [
    query("SELECT * FROM orders", 40, 9, database="silver"),
    query("SELECT * FROM silver.orders", 50, 9),
    query("SELECT * FROM gold.orders_old", 60, 9),
    query("SELECT * FROM gold.reorders", 60, 9),
    query("OPTIMIZE gold.orders REWRITE DATA USING BIN_PACK", 70, 9),
    query("INSERT INTO gold.orders SELECT 1", 75, 9),
    query("SELECT * FROM gold.orders", 80, 9, state="FAILED"),
    query("SELECT * FROM gold.orders", 90, 9)
    | {
        "Statistics": {
            "EngineExecutionTimeInMillis": 9,
            "ResultReuseInformation": {"ReusedPreviousResult": True},
        }
    },
    query("SELECT * FROM gold.orders", 5_000, 9),
]


@pytest.mark.parametrize("stubbed", ["athena"], indirect=True)
def test_the_queries_of_a_workgroup_that_read_the_table_are_reported(stubbed: Any) -> None:
    client, stub = stubbed
    ids = [f"q{n}" for n in range(len(COUNTED) + len(PASSED_OVER))]
    stub.add_response(
        "list_query_executions",
        {"QueryExecutionIds": ids},
        {"WorkGroup": "primary", "MaxResults": 50},
    )
    stub.add_response(
        "batch_get_query_execution",
        {"QueryExecutions": [*COUNTED, *PASSED_OVER]},
        {"QueryExecutionIds": ANY},
    )
    found = AthenaQueries("primary", TABLE, client).last(7, NOW - 1_000)
    assert found == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("stubbed", ["athena"], indirect=True)
def test_a_workgroup_that_is_not_there_is_the_mistake_of_the_rule(stubbed: Any) -> None:
    client, stub = stubbed
    stub.add_client_error("list_query_executions", "InvalidRequestException", "WorkGroup x ...")
    with pytest.raises(InvalidInput, match="WorkGroup x"):
        AthenaQueries("x", TABLE, client).last(7, 0)
