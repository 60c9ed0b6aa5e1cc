"""What EMR Serverless needs around a deployment: a region that has it, and a stopped application.

``python -m cdk.emr_serverless deploy ...`` runs before ``cdk deploy ...``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import boto3
import botocore.session
from botocore.exceptions import BotoCoreError, ClientError, UnknownRegionError

from cdk import REPOSITORY

_SERVICE = "emr-serverless"
# Regional availability in the page of the release ("AWS runtime for Apache Spark
# (emr-spark-8.0.0)", emr/latest/EMR-Serverless-UserGuide/release-version-emr-spark-8.0.0.html).
_SPARK_8, _WITHOUT_SPARK_8 = "emr-spark-8.", ("me-south-1", "me-central-1")
# "Application states" in the same guide: an application changes and is deleted in these only.
_AT_REST = frozenset({"CREATED", "STOPPED", "TERMINATED"})
_ENDED_JOBS = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
_WAIT_SECONDS, _POLL_SECONDS = 300.0, 3.0
_JOB = "a Spark job"
# With these the CDK asks no account, or another program answers.
_NO_ACCOUNT = ("--template", "--help", "-h")


def missing_in(region: str, release: str) -> str:
    """Return what of EMR Serverless a region lacks; empty if nothing is known to be missing.

    Args:
        region: a region, such as ``me-south-1``.
        release: an EMR release, such as ``emr-spark-8.1.0``.
    """
    session = botocore.session.get_session()
    try:
        partition = session.get_partition_for_region(region)
    except UnknownRegionError:
        return ""
    # A region that botocore does not know at all may be newer than the lock.
    known = region in session.get_available_regions("lambda", partition)
    if known and region not in session.get_available_regions(_SERVICE, partition):
        return "EMR Serverless"
    return release if release.startswith(_SPARK_8) and region in _WITHOUT_SPARK_8 else ""


def stop_application(stack: str, clients: Any, *, wait_seconds: float = _WAIT_SECONDS) -> str:
    """Stop the idle application of a stack; it starts again with the next job.

    Args:
        stack: name of the stack.
        clients: returns the client of a service.
        wait_seconds: how long to wait for it.

    Returns:
        Why it is not stopped, in one line; empty if it is, or if there is none.

    Raises:
        ClientError: AWS refused a request.
    """
    application = _application_of(stack, clients("cloudformation"))
    if application is None:
        return ""
    client = clients(_SERVICE)
    jobs = client.list_job_runs(applicationId=application, states=_states_of_jobs(client))
    if jobs["jobRuns"]:
        return f"{_JOB} of {stack} is running (job run {jobs['jobRuns'][0]['id']})"
    until = time.monotonic() + wait_seconds
    while (state := _state(application, client)) not in _AT_REST:
        if state == "STARTED":
            client.stop_application(applicationId=application)
        if time.monotonic() >= until:
            return f"the EMR Serverless application {application} is still {state}"
        time.sleep(min(_POLL_SECONDS, wait_seconds))
    return ""


def _application_of(stack: str, client: Any) -> str | None:
    try:
        found = client.describe_stack_resources(StackName=stack)["StackResources"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":
            # There is no such stack yet.
            return None
        raise
    kind = "AWS::EMRServerless::Application"
    # Without an id it was never made.
    ids = (one.get("PhysicalResourceId") for one in found if one["ResourceType"] == kind)
    return next(ids, None)


def _states_of_jobs(client: Any) -> list[str]:
    every = client.meta.service_model.shape_for("JobRunState").enum
    return sorted({*every} - _ENDED_JOBS)


def _state(application: str, client: Any) -> str:
    state: str = client.get_application(applicationId=application)["application"]["state"]
    return state


def stack_of(words: Sequence[str]) -> tuple[str, str | None]:
    """Return the name of the stack, and the profile, that a command of the CDK gets.

    Args:
        words: the arguments of the command; keys that they lack are in cdk.json.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-c", "--context", action="append", default=[])
    parser.add_argument("--profile")
    given = parser.parse_known_args(words)[0]
    document = json.loads((REPOSITORY / "cdk.json").read_text(encoding="utf-8"))
    context = document["context"] | dict(one.partition("=")[::2] for one in given.context)
    return context.get("name", "s3-compactor"), given.profile


def main(words: Sequence[str]) -> int:
    """Stop the application before ``deploy`` or ``destroy``; return the exit code.

    Only ``destroy`` fails with a running job: most deployments change nothing of the application.
    """
    command, *rest = words
    if any(word.partition("=")[0] in _NO_ACCOUNT for word in rest):
        return 0
    stack, profile = stack_of(rest)
    try:
        session = boto3.Session(
            profile_name=profile, region_name=os.environ.get("AWS_REGION") or None
        )
        why = stop_application(stack, session.client)
    except (BotoCoreError, ClientError) as error:
        # Rights of the CDK's own roles are enough for the rest.
        why = f"the EMR Serverless application of {stack} could not be stopped: {error}"
    if not why:
        return 0
    ends = command == "destroy" and why.startswith(_JOB)
    way = "should CloudFormation refuse to change the application, stop it and repeat the command"
    if ends:
        way = "wait for it, or cancel it, and repeat the command: EMR deletes stopped applications"
    sys.stderr.write(f"s3-compactor: {why}\n  {way}\n")
    return int(ends)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
