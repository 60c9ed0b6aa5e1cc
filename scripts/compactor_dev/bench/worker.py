"""A worker compared with a bare loop, or with the worker of another commit.

Prints a table for each set, and the speeds by which plans estimate (discovery/speed.py) of each
kind whose small and large set were both measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from compactor.errors import IntegrityError, InvalidInput
from compactor_cli.console import print_error
from compactor_dev import REPOSITORY
from compactor_dev.bench import handler
from compactor_dev.bench.datasets import SETS, DataSet, Records, objects, of_output
from compactor_dev.bench.front import Front
from compactor_dev.bench.measure import (
    Spread,
    Taken,
    chosen,
    environment,
    figure,
    in_turn,
    markdown,
    ratios,
    run,
)

SOURCES, OUTPUTS = "bench-source", "bench-output"
WORKER, LOOP = "worker", "bare loop"
#: Age of sources that have settled, in a closed partition.
AGE_SECONDS = 30 * 86_400
#: Kind -> a set of small objects and one of larger ones, otherwise alike.
PAIRS: Mapping[str, tuple[str, str]] = {
    LINES: ("json-4k-many", "json-100k"),
    LINES_GZIP: ("json-4k-gzip", "json-100k-gzip"),
    CLOUDTRAIL_GZIP: ("cloudtrail", "cloudtrail-long"),
    ROWS: ("rows-4k", "rows-100k"),
    ROWS_GZIP: ("rows-4k-gzip", "rows-100k-gzip"),
    ROWS_PARQUET: ("parquet-12", "parquet-500"),
}
_HEADS = (
    "Candidate",
    "CPU ms/object (min to max)",
    "Objects/s (min to max)",
    "CPU / {}",
    "Objects/s / {}",
    "Peak MB",
    "Bytes out/in",
    "Records",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--latency-ms", type=float, default=25.0, help="(%(default)s)")
    parser.add_argument("--settings", type=json.loads, default={}, help="of the runs, as JSON")
    parser.add_argument(
        "--against", metavar="COMMIT", help="compare the worker of this commit with the present one"
    )
    parser.add_argument(
        "--objects", type=int, default=sys.maxsize, help="maximum number of objects per set"
    )


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of a candidate.

    Attributes:
        objects, bytes_in: sources read, and their stored bytes.
        start_seconds: until the end of imports.
        is_equal: whether the outputs contain exactly the records of the sources.
        second_run: requests of a second run of the worker over the unchanged set.
    """

    candidate: str
    round: int
    objects: int
    bytes_in: int
    bytes_out: int
    taken: Taken
    start_seconds: float
    peak_bytes: int
    is_equal: bool
    second_run: Mapping[str, int]

    @property
    def objects_per_second(self) -> float:
        """Sources a second of wall time."""
        return self.objects / self.taken.seconds

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds per source."""
        return 1_000 * self.taken.cpu_seconds / self.objects


def main(args: argparse.Namespace, directory: Path) -> int:
    """Measure; returns 1 if an output does not contain exactly the records of its sources.

    Raises:
        CompactorError: an option is wrong, or a candidate failed.
    """
    sets = [data_set.reduced(args.objects) for data_set in chosen("--sets", args.sets, SETS)]
    measured = {}
    with _trees(args.against) as trees:
        names = [*trees] if args.against else [WORKER, LOOP]
        for data_set in sets:
            # No loop makes rows.
            able = [name for name in names if name != LOOP or not data_set.to_rows]
            found = _measure(data_set, able, trees, args, directory)
            print(f"\n{data_set.title}\n\n{_table(found, names[0 if args.against else -1])}")
            measured[data_set.name] = found
    for kind, speed in solve(measured, names[-1] if args.against else WORKER).items():
        print(f"{kind}: {speed}")
    differing = {
        f"{measurement.candidate} on {name}"
        for name, found in measured.items()
        for measurement in found
        if not measurement.is_equal
    }
    for text in sorted(differing):
        print_error(f"bench: the records in the output differ: {text}")
    return int(bool(differing))


@contextlib.contextmanager
def _trees(commit: str | None) -> Iterator[dict[str, Path]]:
    """Yield the ``functions`` directory of each measured version, by its name."""
    today = REPOSITORY / "functions"
    if commit is None:
        yield {WORKER: today}
        return
    name = _git("rev-parse", "--short", "--verify", "--end-of-options", f"{commit}^{{commit}}")
    with tempfile.TemporaryDirectory(prefix="s3-compactor-bench-") as temporary:
        tree = Path(temporary) / name
        try:
            _git("worktree", "add", "--detach", "--force", str(tree), name)
            yield {name: tree / "functions", "today": today}
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*words: str) -> str:
    # No hooks. In a session of its own, so that an interrupt does not stop git's clean-up.
    done = subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", *words],  # noqa: S607 - git of the user
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    if done.returncode:
        message = " ".join(done.stderr.split())[-200:]
        raise InvalidInput("--against", words[-1], f"a commit of this repository ({message})")
    return done.stdout.strip()


def _measure(
    data_set: DataSet,
    names: Sequence[str],
    trees: Mapping[str, Path],
    args: argparse.Namespace,
    directory: Path,
) -> list[Measurement]:
    """Run every round of the candidates on one set."""
    measurements = []
    with Front(args.latency_ms) as front:
        size, records = 0, Records()
        modified = time.time() - AGE_SECONDS
        for stored in objects(data_set):
            front.put(SOURCES, f"{data_set.name}/{stored.name}", stored.body, modified)
            size, records = size + len(stored.body), records.plus(stored.records)
        front.client().create_bucket(Bucket=OUTPUTS)
        bench = _Bench(front, data_set, size, records, trees, args.settings, directory)
        for number in range(1, args.rounds + 1):
            for name in in_turn(names, number):
                print_error(f"{data_set.title}: {name}, round {number}")
                measurements.append(bench.measurement(name, number))
    return measurements


@dataclass(frozen=True, slots=True)
class _Bench:
    """Runs candidates sequentially on one set."""

    front: Front
    data_set: DataSet
    bytes_in: int
    records: Records
    trees: Mapping[str, Path]
    settings: Mapping[str, Any]
    directory: Path

    def measurement(self, name: str, number: int) -> Measurement:
        """Run a candidate once, check its outputs, and delete them."""
        scratch, answer = self.directory / "scratch", self.directory / "answer.json"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        task = json.dumps(
            {
                "source_bucket": SOURCES,
                "source_prefix": f"{self.data_set.name}/",
                "bucket": OUTPUTS,
                "prefix": "out/",
                "extension": self.data_set.extension,
                "scratch": str(scratch),
                "settings": {**self.data_set.settings, **self.settings},
                "answer": str(answer),
            }
        )
        log = self.directory / "candidate.log"
        second_run: Mapping[str, int] = {}
        if name == LOOP:
            loop = [sys.executable, "-m", "compactor_dev.bench.loop", task]
            taken = run(loop, environment(self.front.environment), log)
            result = json.loads(answer.read_bytes())
        else:
            # -P: modules in the script's directory could shadow others.
            command = [sys.executable, "-P", handler.__file__, task]
            variables = environment(self.front.environment, [str(self.trees[name])])
            run([*command, handler.ASK], variables, log)
            taken = run(command, variables, log)
            result = json.loads(answer.read_bytes())
            self._require_own(name, result["handler"])
            # Over unchanged data: it must find nothing to do.
            run(command, variables, log)
            second_run = json.loads(answer.read_bytes())["requests"]
        records, bytes_out = self._take_outputs()
        return Measurement(
            candidate=name,
            round=number,
            objects=self.data_set.objects,
            bytes_in=self.bytes_in,
            bytes_out=bytes_out,
            taken=taken,
            start_seconds=result["start_seconds"],
            peak_bytes=result["peak_bytes"],
            is_equal=records == self.records,
            second_run=second_run,
        )

    def _require_own(self, name: str, module: str) -> None:
        # If the commit lacks the module, an installed version would be imported instead.
        if not module.startswith(os.path.realpath(self.trees[name]) + os.sep):
            raise IntegrityError(f"the worker of {name} was imported from {module}")

    def _take_outputs(self) -> tuple[Records, int]:
        """Return what the outputs contain and their bytes; deletes everything in the bucket."""
        client = self.front.client()
        records, size = Records(), 0
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=OUTPUTS)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        for key in keys:
            if key.startswith("out/"):
                body = client.get_object(Bucket=OUTPUTS, Key=key)["Body"].read()
                records = records.plus(of_output(body, self.data_set.kind))
                size += len(body)
            client.delete_object(Bucket=OUTPUTS, Key=key)
        return records, size


def _table(measurements: Sequence[Measurement], base: str) -> str:
    """Return a row per candidate with ratios to the base, and figures that have no column."""
    groups: dict[str, list[Measurement]] = {}
    for measurement in measurements:
        groups.setdefault(measurement.candidate, []).append(measurement)
    rows = [_row(group, groups.get(base, [])) for group in groups.values()]
    loads = [measurement.taken.load for measurement in measurements]
    notes = f"Load average {min(loads):.1f} to {max(loads):.1f}."
    requests = next((m.second_run for m in reversed(measurements) if m.second_run), {})
    if requests:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(requests.items()))
        notes += f" A second run over the unchanged set: {counts}."
    return f"{markdown([head.format(base) for head in _HEADS], rows)}\n\n{notes}"


def _row(group: Sequence[Measurement], base: Sequence[Measurement]) -> list[str]:
    first = group[0]
    is_base = bool(base) and first.candidate == base[0].candidate
    compared = [
        ratios({m.round: value(m) for m in group}, {m.round: value(m) for m in base})
        for value in (lambda m: m.cpu_ms, lambda m: m.objects_per_second)
    ]
    return [
        first.candidate,
        str(Spread.of(m.cpu_ms for m in group)),
        str(Spread.of(m.objects_per_second for m in group)),
        *("" if is_base else str(ratio or "") for ratio in compared),
        figure(max(m.peak_bytes for m in group) / 1e6),
        f"{first.bytes_out / first.bytes_in:.3f}",
        "equal" if all(m.is_equal for m in group) else "**differ**",
    ]


def solve(measured: Mapping[str, Sequence[Measurement]], candidate: str) -> dict[str, WorkerSpeed]:
    """Return the speed of each kind whose two sets were measured."""
    speeds = {}
    for kind, names in PAIRS.items():
        points = []
        for name in names:
            rounds = [m for m in measured.get(name, ()) if m.candidate == candidate]
            if rounds:
                seconds = Spread.of((m.taken.seconds - m.start_seconds) / m.objects for m in rounds)
                points.append((rounds[0].bytes_in / rounds[0].objects, seconds.median))
        if len(points) == len(names):
            (small_bytes, small), (large_bytes, large) = points
            per_byte = max(0.0, (large - small) / (large_bytes - small_bytes))
            per_object = max(0.0, small - per_byte * small_bytes)
            speeds[kind] = WorkerSpeed(math.ceil(per_object * 1e6), math.ceil(per_byte * GB))
    return speeds
