"""Stand-ins for EMR that end as a test wants; the execution's history has their calls.

A run's engine process is new, so what a stand-in counts restarts with each run.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import Any

from compactor_local.engine import BRIDGES
from compactor_local.interpreter import BridgeError

ADD_STEP, START_JOB_RUN = BRIDGES
CLUSTER = "j-THEIRS"
BUSY = "EMR.AmazonElasticMapReduceException"
_calls = itertools.count()


def well(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def fails(parameters: Mapping[str, Any]) -> dict[str, Any]:
    raise BridgeError("States.TaskFailed", '{"Status": {"FailureDetails": {"Reason": "broken"}}}')


def is_always_busy(parameters: Mapping[str, Any]) -> dict[str, Any]:
    raise BridgeError(BUSY, "Rate exceeded")


def is_busy_once(parameters: Mapping[str, Any]) -> dict[str, Any]:
    if next(_calls) == 0:
        raise BridgeError(BUSY, "Rate exceeded")
    return {}


def never_ends(parameters: Mapping[str, Any]) -> dict[str, Any]:
    threading.Event().wait(60)
    return {}


def bridges(
    add_step: str = "well",
    start_job_run: str = "well",
) -> dict[str, str]:
    """What the engine is told: a stand-in of this module for each resource."""
    chosen = {
        ADD_STEP: add_step,
        START_JOB_RUN: start_job_run,
    }
    return {resource: f"{__name__}:{name}" for resource, name in chosen.items()}
