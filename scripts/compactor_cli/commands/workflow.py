"""One execution of the state machine with its progress, and the report it left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor import layout
from compactor.errors import InvalidInput, ObjectMissing, TransientStoreError
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor_cli.commands.endpoint import watched
from compactor_cli.commands.failures import EXIT_FAILED, EXIT_USAGE, Failure
from compactor_cli.console import counted, progress
from compactor_cli.local.engine import run_workflow
from compactor_cli.local.model import EngineOptions, Progress, WorkflowResult
from compactor_cli.runs import message_of, new_run_id
from compactor_cli.summary import Summary

_SUCCEEDED = "SUCCEEDED"


@dataclass(frozen=True, slots=True)
class Machine:
    """How executions run here.

    Attributes:
        workers: handler processes.
        endpoint_url: None for AWS.
        log: receives what the handlers log; None drops it.
    """

    workers: int
    endpoint_url: str | None = None
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """How one execution ended. ``summary`` is None when it left no report."""

    run_id: str
    result: WorkflowResult
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
        error = self.result.error or self.result.status
        code = EXIT_USAGE if error == InvalidInput.__name__ else EXIT_FAILED
        raise Failure(f"{error}: {message_of(self.result.cause)}", code)


def execute(
    given: Mapping[str, Any], settings: Settings, store: ObjectStore, machine: Machine
) -> Execution:
    """Run the state machine on an input that was checked already.

    Args:
        given: the input as the deployed state machine takes it.
        settings: the same, read.
        store: where the report will be.
        machine: how to run.

    Raises:
        EngineError: the local engine could not start, or died.
    """
    run_id = new_run_id()
    with progress("compacting") as bar:
        bar.show(0, text="starting the engine")

        def show(at: Progress) -> None:
            if at.clean_ups_total:
                bar.show(at.clean_ups_done + at.clean_ups_failed, at.clean_ups_total, _cleaning(at))
            else:
                done = at.partitions_done + at.partitions_failed
                bar.show(done, at.partitions_total, _compacting(at))

        with watched(machine.endpoint_url, settings.state.bucket):
            result = run_workflow(
                given,
                run_name=run_id,
                workers=machine.workers,
                endpoint_url=machine.endpoint_url,
                on_progress=show,
                options=EngineOptions(log=machine.log),
            )
    return Execution(run_id, result, _summary(run_id, result, settings, store))


def _compacting(at: Progress) -> str:
    done = at.partitions_done + at.partitions_failed
    failed = f", {at.partitions_failed:,} failed" if at.partitions_failed else ""
    text = f"{done:,}/{at.partitions_total:,} partitions, {at.objects_done:,} objects"
    spark = f", Spark: {at.spark}" if at.spark else ""
    return text + failed + spark


def _cleaning(at: Progress) -> str:
    done = at.clean_ups_done + at.clean_ups_failed
    failed = f", {at.clean_ups_failed:,} failed" if at.clean_ups_failed else ""
    text = f"cleaning up {done:,}/{at.clean_ups_total:,} partitions"
    return f"{text}, {counted(at.deleted, 'source')} deleted{failed}"


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
