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

CREATE, ADD_STEP, TERMINATE, START_JOB_RUN = BRIDGES
CLUSTER = "j-MADE"
BUSY = "EMR.AmazonElasticMapReduceException"
_calls = itertools.count()


def create(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"ClusterId": CLUSTER}


def well(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def fails(parameters: Mapping[str, Any]) -> dict[str, Any]:
    raise BridgeError("States.TaskFailed", '{"Status": {"FailureDetails": {"Reason": "broken"}}}')


def fails_otherwise(parameters: Mapping[str, Any]) -> dict[str, Any]:
    raise BridgeError("States.TaskFailed", "could not be terminated")


def is_always_busy(parameters: Mapping[str, Any]) -> dict[str, Any]:
    raise BridgeError(BUSY, "Rate exceeded")


def is_busy_once(parameters: Mapping[str, Any]) -> dict[str, Any]:
    if next(_calls) == 0:
        raise BridgeError(BUSY, "Rate exceeded")
    return {"ClusterId": CLUSTER}


def never_ends(parameters: Mapping[str, Any]) -> dict[str, Any]:
    threading.Event().wait(60)
    return {}


def bridges(
    create: str = "create",
    add_step: str = "well",
    terminate: str = "well",
    start_job_run: str = "well",
) -> dict[str, str]:
    """What the engine is told: a stand-in of this module for each resource."""
    chosen = {
        CREATE: create,
        ADD_STEP: add_step,
        TERMINATE: terminate,
        START_JOB_RUN: start_job_run,
    }
    return {resource: f"{__name__}:{name}" for resource, name in chosen.items()}
