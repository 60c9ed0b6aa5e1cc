"""Converts measurements of the worker to the table of :mod:`compactor.discovery.speed`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from compactor.discovery.speed import (
    CLOUDTRAIL_GZIP,
    GB,
    LINES,
    LINES_GZIP,
    ROWS,
    ROWS_GZIP,
    ROWS_PARQUET,
    WorkerSpeed,
)
from compactor_dev.bench.measure import Spread, write_between
from compactor_dev.bench.worker_results import WORKER, Measurement, Results

#: Kind -> a set of small objects and one of larger ones, otherwise alike.
PAIRS: Mapping[str, tuple[str, str]] = {
    LINES: ("json-4k-many", "json-100k"),
    LINES_GZIP: ("json-4k-gzip", "json-100k-gzip"),
    CLOUDTRAIL_GZIP: ("cloudtrail", "cloudtrail-long"),
    ROWS: ("rows-4k", "rows-100k"),
    ROWS_GZIP: ("rows-4k-gzip", "rows-100k-gzip"),
    ROWS_PARQUET: ("parquet-12", "parquet-500"),
}
_NAMES = {
    LINES: "LINES",
    LINES_GZIP: "LINES_GZIP",
    CLOUDTRAIL_GZIP: "CLOUDTRAIL_GZIP",
    ROWS: "ROWS",
    ROWS_GZIP: "ROWS_GZIP",
    ROWS_PARQUET: "ROWS_PARQUET",
}


def solve(known: Results) -> dict[str, WorkerSpeed]:
    """Return the speed of each kind whose two sets were measured at 25 ms."""
    speeds = {}
    for kind, names in PAIRS.items():
        points = [point for name in names if (point := _point(known.get(name, [])))]
        if len(points) == len(names):
            small, large = points
            per_byte = max(0.0, (large[1] - small[1]) / (large[0] - small[0]))
            per_object = max(0.0, small[1] - per_byte * small[0])
            speeds[kind] = WorkerSpeed(math.ceil(per_object * 1e6), math.ceil(per_byte * GB))
    return speeds


def _point(found: Sequence[Measurement]) -> tuple[float, float] | None:
    """Return bytes and seconds per object, without the start of the process."""
    rounds = [one for one in found if (one.candidate, one.lane) == (WORKER, "25 ms")]
    if not rounds:
        return None
    seconds = Spread.of((one.seconds - one.start_seconds) / one.objects for one in rounds)
    return rounds[0].bytes_in / rounds[0].objects, seconds.median


def write_speeds(module: Path, speeds: Mapping[str, WorkerSpeed]) -> bool:
    """Rewrite the module's table; returns False if it is unchanged.

    Raises:
        ValueError: it has no markers.
    """
    lines = "".join(
        f"    {_NAMES[kind]}: WorkerSpeed(per_million_objects={one.per_million_objects:g},"
        f" per_gb={one.per_gb:g}),\n"
        for kind, one in speeds.items()
    )
    return write_between(module, "    # measured: begin\n", "    # measured: end\n", lines)
