"""Stops a stack's application of EMR Serverless, which can be changed and deleted only then.

``python -m compactor_dev.applications deploy ...`` runs before ``cdk deploy ...``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cdk.config import load
from compactor.errors import InvalidInput

_SERVICE = "emr-serverless"
# "Application states" in the same guide: an application changes and is deleted in these only.
_AT_REST = frozenset({"CREATED", "STOPPED", "TERMINATED"})
_ENDED_JOBS = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
_WAIT_SECONDS, _POLL_SECONDS = 300.0, 3.0
_JOB = "a Spark job"
# With these the CDK asks no account, or another program answers.
_NO_ACCOUNT = ("--template", "--help", "-h")


def stop_application(
    stack: str, clients: Any, *, wait_seconds: float = _WAIT_SECONDS, cancel: bool = False
) -> str:
    """Stop the idle application of a stack; it starts again with the next job.

    Args:
        stack: name of the stack.
        clients: returns the client of a service.
        wait_seconds: how long to wait for it.
        cancel: cancel jobs that still run, instead of leaving the application to them.

    Returns:
        Why it is not stopped, in one line; empty if it is, or if there is none.

    Raises:
        ClientError: AWS refused a request.
    """
    application = _application_of(stack, clients("cloudformation"))
    if application is None:
        return ""
    client = clients(_SERVICE)
    until = time.monotonic() + wait_seconds
    while jobs := _running_jobs(application, client):
        if not cancel or time.monotonic() >= until:
            return f"{_JOB} of {stack} is running (job run {jobs[0]['id']})"
        _cancel(jobs, application, client)
        time.sleep(min(_POLL_SECONDS, wait_seconds))
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


def _running_jobs(application: str, client: Any) -> list[dict[str, Any]]:
    every = client.meta.service_model.shape_for("JobRunState").enum
    states = sorted({*every} - _ENDED_JOBS)
    jobs: list[dict[str, Any]] = client.list_job_runs(applicationId=application, states=states)[
        "jobRuns"
    ]
    return jobs


def _cancel(jobs: Sequence[dict[str, Any]], application: str, client: Any) -> None:
    for job in jobs:
        if job["state"] != "CANCELLING":
            client.cancel_job_run(applicationId=application, jobRunId=job["id"])


def _state(application: str, client: Any) -> str:
    state: str = client.get_application(applicationId=application)["application"]["state"]
    return state


def stacks_of(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the names of the stacks, and the profile, that a command of the CDK gets.

    Args:
        words: the arguments of the command.

    Raises:
        InvalidInput: the deployment's file cannot be read, or a key is at fault.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-c", "--context", action="append", default=[])
    parser.add_argument("--profile")
    given = parser.parse_known_args(words)[0]
    context = dict(one.partition("=")[::2] for one in given.context)
    deployment = load(Path(context["config"]) if "config" in context else None)
    tables = [f"{deployment.name}-tables"] if deployment.maintenance is not None else []
    return [*([deployment.name] if deployment.compacts else []), *tables], given.profile


def main(words: Sequence[str]) -> int:
    """Stop the application before ``deploy`` or ``destroy``; return the exit code.

    Only ``destroy`` fails with a running job: most deployments change nothing of the application.
    """
    command, *rest = words
    if any(word.partition("=")[0] in _NO_ACCOUNT for word in rest):
        return 0
    try:
        stacks, profile = stacks_of(rest)
    except InvalidInput as error:
        sys.stderr.write(f"s3-compactor: {error}\n")
        return 2
    return max(_stop(command, stack, profile) for stack in stacks)


def _stop(command: str, stack: str, profile: str | None) -> int:
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
