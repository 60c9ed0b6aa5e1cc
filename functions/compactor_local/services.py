"""Local stand-ins for EMR and EMR Serverless.

Steps of a cluster and job runs of EMR Serverless are run with the ``spark-submit`` of the installed
pyspark. Failures have the error names and causes that the real
services pass to Step Functions.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from compactor.errors import InvalidInput
from compactor_cli.machine.processes import Child
from compactor_cli.machine.spark_job import END_SECONDS, STARTING, follow
from compactor_cli.machine.spark_submit import (
    SparkMissing,
    find_spark,
    local_command,
    local_environment,
)
from compactor_local.interpreter import BridgeError

_ENDINGS = ("spark-result.json", "spark-error.json")


@dataclass(slots=True)
class Callbacks:
    """For the progress of jobs.

    Attributes:
        on_line: called with each progress line of a job.
        on_end: called with the counts that a job left, such as ``done``, ``failed`` and
            ``objects_in``.
    """

    on_line: Callable[[str], None] = lambda line: None
    on_end: Callable[[Mapping[str, Any]], None] = lambda partitions: None


callbacks = Callbacks()


def add_step(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``addStep.sync``: runs the step's arguments with local Spark.

    Raises:
        BridgeError: the step failed.
    """
    step = parameters["Step"]
    described = {"Id": f"s-LOCAL{secrets.token_hex(4).upper()}", "Name": step["Name"]}

    def failure(reason: str) -> dict[str, Any]:
        details = {"FailureDetails": {"Reason": reason}}
        return {"Step": {**described, "Status": {"State": "FAILED", **details}}}

    arguments = step["HadoopJarStep"]["Args"]
    _run_job(arguments, failure)
    return {"Step": {**described, "Status": {"State": "COMPLETED"}}}


def start_job_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``emr-serverless:startJobRun.sync``: runs the same kind of job.

    Raises:
        BridgeError: the job failed.
    """
    submit = parameters["JobDriver"]["SparkSubmit"]
    arguments = [
        "spark-submit",
        *shlex.split(submit.get("SparkSubmitParameters", "")),
        submit["EntryPoint"],
        *submit.get("EntryPointArguments", []),
    ]
    described = {"ApplicationId": parameters["ApplicationId"], "Name": parameters.get("Name", "")}

    def failure(reason: str) -> dict[str, Any]:
        return {**described, "State": "FAILED", "StateDetails": reason}

    _run_job(arguments, failure)
    return {**described, "State": "SUCCESS"}


def _run_job(arguments: Sequence[str], failure: Callable[[str], Mapping[str, Any]]) -> None:
    """Run spark-submit to its end.

    Args:
        arguments: of the step.
        failure: returns the service's description of a failure, given its reason.

    Raises:
        BridgeError: it failed, or could not be started.
    """
    try:
        spark = find_spark()
        command = local_command(arguments, spark, os.environ)
    except (SparkMissing, InvalidInput, ValueError) as error:
        raise BridgeError("States.TaskFailed", json.dumps(failure(str(error)))) from error
    job = Child("compactor_cli.machine.spark_process")
    try:
        callbacks.on_line(STARTING)
        job.send({"command": command, "environment": local_environment(os.environ, spark)})
        code = follow(job, callbacks.on_line)
    finally:
        job.end(END_SECONDS)
        _report_end(arguments)
    if code != 0:
        # The real services have no better reason either; the job's own error is on S3.
        raise BridgeError("States.TaskFailed", json.dumps(failure("Unknown Error.")))


def _report_end(arguments: Sequence[str]) -> None:
    """Pass on what the job wrote about its partitions, if it wrote anything."""
    # The last argument is the run's URI.
    bucket, _, prefix = arguments[-1].removeprefix("s3://").partition("/")
    client = boto3.client("s3")
    for name in _ENDINGS:
        with contextlib.suppress(ClientError, BotoCoreError, ValueError, KeyError):
            body = client.get_object(Bucket=bucket, Key=prefix + name)["Body"].read()
            return callbacks.on_end(json.loads(body)["partitions"])
    return None
