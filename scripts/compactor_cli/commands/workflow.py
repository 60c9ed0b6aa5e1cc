"""One run with its progress, and the report it left: by worker processes, or by the engine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from compactor import layout
from compactor.errors import (
    CompactorError,
    InvalidInput,
    ObjectMissing,
    PartitionsFailed,
    TimeRanOut,
    TransientStoreError,
)
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor_cli.commands.endpoint import watched
from compactor_cli.commands.failures import EXIT_FAILED, EXIT_TIME_RAN_OUT, EXIT_USAGE, Failure
from compactor_cli.console import progress
from compactor_cli.pages import leave_report
from compactor_cli.runs import message_of, new_run_id
from compactor_cli.summary import Summary
from compactor_cli.whole import Machine, cleaning_text, compacting_text, run_here
from compactor_local.engine import run_workflow
from compactor_local.model import EngineOptions, WorkflowProgress, WorkflowResult
from compactor_machine.spark_jars import packages_environment

_SUCCEEDED, _MORE = "SUCCEEDED", "MORE"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run without an engine ended, in the words that executions end with."""

    status: str
    error: str | None
    cause: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class EndedRun:
    """How one run ended, with the engine or without. ``summary`` is None when it left no report."""

    run_id: str
    result: WorkflowResult | RunEnd
    summary: Summary | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "run_id": self.run_id,
            "status": self.result.status,
            "error": self.result.error,
            "cause": self.result.cause,
            "summary": self.summary.to_dict() if self.summary else None,
        }

    def check(self) -> None:
        """Do nothing when the execution succeeded.

        Raises:
            Failure: says why it did not.
        """
        if self.result.status == _SUCCEEDED:
            return
        if self.result.status == _MORE:
            raise Failure(f"time ran out: {self.result.cause}", EXIT_TIME_RAN_OUT)
        error = self.result.error or self.result.status
        code = EXIT_USAGE if error == InvalidInput.__name__ else EXIT_FAILED
        raise Failure(f"{error}: {message_of(self.result.cause)}", code)


def execute_here(settings: Settings, machine: Machine) -> EndedRun:
    """Run on this machine's worker processes.

    Raises:
        RunInterrupted: in place of KeyboardInterrupt.
    """
    run_id, began = new_run_id(), time.monotonic()
    try:
        done = run_here(settings, machine, run_id)
    except CompactorError as error:
        seconds = time.monotonic() - began
        end = RunEnd("FAILED", type(error).__name__, str(error), seconds)
        return EndedRun(run_id, end, None)
    if done.report is None:
        end = RunEnd(_MORE, TimeRanOut.__name__, done.stands, done.seconds)
        return EndedRun(run_id, end, None)
    bucket, key = layout.run_key(settings, run_id, "report.json")
    summary = Summary.of(msgspec.to_builtins(done.report), done.seconds, f"s3://{bucket}/{key}")
    if done.report.status == "failed":
        end = RunEnd("FAILED", PartitionsFailed.__name__, done.report.cause, done.seconds)
    else:
        end = RunEnd(_SUCCEEDED, None, None, done.seconds)
    return EndedRun(run_id, end, summary)


def fetch_report(
    execution: EndedRun, settings: Settings, store: ObjectStore, directory: Path | None
) -> list[Path]:
    """Copy the report of a run to this machine; returns its files, none where there is no report.

    Args:
        execution: the run.
        settings: of it.
        store: where the report is.
        directory: where it is to be; None where it is not wanted.
    """
    if directory is None or execution.summary is None:
        return []
    document = json.loads(store.get(*layout.run_key(settings, execution.run_id, "report.json")))
    return leave_report(document, directory)


def execute(
    given: Mapping[str, Any], settings: Settings, store: ObjectStore, machine: Machine
) -> EndedRun:
    """Interpret the state machine on an input that was checked already.

    Args:
        given: the input as the deployed state machine takes it.
        settings: the same, read.
        store: where the report will be.
        machine: how to run.

    Raises:
        EngineError: the local engine could not start, or died.
    """
    run_id, began = new_run_id(), time.monotonic()
    with progress("compacting") as bar:
        bar.show(0, text="starting the engine")

        def show(at: WorkflowProgress) -> None:
            if at.clean_ups_total:
                bar.show(
                    at.clean_ups_done + at.clean_ups_failed, at.clean_ups_total, cleaning_text(at)
                )
            else:
                done = at.partitions_done + at.partitions_failed
                bar.show(done, at.partitions_total, compacting_text(at))

        with watched(machine.endpoint_url, settings.state.bucket):
            result = run_workflow(
                given,
                run_name=run_id,
                workers=machine.workers,
                endpoint_url=machine.endpoint_url,
                on_progress=show,
                options=EngineOptions(environment=packages_environment(settings), log=machine.log),
            )
    # As somebody waits for it: starting the engine takes longer than many a run.
    result = replace(result, seconds=time.monotonic() - began)
    return EndedRun(run_id, result, _summary(run_id, result, settings, store))


def _summary(
    run_id: str, result: WorkflowResult, settings: Settings, store: ObjectStore
) -> Summary | None:
    bucket, key = layout.run_key(settings, run_id, "report.json")
    try:
        report = json.loads(store.get(bucket, key))
    except (ObjectMissing, InvalidInput):
        # A run whose bucket does not exist has no report either; its own error says so.
        return None
    except TransientStoreError:
        if result.status == _SUCCEEDED:
            raise
        # It failed because nobody answers, and that is to be told, not what came of it.
        return None
    return Summary.of(report, result.seconds, f"s3://{bucket}/{key}")
