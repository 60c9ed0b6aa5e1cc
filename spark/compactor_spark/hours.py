"""vCPU hours and GB hours that the job used, as far as its session shows.

Approximates what is billed: executors released before the end are not counted, and services round
up.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

_BYTES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_GB = 1 << 30
# Defaults of EMR Serverless.
_USUAL_CORES, _USUAL_MEMORY = 4, "14g"
_LOCAL = re.compile(r"local(?:\[(\d+|\*))?")


@dataclass(frozen=True, slots=True)
class Hours:
    """vCPU hours, and GB hours of memory."""

    vcpu: float = 0.0
    gb: float = 0.0


NO_HOURS = Hours()


def hours_of(session: SparkSession) -> Hours:
    """Return the hours used from the start of the session's application until now.

    Args:
        session: must not be stopped yet.
    """
    context = session.sparkContext
    hours = max(0.0, time.time() - (context.startTime or 0) / 1000) / 3_600
    # Includes the driver.
    workers = context._jsc.sc().getExecutorMemoryStatus().size()
    given = dict(context.getConf().getAll())
    local = _LOCAL.match(context.master or "")
    if local:
        return Hours(hours * context.defaultParallelism, hours * _gigabytes(given, "driver"))
    executors = max(0, workers - 1)
    vcpus = _cores(given, "driver") + executors * _cores(given, "executor")
    gigabytes = _gigabytes(given, "driver") + executors * _gigabytes(given, "executor")
    return Hours(hours * vcpus, hours * gigabytes)


def _cores(given: Mapping[str, str], role: str) -> int:
    return int(given.get(f"spark.{role}.cores", _USUAL_CORES))


def _gigabytes(given: Mapping[str, str], role: str) -> float:
    memory = _bytes(given.get(f"spark.{role}.memory", _USUAL_MEMORY), "k")
    overhead = given.get(f"spark.{role}.memoryOverhead")
    # By default Spark adds a tenth.
    beside = memory / 10 if overhead is None else _bytes(overhead, "m")
    return (memory + beside) / _GB


def _bytes(text: str, unit: str) -> float:
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.strip().lower())
    if found is None:
        return 0.0
    return float(found[1]) * _BYTES[found[2] or unit]
