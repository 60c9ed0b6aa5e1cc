"""Estimates what a rewrite costs by engine. Pure.

Prices are given; the rest is a model, whose constants are all in this module. It compares engines.
It does not predict a bill.
"""

from __future__ import annotations

from dataclasses import dataclass

from compactor.prices import Prices, prices_for
from compactor.sizes import MIB, TIB

WORKER, SPARK, ATHENA = "worker", "spark", "athena"
#: In display order.
ENGINES = (WORKER, SPARK, ATHENA)
#: Names of prices.
GET = "s3.get"
SPARK_VCPU_HOUR, SPARK_GB_HOUR = "emr_serverless.vcpu_hour.arm64", "emr_serverless.gb_hour.arm64"
ATHENA_TIB = "athena.scanned_tib"
LAMBDA_GB_SECOND = "lambda.gb_second.arm64"
_USUAL = prices_for()

# "10 MB minimum per query" (Athena pricing).
_ATHENA_LEAST_BYTES = 10_000_000
# A driver and an executor of 4 vCPUs and 16 GB, which take a minute and a half to start.
_SPARK_WORKERS = 2
_WORKER_VCPUS, _WORKER_GB = 4, 16
_SPARK_START_SECONDS = 90.0
# One vCPU of a Lambda function.
_WORKER_GB_OF_MEMORY = 1.769
# Stored bytes of Parquet that a vCPU reads, decodes, encodes and writes in a second.
_VCPU_BYTES_A_SECOND = 25 * MIB
# One request for the footer, and at least one for the data.
_GETS_A_FILE = 2
# S3's time to the first byte.
_FIRST_BYTE_SECONDS = 0.027


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The files that a rewrite replaces: their number, and their total size."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Rewrite) -> Rewrite:
        return Rewrite(self.files + other.files, self.bytes + other.bytes)


def cost(engine: str, rewrite: Rewrite, queries: int = 1, prices: Prices = _USUAL) -> float:
    """Return what a rewrite costs with an engine, in dollars, without verification.

    Args:
        engine: one of :data:`ENGINES`.
        rewrite: the files that it reads.
        queries: number of Athena queries, one per partition.
        prices: of the region.
    """
    requests = rewrite.files * _GETS_A_FILE * prices.of(GET)
    if engine == ATHENA:
        scanned = max(rewrite.bytes, queries * _ATHENA_LEAST_BYTES)
        return scanned / TIB * prices.of(ATHENA_TIB) + requests
    if engine == WORKER:
        gigabyte_seconds = _vcpu_seconds(rewrite) * _WORKER_GB_OF_MEMORY
        return gigabyte_seconds * prices.of(LAMBDA_GB_SECOND) + requests
    vcpu_seconds = _vcpu_seconds(rewrite) + _SPARK_WORKERS * _WORKER_VCPUS * _SPARK_START_SECONDS
    return vcpu_seconds * _vcpu_second(_WORKER_GB / _WORKER_VCPUS, prices) + requests


def _vcpu_second(gigabytes: float, prices: Prices) -> float:
    """Return the dollars for one second of a Spark vCPU with the given memory."""
    return (prices.of(SPARK_VCPU_HOUR) + gigabytes * prices.of(SPARK_GB_HOUR)) / 3_600


def _vcpu_seconds(rewrite: Rewrite) -> float:
    opening = rewrite.files * _GETS_A_FILE * _FIRST_BYTE_SECONDS
    return rewrite.bytes / _VCPU_BYTES_A_SECOND + opening
