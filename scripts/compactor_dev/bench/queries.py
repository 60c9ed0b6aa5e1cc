"""Query engines on the same records, before and after compaction: ``make bench ARGS="queries …"``.

2,000 objects of 3 KB (36 gzip JSON lines each; ``--records 2070`` makes 120 KB) over five days are
in the embedded S3 as they arrived, and in each layout that ``compactor run`` makes of them. Every
answer is compared with counts of the generator.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor_cli.console import print_error, print_line, print_table
from compactor_cli.machine.spark_submit import SparkMissing, find_spark
from compactor_dev import spark_jars
from compactor_dev.bench import engines
from compactor_dev.bench.datasets import DataSet, objects
from compactor_dev.bench.front import Requests
from compactor_dev.bench.measure import Spread, chosen, figure, in_turn, ratios, run
from compactor_dev.bench.server import AGE_SECONDS, Front, environment, front, listed
from compactor_local.embedded import EmbeddedS3, SeedObject, embedded_s3

_DAYS = 5
_GZIP = 31  # zlib's wbits of a gzip container
_LOCK = Path(__file__).with_name("requirements.txt")
_RAW, _DATA = "raw", "data/"
# Options of the run that makes a layout, and the suffix of its keys.
_LAYOUTS = {
    _RAW: ((), ".json.gz"),
    "same": (("--compression", "same"), ".json.gz"),
    "zstd": (("--compression", "zstd"), ".json.zst"),
    "none": (("--compression", "none"), ".json"),
    "parquet": (("--output-format", "parquet"), ".parquet"),
}


class _Http(msgspec.Struct):
    bytes: int


class _Event(msgspec.Struct):
    event_id: str
    level: str
    service: str
    http: _Http


_events = msgspec.json.Decoder(_Event)


@dataclass(slots=True)
class Answers:
    """The expected answer to each query, counted while the objects are generated."""

    records: int = 0
    services: dict[str, Counter[str]] = field(default_factory=dict)
    needle: tuple[str, str, str] = ("", "", "")

    def add(self, plain: bytes, *, has_needle: bool) -> None:
        """Count the records of one object."""
        for one in _events.decode_lines(plain):
            self.records += 1
            counted = self.services.setdefault(one.service, Counter())
            counted.update(n=1, errors=int(one.level == "ERROR"), total=one.http.bytes)
            if has_needle:
                self.needle = (one.event_id, one.service, one.level)

    def of(self, query: str) -> list[list[Any]]:
        """Return the rows of one query."""
        if query == "count":
            return [[self.records]]
        if query == "needle":
            return [list(self.needle)]
        return [
            [name, one["n"], one["errors"], one["total"]]
            for name, one in sorted(self.services.items())
        ]


class Candidate(NamedTuple):
    """An engine with a number of threads (0: its default), on a layout."""

    engine: str
    threads: int
    layout: str


class Turn(NamedTuple):
    """One measurement: seconds of the query by the engine's clock, CPU seconds of its process."""

    round: int
    seconds: float
    cpu_seconds: float
    requests: Requests


def options(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument(
        "--objects", type=int, default=2_000, help="number of objects (%(default)s)"
    )
    parser.add_argument("--records", type=int, default=36, help="records per object (%(default)s)")
    parser.add_argument(
        "--engines", default="duckdb,chdb,polars", help=f"of {','.join(engines.ENGINES)}"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[0, 32], help="0: its default")
    parser.add_argument("--layouts", default="same,parquet", help=f"of {','.join(_LAYOUTS)}")
    parser.add_argument("--query", default="group", choices=engines.QUERIES)
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--latency-ms", type=float, default=25.0, help="(%(default)s)")
    parser.add_argument(
        "--slow-seconds", type=float, default=20.0, help="slower queries are measured once"
    )


def main(args: argparse.Namespace, directory: Path) -> int:
    """Measure.

    Raises:
        IntegrityError: an engine's answer is wrong.
        CompactorError: an option is wrong, or a server, a run or an engine failed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    chosen("--layouts", args.layouts, _LAYOUTS)
    chosen("--engines", args.engines, engines.ENGINES)
    layouts = list(dict.fromkeys([_RAW, *filter(None, args.layouts.split(","))]))
    names = args.engines.split(",")
    pythons = {name: python_of(name, directory.parent) for name in names}
    data_set = DataSet("queries", "", args.objects, args.records, gzip=True)
    candidates = [
        Candidate(name, threads, layout)
        for name in names
        for threads in args.threads
        for layout in layouts
    ]
    with (directory / "embedded.log").open("wb") as log, embedded_s3(log) as embedded:
        answers = Answers()
        embedded.seed(_bucket(_RAW), _seeded(data_set, answers))
        for layout in layouts[1:]:
            _make(embedded, layout, directory / "runs.log")
        with front(embedded, directory, [_bucket(one) for one in layouts], args.latency_ms) as lane:
            session = _Session(args, directory, lane, answers, pythons)
            turns = session.measure(candidates)
        counts = {one: listed(embedded.client("s3"), _bucket(one), _DATA) for one in layouts}
    size = sum(size for _, size in counts[_RAW]) / args.objects / 1_000
    print_table(
        f"{args.query}, {args.objects:,} x {size:.1f} KB, {answers.records:,} records",
        ["Engine, threads", "Layout", "Objects", "Seconds", "CPU s", "Gain", *Requests._fields],
        [_row(one, turns, len(counts[one.layout])) for one in candidates],
        texts=(0, 1),
    )
    print_line("Gain: time on the raw objects divided by time on the layout, within rounds.")
    return 0


def _bucket(layout: str) -> str:
    return f"query-{layout}"


def _day(index: int, count: int) -> str:
    return f"dt=2026-01-{index * _DAYS // count + 1:02d}"


def _seeded(data_set: DataSet, answers: Answers) -> Iterator[SeedObject]:
    modified, count = time.time() - AGE_SECONDS, data_set.objects
    for index, one in enumerate(objects(data_set)):
        answers.add(zlib.decompress(one.body, _GZIP), has_needle=index == count // 2)
        yield SeedObject(f"{_DATA}{_day(index, count)}/{one.name}", one.body, modified)


def _make(embedded: EmbeddedS3, layout: str, log: Path) -> None:
    print_error(f"compactor run: {layout}")
    embedded.create_bucket(_bucket(layout))
    places = [f"s3://{_bucket(one)}/{_DATA}" for one in (_RAW, layout)]
    words = ["run", *places, "--depth", "1", *_LAYOUTS[layout][0]]
    command = [sys.executable, "-m", "compactor_cli", *words]
    run([*command, "--endpoint-url", embedded.endpoint_url], environment(embedded.environment), log)


@dataclass(frozen=True, slots=True)
class _Session:
    """Runs each query in a new process, and compares every answer."""

    args: argparse.Namespace
    directory: Path
    lane: Front
    answers: Answers
    pythons: dict[str, str]

    def measure(self, candidates: Sequence[Candidate]) -> dict[Candidate, list[Turn]]:
        """Run all rounds; slow queries run once."""
        found: dict[Candidate, list[Turn]] = {one: [] for one in candidates}
        for number in range(1, self.args.rounds + 1):
            for one in in_turn(candidates, number):
                if not any(turn.seconds > self.args.slow_seconds for turn in found[one]):
                    print_error(f"{one.engine}, {one.threads or 'default'}, {one.layout}: {number}")
                    found[one].append(self._turn(one, number))
        return found

    def _turn(self, one: Candidate, number: int) -> Turn:
        answer = self.directory / "answer.json"
        extension = _LAYOUTS[one.layout][1]
        order = {
            "endpoint_url": self.lane.endpoints[self.lane.plain],
            "query": self.args.query,
            "needle": self.answers.needle[0],
            "parquet": one.layout == "parquet",
            "places": [
                f"{_bucket(one.layout)}/{_DATA}{_day(day, _DAYS)}/*{extension}"
                for day in range(_DAYS)
            ],
            "answer": str(answer),
        }
        # -I: the engine's Python must not import anything of this project.
        command = [self.pythons[one.engine], "-I", engines.__file__, one.engine, str(one.threads)]
        jars = ",".join(map(str, spark_jars.s3a())) if one.engine == "spark" else ""
        around = environment({"BENCH_JARS": jars, "AWS_EC2_METADATA_DISABLED": "true"}, ())
        with self.lane.counted() as requests:
            taken = run([*command, json.dumps(order)], around, self.directory / "engine.log")
        result = json.loads(answer.read_bytes())
        expected = self.answers.of(self.args.query)
        if result["rows"] != expected:
            raise IntegrityError(
                f"{', '.join(map(str, one))}: {result['rows'][:3]}, not {expected[:3]}"
            )
        cpu_seconds = taken.user_seconds + taken.kernel_seconds
        return Turn(number, result["seconds"], cpu_seconds, requests[0])


def _row(one: Candidate, turns: dict[Candidate, list[Turn]], count: int) -> list[str]:
    own, raw = turns[one], turns[one._replace(layout=_RAW)]
    gain = ratios({t.round: t.seconds for t in raw}, {t.round: t.seconds for t in own})
    cells = [f"{one.engine}, {one.threads or 'default'}", one.layout, f"{count:,}"]
    cells.append(str(Spread.of(turn.seconds for turn in own)))
    cells.append(figure(Spread.of(turn.cpu_seconds for turn in own).median))
    cells.append(f"{gain} x" if gain and one.layout != _RAW else "")
    return [*cells, *(f"{count:,}" for count in own[-1].requests)]


def python_of(name: str, directory: Path) -> str:
    """Return a Python with the engine; engines of the lock are installed once in ``directory``.

    Raises:
        InvalidInput: the engines cannot be installed, or Spark cannot run.
    """
    if name == "spark":
        try:
            find_spark()
        except SparkMissing as error:
            raise InvalidInput("--engines", name, f"other engines, or a Spark ({error})") from None
        return sys.executable
    python, done = directory / "engines" / "bin" / "python", directory / "engines" / "lock"
    lock = _LOCK.read_text("utf-8")
    with contextlib.suppress(OSError):
        if done.read_text("utf-8") == lock:
            return str(python)
    print_error("Fetching DuckDB, chDB and Polars into build/ (once) ...")
    uv = [sys.executable, "-m", "uv"]
    made = [*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(done.parent)]
    wanted = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(_LOCK)]
    for command in (made, [*uv, "pip", "install", "--quiet", "--python", str(python), *wanted]):
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
        if tried.returncode:
            raise TransientStoreError(f"the engines: {' '.join(tried.stderr.split())[-300:]}")
    done.write_text(lock, "utf-8")
    return str(python)
