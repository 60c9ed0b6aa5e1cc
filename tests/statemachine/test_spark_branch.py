"""Every way of what workers leave to Spark, with stand-ins for EMR; the history has the calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from compactor_local.definition import DEFINITION
from tests.statemachine.conftest import BUCKET, Ran, Run
from tests.statemachine.stand_ins import BUSY, CLUSTER, bridges

EMR = {"partitions": 1, "oversized": 2, "spark_engine": CLUSTER}
SERVERLESS = {**EMR, "spark_engine": "emr_serverless"}


def branch(run: Run, order: Mapping[str, Any], **stand_ins: str) -> Ran:
    return run(**order, options={"bridges": bridges(**stand_ins)})


def calls(ran: Ran) -> list[tuple[str, dict[str, Any]]]:
    """Calls of EMR in their order, each with its parameters."""
    scheduled = [event.get("taskScheduledEventDetails") for event in ran.result.events]
    return [
        (details["resource"].removesuffix(".sync"), json.loads(details["parameters"]))
        for details in scheduled
        if details and details["resourceType"] not in {"lambda", "aws-sdk:s3"}
    ]


def called(ran: Ran) -> list[str]:
    return [name for name, _ in calls(ran)]


def states(ran: Ran) -> list[str]:
    entered = [event.get("stateEnteredEventDetails") for event in ran.result.events]
    return [details["name"] for details in entered if details]


def test_the_job_gets_the_place_of_the_run_and_nothing_else(run: Run) -> None:
    ran = branch(run, EMR)

    arguments = calls(ran)[0][1]["Step"]["HadoopJarStep"]["Args"]
    assert arguments[0] == "spark-submit"
    name = arguments[arguments.index("--name") + 1].removeprefix("s3-compactor-")
    assert arguments[-3:] == [
        "s3://local/spark/compact_partitions.py",
        "--run",
        f"s3://{BUCKET}/runs/{name}/",
    ]
    assert arguments[arguments.index("--archives") + 1] == "s3://local/spark/deps.zip#deps"
    assert arguments[arguments.index("--py-files") + 1] == "s3://local/spark/app.zip"
    settings = {arguments[at + 1] for at, word in enumerate(arguments) if word == "--conf"}
    assert settings > {
        "spark.yarn.appMasterEnv.PYTHONPATH=./deps",
        "spark.executorEnv.PYTHONPATH=./deps",
        "spark.driver.maxResultSize=0",
        "spark.speculation=true",
        "spark.yarn.maxAppAttempts=1",
        "spark.jars=s3://local/spark/table.jar",
    }
    # EMR takes no more in one step.
    assert sum(map(len, arguments)) < 10_240


def test_both_ways_give_spark_the_same_sizes(run: Run) -> None:
    step = calls(branch(run, EMR))[0][1]["Step"]["HadoopJarStep"]["Args"]
    job = calls(branch(run, SERVERLESS))[0][1]["JobDriver"]["SparkSubmit"]
    words = job["SparkSubmitParameters"].split()

    def sizes(arguments: list[str]) -> set[str]:
        values = {arguments[at + 1] for at, word in enumerate(arguments) if word == "--conf"}
        return {one for one in values if ".yarn." not in one and "serverless" not in one}

    assert sizes(words) == sizes(step)
    assert "spark.emr-serverless.driverEnv.PYTHONPATH=./deps" in words
    assert [job["EntryPoint"], *job["EntryPointArguments"][:1]] == step[-3:-1]
    assert words[:4] == ["--archives", "s3://local/spark/deps.zip#deps", "--py-files",
                         "s3://local/spark/app.zip"]  # fmt: skip


def test_the_cluster_that_the_run_names_gets_one_step(run: Run) -> None:
    ran = branch(run, EMR)

    assert ran.result.status == "SUCCEEDED"
    assert [(name, call["ClusterId"]) for name, call in calls(ran)] == [("addStep", CLUSTER)]
    assert ran.paths("compact_partition") == ["00000/"]


def test_serverless_starts_one_job_run_and_no_cluster(run: Run) -> None:
    ran = branch(run, SERVERLESS)

    assert ran.result.status == "SUCCEEDED"
    assert called(ran) == ["startJobRun"]


@pytest.mark.parametrize("wanted", [CLUSTER, "emr_serverless", "none"])
def test_nothing_of_spark_runs_when_nothing_is_oversized(run: Run, wanted: str) -> None:
    ran = branch(run, {"partitions": 2, "oversized": 0, "spark_engine": wanted})

    assert ran.result.status == "SUCCEEDED"
    assert called(ran) == []
    assert ("AnyOversized" in states(ran)) == (wanted != "none")


def test_spark_starts_for_a_table_that_lags_without_a_look_at_the_partitions(run: Run) -> None:
    ran = branch(run, {**SERVERLESS, "partitions": 0, "oversized": 0, "lags": True})

    assert ran.result.status == "SUCCEEDED"
    assert called(ran) == ["startJobRun"]
    assert {"CompactPartitions", "FindOversized"}.isdisjoint(states(ran))


@pytest.mark.parametrize(
    ("order", "stand_ins", "order_of_calls", "cause"),
    [
        (EMR, {"add_step": "fails"}, ["addStep"], "broken"),
        (SERVERLESS, {"start_job_run": "fails"}, ["startJobRun"], "broken"),
    ],
)
def test_a_failure_is_reported_after_all_else_is_done_and_fails_the_run(
    run: Run,
    order: Mapping[str, Any],
    stand_ins: Mapping[str, str],
    order_of_calls: list[str],
    cause: str,
) -> None:
    ran = branch(run, order, **stand_ins)

    assert called(ran) == order_of_calls
    assert (ran.result.status, ran.result.error) == ("FAILED", "PartitionsFailed")
    assert (ran.result.cause or "").startswith("Spark: States.TaskFailed: ")
    assert cause in (ran.result.cause or "")
    assert ran.steps("compact_partition", "00000/") == ["well"]
    assert ran.steps("report") == ["well"]


def test_a_service_that_is_busy_is_asked_again(run: Run) -> None:
    ran = branch(run, EMR, add_step="is_busy_once")

    assert ran.result.status == "SUCCEEDED"
    assert called(ran) == ["addStep"] * 2


def test_a_service_that_stays_busy_is_a_failure_of_spark(run: Run) -> None:
    ran = branch(run, EMR, add_step="is_always_busy")

    assert called(ran) == ["addStep"] * 4
    assert ran.result.cause == f"Spark: {BUSY}: Rate exceeded"


def test_a_step_that_never_ends_is_given_up(run: Run, tmp_path) -> None:
    definition = tmp_path / "hasty.asl.json"
    text = DEFINITION.read_text(encoding="utf-8").replace("43200", "1")
    definition.write_text(text, encoding="utf-8")

    ran = run(**EMR, options={"bridges": bridges(add_step="never_ends"), "definition": definition})

    assert called(ran) == ["addStep"]
    assert (ran.result.cause or "").startswith("Spark: States.Timeout")


def test_a_failed_partition_does_not_keep_spark_from_its_work(run: Run) -> None:
    ran = branch(run, {**EMR, "trouble": {"compact_partition 00000/": ["IntegrityError"] * 9}})

    assert called(ran) == ["addStep"]
    assert ran.result.cause == "failed: 00000/"


# The parameters, checked against the services' own models.


def problems(service: str, shape: str, parameters: Mapping[str, Any]) -> str:
    """Unknown, missing and ill-typed parameters, by the service's own model."""
    model = botocore.session.get_session().get_service_model(service)
    report: str = ParamValidator().validate(parameters, model.shape_for(shape)).generate_report()
    return report


def camel(given: Any, *, names: bool = True) -> Any:
    """As EMR Serverless itself wants its names; Step Functions begins them in upper case."""
    if isinstance(given, dict):
        return {
            name[0].lower() + name[1:] if names else name: camel(value, names=name != "Tags")
            for name, value in given.items()
        }
    return [camel(one) for one in given] if isinstance(given, list) else given


def test_emr_knows_every_parameter_of_the_step(run: Run) -> None:
    (_, step), *_ = calls(branch(run, EMR))

    assert problems("emr", "StepConfig", step["Step"]) == ""
    assert set(step) == {"ClusterId", "Step"}


def test_emr_serverless_knows_every_parameter_of_the_job_run(run: Run) -> None:
    (_, job_run), *_ = calls(branch(run, SERVERLESS))

    given = {**camel(job_run), "clientToken": "the service's own"}
    assert problems("emr-serverless", "StartJobRunRequest", given) == ""


@pytest.mark.parametrize(
    ("jar_step", "problem"),
    [
        ({"Jar": "j", "Arg": []}, 'Unknown parameter in HadoopJarStep: "Arg"'),
        ({}, 'Missing required parameter in HadoopJarStep: "Jar"'),
        ({"Jar": "j", "Args": "a"}, "Invalid type for parameter HadoopJarStep.Args"),
    ],
)
def test_a_parameter_that_a_service_does_not_take_is_found(
    jar_step: dict[str, Any], problem: str
) -> None:
    assert problem in problems("emr", "StepConfig", {"Name": "n", "HadoopJarStep": jar_step})
