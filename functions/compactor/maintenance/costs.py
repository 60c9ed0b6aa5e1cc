"""What a rewrite costs by each engine, and what it saves those who read the table. Pure.

Prices are those of us-east-1. The rest is a model, with all its figures here: it tells one engine
from another, and a table worth a rewrite from one that is not; no bill is foretold by it.
"""

from __future__ import annotations

from dataclasses import dataclass

from compactor.maintenance.packing import Rewrite
from compactor.sizes import MIB, TIB

SPARK, ATHENA, GLUE = "spark", "athena", "glue"
#: In the order in which they are shown.
ENGINES = (SPARK, ATHENA, GLUE)

# Dollars. aws.amazon.com/emr/pricing (EMR Serverless, x86), aws.amazon.com/athena/pricing (SQL
# queries, by bytes scanned), aws.amazon.com/glue/pricing (table optimizers), and
# aws.amazon.com/s3/pricing (Standard).
SPARK_VCPU_HOUR = 0.052624
SPARK_GB_HOUR = 0.0057785
ATHENA_TIB = 5.0
GLUE_DPU_HOUR = 0.44
S3_GET = 0.4 / 1_000_000
S3_PUT = 5.0 / 1_000_000

# "10 MB minimum per query" (Athena pricing).
_ATHENA_LEAST_BYTES = 10_000_000
# Billed by the second, a minute at least (Glue pricing); of a DPU are 4 vCPUs and 16 GB.
_GLUE_LEAST_SECONDS = 60
_DPU_VCPUS = 4
# A driver and an executor of 4 vCPUs and 16 GB, which take a minute and a half to start.
_SPARK_WORKERS = 2
_WORKER_VCPUS, _WORKER_GB = 4, 16
_SPARK_START_SECONDS = 90.0
# What a vCPU decodes, encodes and moves of stored Parquet in a second.
_VCPU_BYTES_A_SECOND = 25 * MIB
# A footer is a request of its own, and the data behind it one at least.
_GETS_A_FILE = 2
# S3's time to the first byte, and a reader's requests at once: together 1.7 ms for each file of
# a scan. Measured were 1.8 ms (docs/performance.md, "Parquet": 2,000 files of 60 KB, and one).
_FIRST_BYTE_SECONDS = 0.027
_READS_AT_ONCE = 32
# A reader with as many vCPUs as requests at once is paid for by the second like Spark.
_READER_SECOND = _READS_AT_ONCE * (SPARK_VCPU_HOUR + 4 * SPARK_GB_HOUR) / 3_600


@dataclass(frozen=True, slots=True)
class Savings:
    """What one scan of a table saves when a rewrite was done.

    Attributes:
        files: that it need not open.
        seconds: that it ends earlier.
        dollars: of a reader's time and requests.
    """

    files: int = 0
    seconds: float = 0.0
    dollars: float = 0.0


def cost(engine: str, rewrite: Rewrite, queries: int = 1) -> float:
    """What an engine takes for a rewrite, in dollars, verification left out.

    Args:
        engine: one of :data:`ENGINES`.
        rewrite: what it reads and writes.
        queries: in how many queries Athena is asked, a partition each.
    """
    requests = rewrite.files * _GETS_A_FILE * S3_GET + rewrite.into * S3_PUT
    if engine == ATHENA:
        scanned = max(rewrite.bytes, queries * _ATHENA_LEAST_BYTES)
        return scanned / TIB * ATHENA_TIB + requests
    seconds = _vcpu_seconds(rewrite)
    if engine == GLUE:
        dpu_seconds = max(_GLUE_LEAST_SECONDS, seconds / _DPU_VCPUS)
        return dpu_seconds / 3_600 * GLUE_DPU_HOUR + requests
    vcpu_seconds = seconds + _SPARK_WORKERS * _WORKER_VCPUS * _SPARK_START_SECONDS
    hourly = SPARK_VCPU_HOUR + _WORKER_GB / _WORKER_VCPUS * SPARK_GB_HOUR
    return vcpu_seconds / 3_600 * hourly + requests


def _vcpu_seconds(rewrite: Rewrite) -> float:
    opening = rewrite.files * _GETS_A_FILE * _FIRST_BYTE_SECONDS
    return rewrite.bytes / _VCPU_BYTES_A_SECOND + opening


def savings(rewrite: Rewrite) -> Savings:
    """What one scan of all that is rewritten saves."""
    files = max(0, rewrite.files - rewrite.into)
    seconds = files * _GETS_A_FILE * _FIRST_BYTE_SECONDS / _READS_AT_ONCE
    dollars = seconds * _READER_SECOND + files * _GETS_A_FILE * S3_GET
    return Savings(files, seconds, dollars)


def payback(dollars: float, saved: Savings) -> float | None:
    """After how many scans a rewrite is paid for; None where a scan saves nothing."""
    return dollars / saved.dollars if saved.dollars else None
