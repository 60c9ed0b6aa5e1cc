"""How slow a table has become for its readers: whose run times say so, and an estimate (pure).

The run times are those of a job, or of queries, that the rule of a table names; where it names
none, they are estimated. The estimate knows nothing of a query: it is the time in which an engine
opens every file of the table and reads it, and only compares one state of the table with another.
"""

from __future__ import annotations

from dataclasses import dataclass

from compactor_tables.measures import TableMeasure

ESTIMATE = "estimate"
# Of the estimate: what S3 takes to the first byte of a request, concurrent requests of an engine
# (the usual peak of Trino), and the bytes that it reads in a second.
_FIRST_BYTE_SECONDS = 0.027
_CONCURRENT = 32
_BYTES_A_SECOND = 1024**3
# A footer is a request of its own, and the data after it one at least.
_REQUESTS_A_FILE = 2


@dataclass(frozen=True, slots=True)
class LatencySource:
    """The job or query whose run times decide.

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
        """What a rule's ``latency`` says, which is checked."""
        kind, _, rest = text.partition(":")
        if kind in {"emr_serverless", "emr_step"}:
            place, _, name = rest.partition("/")
            return cls(kind, place, name)
        if kind == "athena":
            return cls(kind, rest)
        return cls(kind, "", rest)


def estimated_seconds(measure: TableMeasure) -> float:
    """How long one scan of the whole table would take; see above."""
    return _seconds(measure.files, measure.bytes, measure.delete_files + measure.metadata_files)


def growth(measure: TableMeasure, size: int | None) -> float:
    """How much longer a well packed table of today takes than one of so many bytes; at least 1.

    What no rewrite changes is not counted: twice the data may take twice the time. But a table
    of one small file is not to take longer because another one came beside it.
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
