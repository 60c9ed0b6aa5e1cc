"""The latency of a table's readers: its source, and an estimate. Pure.

Latencies are run times of the job or queries that the table's rule names, or an estimate if it
names no source. The estimate is the time in which an engine opens and reads every file of the
table. It models no query, and is only good for comparing two states of one table.
"""

from __future__ import annotations

from dataclasses import dataclass

from compactor_tables.measures import TableMeasure

ESTIMATE = "estimate"
# Constants of the estimate: S3's time to the first byte, an engine's concurrent requests (Trino's
# usual peak), and the bytes that it reads in a second.
_FIRST_BYTE_SECONDS = 0.027
_CONCURRENT = 32
_BYTES_A_SECOND = 1024**3
# One request for the footer, and at least one for the data.
_REQUESTS_A_FILE = 2


@dataclass(frozen=True, slots=True)
class LatencySource:
    """The job or queries whose run times are a table's latency.

    Attributes:
        kind: ``estimate``, ``glue_job``, ``emr_serverless``, ``emr_step`` or ``athena``.
        place: application, cluster or workgroup; empty for the others.
        name: of the job or step; empty for the others.
    """

    kind: str
    place: str = ""
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> LatencySource:
        """Parse a rule's ``latency``, which has been checked already."""
        kind, _, rest = text.partition(":")
        if kind in {"emr_serverless", "emr_step"}:
            place, _, name = rest.partition("/")
            return cls(kind, place, name)
        if kind == "athena":
            return cls(kind, rest)
        return cls(kind, "", rest)


def estimated_seconds(measure: TableMeasure) -> float:
    """Return the estimated duration of one scan of the whole table, in seconds."""
    return _seconds(measure.files, measure.bytes, measure.delete_files + measure.metadata_files)


def growth(measure: TableMeasure, size: int | None) -> float:
    """Return how much longer a scan takes today than at an earlier size, both well packed.

    At least 1. The factor excludes what no rewrite can change: twice the data may take twice the
    time. But a table of one small file may not take longer because of a second one.

    Args:
        measure: of the table today.
        size: earlier size of the table, in bytes; if None, the factor is 1.
    """
    if size is None:
        return 1.0
    now, then = (_packed_seconds(one, measure.target_bytes) for one in (measure.bytes, size))
    return max(1.0, now / then)


def _packed_seconds(size: int, target: int) -> float:
    return _seconds(max(1, -(-size // max(target, 1))), size)


def _seconds(files: int, size: int, others: int = 0) -> float:
    requests = _REQUESTS_A_FILE * files + others
    return requests * _FIRST_BYTE_SECONDS / _CONCURRENT + size / _BYTES_A_SECOND
