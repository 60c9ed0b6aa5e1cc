"""One run on this machine: its end and its report."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from compactor.clock import new_run_id
from compactor.errors import (
    CompactorError,
    InvalidInput,
    PartitionsFailed,
    TimeRanOut,
)
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor_cli.failures import EXIT_FAILED, EXIT_TIME_RAN_OUT, EXIT_USAGE, Failure, message_of
from compactor_cli.pages import leave_report
from compactor_cli.summary import totals_of
from compactor_cli.whole import Machine, run_here

_SUCCEEDED, _MORE = "SUCCEEDED", "MORE"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run, in the terms of Step Functions."""

    status: str
    error: str | None
    cause: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class EndedRun:
    """The end of one run.

    Attributes:
        report: content of its report.json; None if it left none.
        report_uri: URI of that.
    """

    run_id: str
    result: RunEnd
    report: Mapping[str, Any] | None = None
    report_uri: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        report, seconds = self.report, self.result.seconds
        return {
            "run_id": self.run_id,
            "status": self.result.status,
            "error": self.result.error,
            "cause": self.result.cause,
            "summary": totals_of(report, seconds, self.report_uri) if report else None,
        }

    @property
    def has_failed(self) -> bool:
        """False if it succeeded, or reached its time limit."""
        return self.result.status not in (_SUCCEEDED, _MORE)

    def check(self) -> None:
        """Raise an error unless the run succeeded.

        Raises:
            Failure: says why it did not succeed.
        """
        if self.result.status == _SUCCEEDED:
            return
        if self.result.status == _MORE:
            raise Failure(f"time limit reached: {self.result.cause}", EXIT_TIME_RAN_OUT)
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
        return EndedRun(run_id, end)
    if done.report is None:
        end = RunEnd(_MORE, TimeRanOut.__name__, done.stands, done.seconds)
        return EndedRun(run_id, end)
    bucket, key = settings.layout.run(run_id, "report.json")
    document = msgspec.to_builtins(done.report)
    if done.report.status == "failed":
        end = RunEnd("FAILED", PartitionsFailed.__name__, done.report.cause, done.seconds)
    else:
        end = RunEnd(_SUCCEEDED, None, None, done.seconds)
    return EndedRun(run_id, end, document, f"s3://{bucket}/{key}")


def fetch_report(
    execution: EndedRun, settings: Settings, store: ObjectStore, directory: Path | None
) -> list[Path]:
    """Copy the report of a run to this machine; returns its files, none without a report.

    Args:
        execution: the run.
        settings: of the run.
        store: where the report is.
        directory: where to; None for no copy.
    """
    if directory is None or execution.report is None:
        return []
    document = json.loads(store.get(*settings.layout.run(execution.run_id, "report.json")))
    return leave_report(document, directory)
