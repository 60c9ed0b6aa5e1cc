"""How long one worker takes, as the benchmark measured it.

The split between Lambda and Spark hangs on it, and the price of a plan will.

A worker with 2 processors (a Lambda function of 3,538 MB) takes so many seconds for a million
objects, whatever their size, and so many for a GB of stored source bytes, at 25 ms to the first
byte of every answer. Both were solved from two data sets of each kind, one of small objects and
one of larger ones. `make bench` measures anew and rewrites the table; it rounds up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compactor.formats import SPECS
from compactor.model import Compression
from compactor.planning.packing import packing_class

GB = 10**9


@dataclass(frozen=True, slots=True)
class WorkerSpeed:
    """Seconds of one worker with 2 processors.

    Attributes:
        per_million_objects: seconds for a million objects without any bytes.
        per_gb: seconds for 10**9 stored bytes of sources, on top.
    """

    per_million_objects: float
    per_gb: float

    def seconds(self, objects: int, size: int) -> float:
        """Seconds for so many objects of so many bytes in all."""
        return self.per_million_objects * objects / 1e6 + self.per_gb * size / GB


LINES, LINES_GZIP, CLOUDTRAIL_GZIP = "lines", "lines, gzip", "CloudTrail, gzip"
SPEEDS: Mapping[str, WorkerSpeed] = {
    # measured: begin
    LINES: WorkerSpeed(per_million_objects=134, per_gb=10),
    LINES_GZIP: WorkerSpeed(per_million_objects=112, per_gb=67),
    CLOUDTRAIL_GZIP: WorkerSpeed(per_million_objects=242, per_gb=85),
    # measured: end
}


_WHOLE = frozenset(spec.hint for spec in SPECS if spec.whole)


def speed_for(key: str) -> WorkerSpeed:
    """The speed for objects named like this one; CSV and text are read as lines are.

    zstd is taken for gzip, which takes longer; documents that are parsed whole, and CloudTrail
    without gzip, for CloudTrail with it.
    """
    found = packing_class(key)
    if found.kind in _WHOLE:
        return SPEEDS[CLOUDTRAIL_GZIP]
    return SPEEDS[LINES if found.compression is Compression.NONE else LINES_GZIP]
