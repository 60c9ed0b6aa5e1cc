"""Query engines on the same records, before and after compaction.

2,000 objects of 3 KB over five days (36 gzip JSON lines each; ``--records 2070`` makes 120 KB) are
queried as they arrived, and in each layout that ``compactor run`` makes of them.
Every answer is compared with counts of the generated records.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from compactor.errors import IntegrityError, TransientStoreError
from compactor_cli.console import print_error
from compactor_dev.bench import engines
from compactor_dev.bench.datasets import DataSet, objects
from compactor_dev.bench.front import Front
from compactor_dev.bench.measure import (
    Spread,
    chosen,
    environment,
    figure,
    in_turn,
    markdown,
    ratios,
    run,
)
from compactor_dev.bench.worker import AGE_SECONDS

_DAYS = 5
_GZIP = 31  # zlib's wbits of a gzip container
_LOCK = Path(__file__).with_name("requirements.txt")
_RAW, _DATA = "raw", "data/"
# Options of the run that makes a layout, and the suffix of its keys.
_LAYOUTS = {
    _RAW: ((), ".json.gz"),
    "compacted": ((), ".json.gz"),
    "parquet": (("--output-format", "parquet"), ".parquet"),
}
_HEADS = ("Engine, threads, layout", "Objects", "Seconds", "CPU s", "Gain", "GETs", "LISTs")


class _Http(msgspec.Struct):
    bytes: int


class _Event(msgspec.Struct):
    level: str
    service: str
    http: _Http


_events = msgspec.json.Decoder(_Event)


class Answer:
    """The expected answer to the query, counted while the objects are generated."""

    def __init__(self) -> None:
        self._services: dict[str, Counter[str]] = {}

    def add(self, plain: bytes) -> None:
        """Count the records of one object."""
        for event in _events.decode_lines(plain):
            counts = self._services.setdefault(event.service, Counter())
            counts.update(n=1, errors=int(event.level == "ERROR"), total=event.http.bytes)

    def rows(self) -> list[list[Any]]:
        """Return its rows."""
        return [
            [name, counts["n"], counts["errors"], counts["total"]]
            for name, counts in sorted(self._services.items())
        ]


class Candidate(NamedTuple):
    """An engine with a number of threads (0: its default), on a layout."""

    engine: str
    threads: int
    layout: str

    def __str__(self) -> str:
        return f"{self.engine}, {self.threads or 'default'}, {self.layout}"


class Turn(NamedTuple):
    """One measurement: seconds of the query by the engine's clock, CPU seconds of its process."""

    round: int
    seconds: float
    cpu_seconds: float
    requests: Counter[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument(
        "--objects", type=int, default=2_000, help="number of objects (%(default)s)"
    )
    parser.add_argument("--records", type=int, default=36, help="records per object (%(default)s)")
    parser.add_argument("--engines", default="duckdb,chdb,polars", help="(%(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=[0, 32], help="0: its default")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--latency-ms", type=float, default=25.0, help="(%(default)s)")


def main(args: argparse.Namespace, directory: Path) -> int:
    """Measure.

    Raises:
        IntegrityError: an engine's answer is wrong.
        CompactorError: an option is wrong, or a run or an engine failed.
    """
    chosen("--engines", args.engines, engines.ENGINES)
    python = python_with_engines(directory.parent / "engines")
    candidates = [
        Candidate(name, threads, layout)
        for name in args.engines.split(",")
        for threads in args.threads
        for layout in _LAYOUTS
    ]
    answer = Answer()
    with Front(args.latency_ms) as front:
        _seed(front, DataSet("queries", "", args.objects, args.records, is_gzip=True), answer)
        counts = {_RAW: args.objects}
        for layout in [*_LAYOUTS][1:]:
            counts[layout] = _make(front, layout, directory / "runs.log")
        turns: dict[Candidate, list[Turn]] = {candidate: [] for candidate in candidates}
        for number in range(1, args.rounds + 1):
            for candidate in in_turn(candidates, number):
                print_error(f"{candidate}: round {number}")
                turn, rows = _turn(front, candidate, number, python, directory)
                if rows != answer.rows():
                    raise IntegrityError(f"{candidate}: {rows[:3]}, not {answer.rows()[:3]}")
                turns[candidate].append(turn)
    table = [_row(one, turns, counts) for one in candidates]
    print(markdown(_HEADS, table))
    print("\nGain: time on the raw objects divided by time on the layout, within rounds.")
    return 0


def _bucket(layout: str) -> str:
    return f"query-{layout}"


def _day(index: int, count: int) -> str:
    return f"dt=2026-01-{index * _DAYS // count + 1:02d}"


def _seed(front: Front, data_set: DataSet, answer: Answer) -> None:
    modified = time.time() - AGE_SECONDS
    for index, stored in enumerate(objects(data_set)):
        answer.add(zlib.decompress(stored.body, _GZIP))
        key = f"{_DATA}{_day(index, data_set.objects)}/{stored.name}"
        front.put(_bucket(_RAW), key, stored.body, modified)


def _make(front: Front, layout: str, log: Path) -> int:
    """Compact the raw objects, and keep the outputs in memory; returns their number."""
    print_error(f"compactor run: {layout}")
    client, bucket = front.client(), _bucket(layout)
    client.create_bucket(Bucket=bucket)
    places = [f"s3://{_bucket(name)}/{_DATA}" for name in (_RAW, layout)]
    words = ["run", *places, "--depth", "1", *_LAYOUTS[layout][0]]
    run([sys.executable, "-m", "compactor_cli", *words], environment(front.environment), log)
    keys = [
        entry["Key"] for entry in client.list_objects_v2(Bucket=bucket, Prefix=_DATA)["Contents"]
    ]
    bodies = [client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys]
    for key, body in zip(keys, bodies, strict=True):
        front.put(bucket, key, body, time.time())
    return len(keys)


def _turn(
    front: Front,
    candidate: Candidate,
    number: int,
    python: str,
    directory: Path,
) -> tuple[Turn, list[list[Any]]]:
    """Run the query once; returns its figures and its rows."""
    answer = directory / "answer.json"
    extension = _LAYOUTS[candidate.layout][1]
    order = {
        "endpoint_url": front.url,
        "parquet": candidate.layout == "parquet",
        "places": [
            f"{_bucket(candidate.layout)}/{_DATA}{_day(day, _DAYS)}/*{extension}"
            for day in range(_DAYS)
        ],
        "answer": str(answer),
    }
    # -I: the engine's Python must not import anything of this project.
    command = [python, "-I", engines.__file__, candidate.engine, str(candidate.threads)]
    before = Counter(front.requests)
    variables = environment({"AWS_EC2_METADATA_DISABLED": "true"}, ())
    taken = run([*command, json.dumps(order)], variables, directory / "engine.log")
    result = json.loads(answer.read_bytes())
    turn = Turn(number, result["seconds"], taken.cpu_seconds, front.requests - before)
    return turn, result["rows"]


def _row(
    candidate: Candidate, turns: Mapping[Candidate, list[Turn]], counts: Mapping[str, int]
) -> list[str]:
    own, raw = turns[candidate], turns[candidate._replace(layout=_RAW)]
    gain = ratios(*({turn.round: turn.seconds for turn in group} for group in (raw, own)))
    return [
        str(candidate),
        f"{counts[candidate.layout]:,}",
        str(Spread.of(turn.seconds for turn in own)),
        figure(Spread.of(turn.cpu_seconds for turn in own).median),
        f"{gain} x" if gain and candidate.layout != _RAW else "",
        *(f"{own[-1].requests[name]:,}" for name in ("GET", "LIST")),
    ]


def python_with_engines(directory: Path) -> str:
    """Return a Python with the engines of the lock, which are installed once.

    Raises:
        TransientStoreError: the engines cannot be installed.
    """
    python, done = directory / "bin" / "python", directory / "lock"
    lock = _LOCK.read_text("utf-8")
    with contextlib.suppress(OSError):
        if done.read_text("utf-8") == lock:
            return str(python)
    print_error("Fetching DuckDB, chDB and Polars into build/ (once) ...")
    uv = [sys.executable, "-m", "uv"]
    made = [*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(directory)]
    wanted = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(_LOCK)]
    for command in (made, [*uv, "pip", "install", "--quiet", "--python", str(python), *wanted]):
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
        if tried.returncode:
            raise TransientStoreError(f"the engines: {' '.join(tried.stderr.split())[-300:]}")
    done.write_text(lock, "utf-8")
    return str(python)
