"""From measurements to the table of :mod:`compactor.discovery.speed`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from compactor.discovery.speed import CLOUDTRAIL_GZIP, GB, LINES, LINES_GZIP, WorkerSpeed
from compactor_cli.markers import replace_between
from compactor_dev.benchmark.clients import WORKER
from compactor_dev.benchmark.results import Results

LANE = "25 ms"
# Kind -> a set of small objects and one of larger ones, alike in all else.
PAIRS: Mapping[str, tuple[str, str]] = {
    LINES: ("json-4k-many", "json-100k"),
    LINES_GZIP: ("json-4k-gzip", "json-100k-gzip"),
    CLOUDTRAIL_GZIP: ("cloudtrail", "cloudtrail-long"),
}
_NAMES = {LINES: "LINES", LINES_GZIP: "LINES_GZIP", CLOUDTRAIL_GZIP: "CLOUDTRAIL_GZIP"}
BEGIN, END = "    # measured: begin\n", "    # measured: end\n"


def solve(results: Results) -> dict[str, WorkerSpeed]:
    """The speed of each kind both of whose sets were measured at 25 ms."""
    speeds = {}
    for kind, (small, large) in PAIRS.items():
        points = [_point(results, name) for name in (small, large)]
        if all(points):
            speeds[kind] = _line(*(point for point in points if point is not None))
    return speeds


def _point(results: Results, name: str) -> tuple[float, float] | None:
    """Bytes and seconds of one object; the start of the process is left out."""
    result = results.get(name)
    rounds = result.rounds(WORKER, LANE) if result else []
    if not rounds:
        return None
    seconds = sorted((one.seconds - one.start_seconds) / one.objects for one in rounds)
    return rounds[0].bytes_in / rounds[0].objects, seconds[len(seconds) // 2]


def _line(small: tuple[float, float], large: tuple[float, float]) -> WorkerSpeed:
    per_byte = max(0.0, (large[1] - small[1]) / (large[0] - small[0]))
    per_object = max(0.0, small[1] - per_byte * small[0])
    return WorkerSpeed(_rounded_up(per_object * 1e6), _rounded_up(per_byte * GB))


def _rounded_up(value: float) -> float:
    return float(math.ceil(value))


def put_into(text: str, speeds: Mapping[str, WorkerSpeed]) -> str:
    """The module's source with these speeds between its markers.

    Raises:
        ValueError: it has no markers.
    """
    lines = "".join(
        f"    {_NAMES[kind]}: WorkerSpeed(per_million_objects={one.per_million_objects:g},"
        f" per_gb={one.per_gb:g}),\n"
        for kind, one in speeds.items()
    )
    return replace_between(text, BEGIN, END, lines)


def regenerate(module: Path, results: Results) -> bool:
    """Rewrite the table; False, and nothing is touched, unless every kind was measured."""
    speeds = solve(results)
    if set(speeds) != set(PAIRS):
        return False
    text = module.read_text(encoding="utf-8")
    changed = put_into(text, speeds)
    if changed != text:
        module.write_text(changed, encoding="utf-8")
    return True
