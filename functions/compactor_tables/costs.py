"""What a rewrite costs by each engine, and what it saves those who read the table. Pure.

Prices are given. The rest is a model, with all its figures here: it compares engines,
and finds tables that are worth a rewrite; no bill is foretold by it.
"""

from __future__ import annotations

from dataclasses import dataclass

from compactor.prices import Prices, prices_for
from compactor.sizes import MIB, TIB
from compactor_tables.rewrite_packing import Rewrite

SPARK, ATHENA, GLUE = "spark", "athena", "glue"
#: In the order in which they are shown.
ENGINES = (SPARK, ATHENA, GLUE)
#: Names of prices.
GET, PUT = "s3.get", "s3.put"
SPARK_VCPU_HOUR, SPARK_GB_HOUR = "emr_serverless.vcpu_hour", "emr_serverless.gb_hour"
ATHENA_TIB, GLUE_DPU_HOUR = "athena.scanned_tib", "glue.optimizer_dpu_hour"
_USUAL = prices_for()

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
# A footer is a request of its own, and the data after it one at least.
_GETS_A_FILE = 2
# S3's time to the first byte, and a reader's concurrent requests: together 1.7 ms for each file of
# a scan. Measured were 1.8 ms (docs/performance.md, "Parquet": 2,000 files of 60 KB, and one).
_FIRST_BYTE_SECONDS = 0.027
_CONCURRENT_READS = 32
_READER_GB_A_VCPU = 4


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


def cost(engine: str, rewrite: Rewrite, queries: int = 1, prices: Prices = _USUAL) -> float:
    """What an engine takes for a rewrite, in dollars, verification left out.

    Args:
        engine: one of :data:`ENGINES`.
        rewrite: what it reads and writes.
        queries: in how many queries Athena is asked, a partition each.
        prices: of the region.
    """
    requests = rewrite.files * _GETS_A_FILE * prices.of(GET) + rewrite.into * prices.of(PUT)
    if engine == ATHENA:
        scanned = max(rewrite.bytes, queries * _ATHENA_LEAST_BYTES)
        return scanned / TIB * prices.of(ATHENA_TIB) + requests
    seconds = _vcpu_seconds(rewrite)
    if engine == GLUE:
        dpu_seconds = max(_GLUE_LEAST_SECONDS, seconds / _DPU_VCPUS)
        return dpu_seconds / 3_600 * prices.of(GLUE_DPU_HOUR) + requests
    vcpu_seconds = seconds + _SPARK_WORKERS * _WORKER_VCPUS * _SPARK_START_SECONDS
    return vcpu_seconds * _vcpu_second(_WORKER_GB / _WORKER_VCPUS, prices) + requests


def _vcpu_second(gigabytes: float, prices: Prices) -> float:
    """Dollars for a second of a vCPU of Spark, with so much memory."""
    return (prices.of(SPARK_VCPU_HOUR) + gigabytes * prices.of(SPARK_GB_HOUR)) / 3_600


def _vcpu_seconds(rewrite: Rewrite) -> float:
    opening = rewrite.files * _GETS_A_FILE * _FIRST_BYTE_SECONDS
    return rewrite.bytes / _VCPU_BYTES_A_SECOND + opening


def savings(rewrite: Rewrite, prices: Prices = _USUAL) -> Savings:
    """What one scan of all that is rewritten saves."""
    files = max(0, rewrite.files - rewrite.into)
    seconds = files * _GETS_A_FILE * _FIRST_BYTE_SECONDS / _CONCURRENT_READS
    # A reader with as many vCPUs as concurrent requests is paid for by the second like Spark.
    reader = _CONCURRENT_READS * _vcpu_second(_READER_GB_A_VCPU, prices)
    dollars = seconds * reader + files * _GETS_A_FILE * prices.of(GET)
    return Savings(files, seconds, dollars)


def payback(dollars: float, saved: Savings) -> float | None:
    """After how many scans a rewrite is paid for; None where a scan saves nothing."""
    return dollars / saved.dollars if saved.dollars else None
