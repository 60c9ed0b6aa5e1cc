"""The run of the demonstration: interprets the state machine's definition."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from compactor.clock import new_run_id
from compactor.errors import ObjectMissing
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor_cli.console import progress
from compactor_cli.machine.spark_jars import packages_environment
from compactor_cli.one_run import EndedRun, RunEnd
from compactor_cli.whole import Machine, cleaning_text, compacting_text
from compactor_local.engine import EngineOptions, WorkflowProgress, run_workflow


def execute(
    given: Mapping[str, Any], settings: Settings, store: ObjectStore, machine: Machine
) -> EndedRun:
    """Interpret the state machine on a validated input.

    Args:
        given: the input in the form that the deployed state machine takes.
        settings: the same input, parsed.
        store: where the report will be.
        machine: how to run.

    Raises:
        EngineError: the interpreter did not start, or exited.
    """
    run_id, began = new_run_id(), time.monotonic()
    with progress("compacting") as bar:
        bar.show(0, text="starting the engine")

        def show(at: WorkflowProgress) -> None:
            if at.clean_ups_total:
                done = at.clean_ups_done + at.clean_ups_failed
                bar.show(done, at.clean_ups_total, cleaning_text(at))
            else:
                done = at.partitions_done + at.partitions_failed
                bar.show(done, at.partitions_total, compacting_text(at))

        result = run_workflow(
            given,
            run_name=run_id,
            workers=machine.workers,
            endpoint_url=machine.endpoint_url,
            on_progress=show,
            options=EngineOptions(environment=packages_environment(settings), log=machine.log),
        )
    # Wall time as the user sees it: starting the interpreter takes longer than many a run.
    end = RunEnd(result.status, result.error, result.cause, time.monotonic() - began)
    bucket, key = settings.layout.run(run_id, "report.json")
    with suppress(ObjectMissing):
        report = json.loads(store.get(bucket, key))
        return EndedRun(run_id, end, report, f"s3://{bucket}/{key}")
    return EndedRun(run_id, end)
