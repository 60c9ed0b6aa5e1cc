"""Estimates what a rewrite costs by engine, and what it saves readers of the table. Pure.

Prices are given; the rest is a model, whose constants are all in this module. It compares engines
and finds the tables that are worth a rewrite. It does not predict a bill.
"""

from __future__ import annotations

from dataclasses import dataclass

from compactor.prices import Prices, prices_for
from compactor.sizes import MIB, TIB
from compactor_tables.rewrite_packing import Rewrite

SPARK, ATHENA, GLUE = "spark", "athena", "glue"
#: In display order.
ENGINES = (SPARK, ATHENA, GLUE)
#: Names of prices.
GET, PUT = "s3.get", "s3.put"
SPARK_VCPU_HOUR, SPARK_GB_HOUR = "emr_serverless.vcpu_hour.arm64", "emr_serverless.gb_hour.arm64"
ATHENA_TIB, GLUE_DPU_HOUR = "athena.scanned_tib", "glue.optimizer_dpu_hour"
_USUAL = prices_for()

# "10 MB minimum per query" (Athena pricing).
_ATHENA_LEAST_BYTES = 10_000_000
# Billed by the second, with a minimum of a minute (Glue pricing); a DPU is 4 vCPUs and 16 GB.
_GLUE_LEAST_SECONDS = 60
_DPU_VCPUS = 4
# A driver and an executor of 4 vCPUs and 16 GB, which take a minute and a half to start.
_SPARK_WORKERS = 2
_WORKER_VCPUS, _WORKER_GB = 4, 16
_SPARK_START_SECONDS = 90.0
# Stored bytes of Parquet that a vCPU reads, decodes, encodes and writes in a second.
_VCPU_BYTES_A_SECOND = 25 * MIB
# One request for the footer, and at least one for the data.
_GETS_A_FILE = 2
# S3's time to the first byte, and a reader's concurrent requests: together 1.7 ms per file of a
# scan. Measured: 1.8 ms (docs/performance.md, "Parquet": 2,000 files of 60 KB against one).
_FIRST_BYTE_SECONDS = 0.027
_CONCURRENT_READS = 32
_READER_GB_A_VCPU = 4


@dataclass(frozen=True, slots=True)
class Savings:
    """What one scan of a table saves after a rewrite.

    Attributes:
        files: fewer files to open.
        seconds: shorter duration of the scan.
        dollars: for the reader's time and requests.
    """

    files: int = 0
    seconds: float = 0.0
    dollars: float = 0.0


def cost(engine: str, rewrite: Rewrite, queries: int = 1, prices: Prices = _USUAL) -> float:
    """Return what a rewrite costs with an engine, in dollars, without verification.

    Args:
        engine: one of :data:`ENGINES`.
        rewrite: what it reads and writes.
        queries: number of Athena queries, one per partition.
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
    """Return the dollars for one second of a Spark vCPU with the given memory."""
    return (prices.of(SPARK_VCPU_HOUR) + gigabytes * prices.of(SPARK_GB_HOUR)) / 3_600


def _vcpu_seconds(rewrite: Rewrite) -> float:
    opening = rewrite.files * _GETS_A_FILE * _FIRST_BYTE_SECONDS
    return rewrite.bytes / _VCPU_BYTES_A_SECOND + opening


def savings(rewrite: Rewrite, prices: Prices = _USUAL) -> Savings:
    """Return what a rewrite saves one scan of all rewritten files."""
    files = max(0, rewrite.files - rewrite.into)
    seconds = files * _GETS_A_FILE * _FIRST_BYTE_SECONDS / _CONCURRENT_READS
    # The reader has one vCPU per concurrent request, at Spark's price.
    reader = _CONCURRENT_READS * _vcpu_second(_READER_GB_A_VCPU, prices)
    dollars = seconds * reader + files * _GETS_A_FILE * prices.of(GET)
    return Savings(files, seconds, dollars)


def payback(dollars: float, saved: Savings) -> float | None:
    """Return how many scans pay for a rewrite; None if a scan saves nothing."""
    return dollars / saved.dollars if saved.dollars else None
