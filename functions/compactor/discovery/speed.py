"""How long one worker takes, as the benchmark measured it.

The split between Lambda and Spark depends on it, and so does the price of a plan.

A worker with 2 processors takes so many seconds for a million objects, whatever their size, and so
many for a GB of stored source bytes, at 25 ms to the first byte of every answer. Both were solved
from two data sets of each kind, one of small objects and one of larger ones. `make bench
ARGS="worker --write"` rewrites the table; it rounds up. A Lambda function has fewer processors
where its memory is less than 3,538 MB: :meth:`WorkerSpeed.on` says what that costs.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compactor.encoding.output_encoding import packing_class
from compactor.formats import SPECS
from compactor.model import Compression

GB = 10**9
MEASURED_PROCESSORS = 2.0
# Of what a worker with 2 processors does with many small objects, one with 1 does so much: its
# GETs wait beside each other, and Python's part has one lock.
_WITH_ONE = 0.9


class WorkerSpeed(msgspec.Struct, frozen=True):
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

    def on(self, processors: float) -> WorkerSpeed:
        """The speed of a worker with so many processors; more than 2 are not faster.

        Bytes are decoded and encoded by all of them, so that their time grows as processors are
        fewer; that of small objects grows to 1/0.9 on one.
        """
        has = min(processors, MEASURED_PROCESSORS)
        fewer = (MEASURED_PROCESSORS - max(has, 1.0)) * (1 / _WITH_ONE - 1)
        return WorkerSpeed(
            per_million_objects=self.per_million_objects * (1 + fewer) / min(has, 1.0),
            per_gb=self.per_gb * MEASURED_PROCESSORS / has,
        )


LINES, LINES_GZIP, CLOUDTRAIL_GZIP = "lines", "lines, gzip", "CloudTrail, gzip"
SPEEDS: Mapping[str, WorkerSpeed] = {
    # measured: begin
    LINES: WorkerSpeed(per_million_objects=134, per_gb=9),
    LINES_GZIP: WorkerSpeed(per_million_objects=132, per_gb=60),
    CLOUDTRAIL_GZIP: WorkerSpeed(per_million_objects=190, per_gb=58),
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
