"""DuckDB on the same records, before and after compaction.

2,000 gzip objects of some 3 KB over five days (``--records 2600``: 120 KB) are queried as they
arrived, and in each layout that ``compactor run`` makes of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

from compactor.errors import IntegrityError
from compactor_dev.bench.datasets import DataSet, objects
from compactor_dev.bench.front import Front
from compactor_dev.bench.measure import (
    figure,
    in_turn,
    ratios,
    run,
    spread,
    table_head,
    table_row,
)

_DAYS = 5
_RAW = "raw"
# Options of the run that makes a layout, and the suffix of its keys.
_LAYOUTS: Mapping[str, tuple[Sequence[str], str]] = {
    _RAW: ((), ".json.gz"),
    "compacted": ((), ".json.gz"),
    "parquet": (("--output-format", "parquet"), ".parquet"),
}
_READER = Path(__file__).with_name("reader.py")
_HEADS = ("Threads, layout", "Seconds", "CPU s", "Gain", "Requests")


class _Candidate(NamedTuple):
    """A number of DuckDB's threads (0: its default) on a layout."""

    threads: int
    layout: str


class _Turn(NamedTuple):
    """One measurement: seconds of the query, CPU seconds of its process, its requests."""

    seconds: float
    cpu_seconds: float
    requests: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--objects", type=int, default=2_000, help="(%(default)s)")
    parser.add_argument("--records", type=int, default=48, help="per object (%(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[0, 32], help="0: its default")


def main(args: argparse.Namespace) -> int:
    """Measure.

    Raises:
        IntegrityError: two layouts give different answers.
        CompactorError: a run or the engine failed.
    """
    candidates = [_Candidate(*values) for values in product(args.threads, _LAYOUTS)]
    turns: dict[_Candidate, list[_Turn]] = {candidate: [] for candidate in candidates}
    with Front(args.latency_ms) as front:
        for source in objects(DataSet("json", args.objects, args.records, is_gzip=True), _DAYS):
            front.put(_bucket(_RAW), *source)
        for layout in [*_LAYOUTS][1:]:
            front.bucket(_bucket(layout)).create()
            places = [f"s3://{_bucket(name)}/json/" for name in (_RAW, layout)]
            command = [sys.executable, "-m", "compactor_cli", "run", *places, "--depth", "3"]
            run([*command, *_LAYOUTS[layout][0]], front.environment)
        # The first time, uv installs the engine.
        _, answer = _turn(front, candidates[0]._replace(layout="compacted"))
        for number in range(1, args.rounds + 1):
            for candidate in in_turn(candidates, number):
                turn, rows = _turn(front, candidate)
                turns[candidate].append(turn)
                if rows != answer:
                    raise IntegrityError(f"{candidate}: {rows}, not {answer}")
    print(table_head(_HEADS))
    for candidate in candidates:
        print(table_row(_cells(candidate, turns)))
    print("\nGain: time on the raw objects divided by time on the layout, within rounds.")
    return 0


def _bucket(layout: str) -> str:
    return f"query-{layout}"


def _turn(front: Front, candidate: _Candidate) -> tuple[_Turn, object]:
    """Run the query once; returns its figures and its rows."""
    pattern = f"s3://{_bucket(candidate.layout)}/json/*/*/*/*{_LAYOUTS[candidate.layout][1]}"
    before = front.requests
    command = [sys.executable, "-m", "uv", "run", "--quiet", "--script", str(_READER), pattern]
    process = run([*command, str(candidate.threads)], front.environment, ())
    result = process.result
    turn = _Turn(result["seconds"], process.cpu_seconds, front.requests - before)
    return turn, result["rows"]


def _cells(candidate: _Candidate, turns: Mapping[_Candidate, Sequence[_Turn]]) -> Sequence[str]:
    own = turns[candidate]
    seconds = [turn.seconds for turn in own]
    raw = [turn.seconds for turn in turns[candidate._replace(layout=_RAW)]]
    return (
        f"{candidate.threads or 'default'}, {candidate.layout}",
        spread(seconds),
        figure(median(turn.cpu_seconds for turn in own)),
        "" if candidate.layout == _RAW else f"{ratios(raw, seconds)} x",
        f"{own[-1].requests:,}",
    )
