"""The speed of one worker, as measured by the benchmark.

It determines the split between Lambda and Spark, and the price of a plan.

The table has the seconds that a worker with 2 processors takes for a million objects, whatever
their size, and for a GB of stored source bytes, at 25 ms to the first byte of every answer. Both
were solved from two data sets per format, one of small objects and one of larger ones. `make bench
ARGS=worker` prints these figures, rounded up. A Lambda function with less than 3,538 MB
of memory has fewer processors: see :meth:`WorkerSpeed.on`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from compactor.encoding.output_encoding import packing_class
from compactor.formats import SPECS
from compactor.model import Compression
from compactor.settings.settings import Settings

GB = 10**9
MEASURED_PROCESSORS = 2.0
# The throughput of a worker with 1 processor for many small objects, relative to one with 2: the
# GETs are concurrent anyway, and the Python part holds one lock.
_WITH_ONE = 0.9


class WorkerSpeed(msgspec.Struct, frozen=True):
    """The speed of one worker with 2 processors.

    Attributes:
        per_million_objects: seconds for a million objects, without their bytes.
        per_gb: additional seconds per 10**9 stored bytes of sources.
    """

    per_million_objects: float
    per_gb: float

    def seconds(self, objects: int, size: int) -> float:
        """Return the seconds for ``objects`` objects of ``size`` bytes in all."""
        return self.per_million_objects * objects / 1e6 + self.per_gb * size / GB

    def on(self, processors: float) -> WorkerSpeed:
        """Return the speed of a worker with ``processors``; more than 2 do not make it faster.

        All processors decode and encode, so the time per byte is inversely proportional to their
        number. The time per object is 1/0.9 times as long on one processor.
        """
        has = min(processors, MEASURED_PROCESSORS)
        fewer = (MEASURED_PROCESSORS - max(has, 1.0)) * (1 / _WITH_ONE - 1)
        return WorkerSpeed(
            per_million_objects=self.per_million_objects * (1 + fewer) / min(has, 1.0),
            per_gb=self.per_gb * MEASURED_PROCESSORS / has,
        )


LINES, LINES_GZIP, CLOUDTRAIL_GZIP = "lines", "lines, gzip", "CloudTrail, gzip"
# Outputs that hold rows.
ROWS, ROWS_GZIP, ROWS_PARQUET = "JSON to rows", "JSON to rows, gzip", "Parquet"
SPEEDS: Mapping[str, WorkerSpeed] = {
    LINES: WorkerSpeed(per_million_objects=141, per_gb=7),
    LINES_GZIP: WorkerSpeed(per_million_objects=153, per_gb=45),
    CLOUDTRAIL_GZIP: WorkerSpeed(per_million_objects=245, per_gb=46),
    ROWS: WorkerSpeed(per_million_objects=167, per_gb=28),
    ROWS_GZIP: WorkerSpeed(per_million_objects=71, per_gb=163),
    ROWS_PARQUET: WorkerSpeed(per_million_objects=1137, per_gb=37),
}

_WHOLE = frozenset(spec.hint for spec in SPECS if spec.whole)


def speed_for(key: str, settings: Settings) -> WorkerSpeed:
    """Return the speed for objects with keys like this one; CSV and text count as lines.

    zstd counts as gzip, which takes longer. Documents that are parsed whole, and CloudTrail without
    gzip, count as CloudTrail with gzip. In rows, all formats but Parquet count as JSON.
    """
    found = packing_class(key)
    is_plain = found.compression is Compression.NONE
    if settings.merges(key):
        return SPEEDS[ROWS_PARQUET]
    if settings.converts:
        return SPEEDS[ROWS if is_plain else ROWS_GZIP]
    if found.kind in _WHOLE:
        return SPEEDS[CLOUDTRAIL_GZIP]
    return SPEEDS[LINES if is_plain else LINES_GZIP]


def speeds_of(settings: Settings) -> Sequence[WorkerSpeed]:
    """Return the speeds of the formats that a run may find."""
    kinds = [ROWS, ROWS_GZIP] if settings.converts else [LINES, LINES_GZIP, CLOUDTRAIL_GZIP]
    if settings.columnar and not settings.converts:
        kinds = [ROWS_PARQUET]
    return [SPEEDS[kind] for kind in kinds]
