"""A worker compared with a bare loop, or with the worker of another commit.

Prints a row for each set, and the speeds by which plans estimate (money/estimate.py) of each kind
whose small and large set were both measured.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from compactor.errors import IntegrityError, InvalidInput
from compactor.money.estimate import WorkerSpeed
from compactor_dev import REPOSITORY
from compactor_dev.bench import handler
from compactor_dev.bench.datasets import SETS, DataSet, Records, objects
from compactor_dev.bench.front import Front
from compactor_dev.bench.measure import (
    figure,
    in_turn,
    ratios,
    run,
    table_head,
    table_row,
)

SOURCES, OUTPUTS = "bench-source", "bench-output"
_FUNCTIONS = REPOSITORY / "functions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument(
        "--sets", nargs="+", choices=SETS, default=[*SETS], metavar="SET", help="(%(default)s)"
    )
    parser.add_argument(
        "--objects", type=int, default=sys.maxsize, help="maximum number of objects per set"
    )
    parser.add_argument("--against", metavar="COMMIT", help="compare with the worker of a commit")


class Candidate(NamedTuple):
    """What is measured: the worker of a directory of functions, or the bare loop (None)."""

    name: str
    functions: Path | None


class Measurement(NamedTuple):
    """One run of a candidate.

    Attributes:
        start_seconds: until the end of imports.
        is_equal: whether the outputs contain exactly the records of the sources.
    """

    seconds: float
    cpu_seconds: float
    start_seconds: float
    peak_bytes: int
    is_equal: bool


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements of one set, in the order of the rounds.

    Attributes:
        source_bytes: stored bytes of the set.
        of_candidates: by the name of the candidate.
    """

    data_set: DataSet
    source_bytes: int
    of_candidates: Mapping[str, Sequence[Measurement]]

    @property
    def is_equal(self) -> bool:
        """Whether all outputs contain exactly the records of the sources."""
        return all(m.is_equal for group in self.of_candidates.values() for m in group)


def main(args: argparse.Namespace) -> int:
    """Measure; returns 1 if an output does not contain exactly the records of its sources.

    Raises:
        CompactorError: an option is wrong, or a candidate failed.
    """
    results = []
    with tempfile.TemporaryDirectory(prefix="s3-compactor-bench-") as directory:
        worker, base = Candidate("worker", _FUNCTIONS), Candidate("bare loop", None)
        if args.against:
            base = Candidate(args.against, functions_of(args.against, Path(directory)))
        print(table_head(_heads(f"{worker.name} / {base.name}")))
        for name in args.sets:
            data_set = SETS[name]
            # No loop makes rows.
            candidates = [worker] if data_set.makes_rows and not args.against else [worker, base]
            data_set = replace(data_set, objects=min(data_set.objects, args.objects))
            results.append(_measured(data_set, candidates, args.rounds, args.latency_ms))
            print(table_row(_cells(name, results[-1])), flush=True)
    print(f"\nLoad average {os.getloadavg()[0]:.1f}.\n")
    for kind, speed in speeds(results, worker.name).items():
        print(f"{kind}: {speed}")
    return 0 if all(result.is_equal for result in results) else 1


def functions_of(commit: str, directory: Path) -> Path:
    """Write the functions of a commit to a directory; returns where they are.

    Raises:
        InvalidInput: there is no such commit.
    """
    done = subprocess.run(
        ["git", "archive", "--format=tar", commit, _FUNCTIONS.name],  # noqa: S607 - of the user
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        message = " ".join(done.stderr.decode().split())[-200:]
        raise InvalidInput("--against", commit, f"a commit of this repository ({message})")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(directory, filter="data")
    return directory / _FUNCTIONS.name


def _measured(
    data_set: DataSet, candidates: Sequence[Candidate], rounds: int, latency_ms: float
) -> Result:
    """Run every round of the candidates on one set."""
    measurements: dict[str, list[Measurement]] = {candidate.name: [] for candidate in candidates}
    with Front(latency_ms) as front:
        records, source_bytes, prefix = Records(), 0, ""
        for source in objects(data_set):
            front.put(SOURCES, *source)
            records = records.plus(source.body, data_set)
            source_bytes += len(source.body)
            prefix = source.key.rpartition("/")[0] + "/"
        front.bucket(OUTPUTS).create()
        for number in range(1, rounds + 1):
            for candidate in in_turn(candidates, number):
                measurement = _measurement(front, candidate, data_set, prefix, records)
                measurements[candidate.name].append(measurement)
    return Result(data_set, source_bytes, measurements)


def _measurement(
    front: Front, candidate: Candidate, data_set: DataSet, prefix: str, records: Records
) -> Measurement:
    """Run a candidate once, check its outputs, and delete them."""
    event = json.dumps(_event(data_set, prefix))
    if candidate.functions is None:
        command = [sys.executable, "-m", "compactor_dev.bench.loop"]
        process = run([*command, event], front.environment)
    else:
        # -P: modules in the script's directory could shadow others.
        command = [sys.executable, "-P", handler.__file__]
        roots = [str(candidate.functions)]
        # Probes the store, as discovery does before the workers of a run, and compiles modules.
        run([*command, json.dumps(_event(data_set, "empty/"))], front.environment, roots)
        process = run([*command, event], front.environment, roots)
        # If the commit lacks the module, an installed version would be imported instead.
        if not process.result["handler"].startswith(os.path.realpath(roots[0]) + os.sep):
            raise IntegrityError(f"{candidate.name}: imported {process.result['handler']}")
    written = Records()
    outputs = front.bucket(OUTPUTS)
    for output in outputs.objects.filter(Prefix="out/"):
        written = written.plus(output.get()["Body"].read(), data_set)
    outputs.objects.delete()
    return Measurement(
        seconds=process.seconds,
        cpu_seconds=process.cpu_seconds,
        start_seconds=process.result["ready"] - process.started,
        peak_bytes=process.result["peak_bytes"],
        is_equal=written == records,
    )


def _event(data_set: DataSet, prefix: str) -> dict[str, object]:
    """Return the event that the state machine would pass for the objects below a prefix."""
    places = {
        "s3_source_uri": f"s3://{SOURCES}/{prefix}",
        "s3_destination_uri": f"s3://{OUTPUTS}/out/",
    }
    partition = {"path": "", "bucket": SOURCES, "prefix": prefix}
    return {"run_id": "bench", "settings": {**places, **data_set.settings}, "partition": partition}


def _heads(names: str) -> Sequence[str]:
    return (
        "Sources",
        *(f"{figures}: {names}" for figures in ("CPU ms/object", "Objects/s", "Peak MB")),
        "CPU (min to max)",
        "Objects/s (min to max)",
        "Records",
    )


def _cells(name: str, result: Result) -> Sequence[str]:
    """Return the cells of a set: medians, highest peaks, and ratios with their extremes."""
    count = result.data_set.objects
    groups = [*result.of_candidates.values()]
    cpu = [[1_000 * m.cpu_seconds / count for m in group] for group in groups]
    rates = [[count / m.seconds for m in group] for group in groups]
    return (
        f"{name}: {count:,} x {figure(result.source_bytes / count / 1_000)} KB",
        *(" / ".join(figure(median(values)) for values in figures) for figures in (cpu, rates)),
        " / ".join(figure(max(m.peak_bytes for m in group) / 1e6) for group in groups),
        *(ratios(*figures) if len(groups) > 1 else "" for figures in (cpu, rates)),
        "equal" if result.is_equal else "**differ**",
    )


def speeds(results: Sequence[Result], candidate: str) -> dict[str, WorkerSpeed]:
    """Return the speed of each kind whose two sets were measured."""
    points: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        count = result.data_set.objects
        rounds = result.of_candidates[candidate]
        seconds = median(m.seconds - m.start_seconds for m in rounds) / count
        points.setdefault(result.data_set.speed, []).append((result.source_bytes / count, seconds))
    solved = {}
    for kind, pair in points.items():
        if kind and len(pair) > 1:
            (small_bytes, small), (large_bytes, large) = sorted(pair)
            per_byte = max(0.0, (large - small) / (large_bytes - small_bytes))
            per_object = max(0.0, small - per_byte * small_bytes)
            solved[kind] = WorkerSpeed(math.ceil(per_object * 1e6), math.ceil(per_byte * 1e9))
    return solved
