"""The requests of a run to EMR or EMR Serverless, and their state.

The execution history of Step Functions has the submitted tasks with their ids; EMR has their state.
The history's events have the form that GetExecutionHistory documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from botocore.exceptions import ClientError

from compactor.failures import failure_text
from compactor_cli.commands.failures import Failure
from compactor_cli.deployed.aws import Aws, needing

_SERVICES = frozenset({"elasticmapreduce", "emr-serverless"})
_PHASES = {
    "TaskScheduled": "scheduled",
    "TaskStarted": "started",
    "TaskSubmitted": "running",
    "TaskSucceeded": "succeeded",
    "TaskFailed": "failed",
    "TaskTimedOut": "timed out",
    "TaskStartFailed": "failed",
    "TaskSubmitFailed": "failed",
}
_SHOWN_CHARACTERS = 300
_ENDED = frozenset({"succeeded", "failed", "timed out"})


@dataclass(frozen=True, slots=True)
class SparkTask:
    """One request to EMR or EMR Serverless.

    Attributes:
        action: ``createCluster``, ``addStep``, ``terminateCluster`` or ``startJobRun``.
        phase: as the state machine sees it.
        cluster_id, step_id: on a cluster, if known.
        application_id, job_run_id: on EMR Serverless, if known.
        emr_state: state in EMR, such as ``PENDING``; empty if it was not requested.
        why: why it failed.
    """

    action: str
    phase: str
    cluster_id: str = ""
    step_id: str = ""
    application_id: str = ""
    job_run_id: str = ""
    emr_state: str = ""
    why: str = ""

    @property
    def line(self) -> str:
        """The request as text."""
        ids = (self.cluster_id, self.step_id, self.application_id, self.job_run_id)
        where = " ".join(one for one in ids if one)
        parts = [f"{self.action} {self.phase}", where, self.emr_state]
        return ", ".join(part for part in parts if part) + (f": {self.why}" if self.why else "")

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class History:
    """The history of an execution.

    Attributes:
        states: names of its current states, without those of the Map Run's children.
        spark: requests to EMR, in order.
    """

    states: tuple[str, ...]
    spark: tuple[SparkTask, ...]

    @property
    def spark_line(self) -> str:
        """The last request to EMR as text; empty if there was none."""
        return f"Spark: {self.spark[-1].line}" if self.spark else ""


def read_history(aws: Aws, execution_arn: str) -> History:
    """Read the history of an execution: at most a hundred events without retries.

    Raises:
        Failure: a permission is missing.
    """
    pages = aws.client("stepfunctions").get_paginator("get_execution_history")
    with needing("states:GetExecutionHistory"):
        events = [e for page in pages.paginate(executionArn=execution_arn) for e in page["events"]]
    return History(_current(events), tuple(_tasks(events)))


def ask_emr(aws: Aws, tasks: Iterable[SparkTask]) -> Iterator[SparkTask]:
    """Yield the same requests, with the state in EMR of those that have not ended.

    If EMR does not return it (missing permission, old cluster), the state machine's own view is
    kept.
    """
    for task in tasks:
        try:
            yield task if task.phase in _ENDED else replace(task, emr_state=_emr_state(aws, task))
        except (ClientError, Failure):
            yield task


def _emr_state(aws: Aws, task: SparkTask) -> str:
    if task.job_run_id:
        with needing("emr-serverless:GetJobRun"):
            found = aws.client("emr-serverless").get_job_run(
                applicationId=task.application_id, jobRunId=task.job_run_id
            )
        return str(found["jobRun"]["state"])
    if task.step_id:
        with needing("elasticmapreduce:DescribeStep"):
            found = aws.client("emr").describe_step(ClusterId=task.cluster_id, StepId=task.step_id)
        return str(found["Step"]["Status"]["State"])
    if task.cluster_id:
        with needing("elasticmapreduce:DescribeCluster"):
            found = aws.client("emr").describe_cluster(ClusterId=task.cluster_id)
        return str(found["Cluster"]["Status"]["State"])
    return ""


def _current(events: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the states that were entered and not exited."""
    inside: dict[str, None] = {}
    for event in events:
        if "stateEnteredEventDetails" in event:
            inside[event["stateEnteredEventDetails"]["name"]] = None
        elif "stateExitedEventDetails" in event:
            inside.pop(event["stateExitedEventDetails"]["name"], None)
        elif event["type"].startswith("Execution") and event["type"] != "ExecutionStarted":
            inside.clear()
    return tuple(inside)


def _tasks(events: Iterable[Mapping[str, Any]]) -> list[SparkTask]:
    """Return one entry per scheduled task; a retried task has several."""
    tasks: list[SparkTask] = []
    for event in events:
        details = _details(event)
        if details.get("resourceType") not in _SERVICES or event["type"] not in _PHASES:
            continue
        if event["type"] == "TaskScheduled":
            tasks.append(SparkTask(details["resource"].partition(".")[0], "scheduled"))
        if tasks:
            # The oversized branch has one task at a time.
            tasks[-1] = _updated(tasks[-1], event["type"], details)
    return tasks


def _details(event: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = event["type"]
    return event.get(f"{kind[:1].lower()}{kind[1:]}EventDetails") or {}


def _updated(task: SparkTask, kind: str, details: Mapping[str, Any]) -> SparkTask:
    known = {**_object(details.get("parameters")), **_object(details.get("output"))}
    why = failure_text({"Error": details.get("error"), "Cause": details.get("cause")})
    return replace(
        task,
        phase=_PHASES[kind],
        cluster_id=str(known.get("ClusterId") or task.cluster_id),
        step_id=_step_id(known) or task.step_id,
        application_id=str(known.get("ApplicationId") or task.application_id),
        job_run_id=str(known.get("JobRunId") or task.job_run_id),
        why=_shortened(why),
    )


def _step_id(known: Mapping[str, Any]) -> str:
    """Return the step id; AddStep returns one id, AddJobFlowSteps a list."""
    several = known.get("StepIds")
    first = several[0] if isinstance(several, list) and several else ""
    return str(known.get("StepId") or first)


def _shortened(text: str) -> str:
    """Shorten a cause, which may be the whole description of a step or job run."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _object(text: object) -> Mapping[str, Any]:
    try:
        found = json.loads(str(text or "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
