"""A worker compared with plain loops, or with another version: ``make bench ARGS="worker …"``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from compactor.errors import IntegrityError, InvalidInput
from compactor_cli.console import print_error, print_line, print_table
from compactor_dev import REPOSITORY
from compactor_dev.bench import either
from compactor_dev.bench.datasets import SETS, DataSet, Records, objects, of_output
from compactor_dev.bench.measure import chosen, in_turn, run, write_between
from compactor_dev.bench.server import AGE_SECONDS, Front, Lane, clear, environment, front, listed
from compactor_dev.bench.speeds import PAIRS, solve, write_speeds
from compactor_dev.bench.worker_results import (
    HEADS,
    LOOP,
    PROVING,
    TITLES,
    WORKER,
    Measurement,
    Results,
    notes,
    page,
    rows,
)
from compactor_local.embedded import SeedObject, embedded_s3

SOURCES, OUTPUTS = "bench-source", "bench-output"
# So slow that it gets only the first objects; figures are scaled.
_SAMPLES = {"naive": 300}
_QUICK_OBJECTS = 2_000
_PAGE = REPOSITORY / "docs" / "performance.md"
_SPEEDS = REPOSITORY / "functions" / "compactor" / "discovery" / "speed.py"


def options(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated (%(default)s)")
    parser.add_argument("--candidates", default=",".join(TITLES), help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--latency-ms", type=float, default=25.0, help="(%(default)s)")
    parser.add_argument("--tls", action="store_true", help="over TLS as well")
    parser.add_argument("--settings", type=json.loads, default={}, help="of the runs, as JSON")
    parser.add_argument(
        "--against", metavar="COMMIT", help="compare the worker of this commit with the present one"
    )
    parser.add_argument(
        "--objects", type=int, default=sys.maxsize, help="maximum number of objects per set"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="rewrite the tables in docs/performance.md and of speeds",
    )


def main(args: argparse.Namespace, directory: Path) -> int:
    """Measure; returns 1 if an output does not contain exactly the records of its sources.

    Raises:
        CompactorError: an option is wrong, or a server or a candidate failed.
    """
    sets = [one.reduced(args.objects) for one in chosen("--sets", args.sets, SETS)]
    chosen("--candidates", args.candidates, TITLES)
    if args.write and (args.against or args.settings or args.objects < sys.maxsize):
        raise InvalidInput("--write", "it", "whole sets, without --against and --settings")
    kept = directory.parent / "bench.json"
    known = _load(kept)
    with _trees(args.against) as trees:
        names = [*trees] if args.against else args.candidates.split(",")
        measured = {}
        for one in sets:
            able = [name for name in names if _is_able(name, one)]
            measured[one.name] = _measured(one, able, trees, args, directory)
            _show(one, measured[one.name], base=names[0] if args.against else LOOP)
            if args.write:
                known[one.name] = measured[one.name]
                kept.write_text(json.dumps(known, default=asdict), encoding="utf-8")
    if args.write:
        _write(known)
    differing = {
        f"{one.candidate} on {name}"
        for name, found in measured.items()
        for one in found
        if not one.equal
    }
    for text in sorted(differing):
        print_error(f"bench: the records in the output differ: {text}")
    return int(bool(differing))


def _is_able(candidate: str, data_set: DataSet) -> bool:
    """Return whether a candidate can process a set: no loop makes rows, and one proves JSON."""
    if candidate not in TITLES or candidate == WORKER:
        return True
    return not data_set.to_rows and (candidate != PROVING or data_set.is_json)


def _load(file: Path) -> Results:
    if not file.is_file():
        return {}
    document = json.loads(file.read_text(encoding="utf-8"))
    return {name: [Measurement(**one) for one in found] for name, found in document.items()}


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
        said = " ".join(done.stderr.split())[-200:]
        raise InvalidInput("--against", words[-1], f"a commit of this repository ({said})")
    return done.stdout.strip()


def _measured(
    data_set: DataSet,
    names: Sequence[str],
    trees: Mapping[str, Path],
    args: argparse.Namespace,
    directory: Path,
) -> list[Measurement]:
    directory.mkdir(parents=True, exist_ok=True)
    found = []
    with (directory / "embedded.log").open("wb") as log, embedded_s3(log) as embedded:
        samples = {_SAMPLES.get(name, sys.maxsize) for name in names}
        stored = {
            size: _Stored(f"{data_set.name}/{min(size, data_set.objects)}/") for size in samples
        }
        embedded.seed(SOURCES, _seeded(data_set, stored))
        embedded.create_bucket(OUTPUTS)
        with front(embedded, directory, [SOURCES], args.latency_ms) as running:
            bench = _Bench(running, embedded, data_set, trees, args.settings, directory)
            lanes = [running.plain, *([running.over_tls] if args.tls else [])]
            for number in range(1, args.rounds + 1):
                for lane in lanes:
                    for name in in_turn(names, number):
                        print_error(f"{data_set.title}: {name}, {lane.name}, round {number}")
                        sources = stored[_SAMPLES.get(name, sys.maxsize)]
                        found.append(bench.measurement(name, lane, number, sources))
    return found


@dataclass(slots=True)
class _Stored:
    """The first objects of a set, below a prefix."""

    prefix: str
    objects: int = 0
    bytes: int = 0
    records: Records = field(default_factory=Records)


def _seeded(data_set: DataSet, stored: Mapping[int, _Stored]) -> Iterator[SeedObject]:
    modified = time.time() - AGE_SECONDS
    for index, one in enumerate(objects(data_set)):
        for size, sources in stored.items():
            if index < size:
                sources.objects += 1
                sources.bytes += len(one.body)
                sources.records += one.records
                yield SeedObject(sources.prefix + one.name, one.body, modified)


@dataclass(frozen=True, slots=True)
class _Bench:
    """Runs candidates sequentially against a seeded server."""

    running: Front
    embedded: Any
    data_set: DataSet
    trees: Mapping[str, Path]
    settings: Mapping[str, Any]
    directory: Path

    def measurement(self, name: str, lane: Lane, number: int, sources: _Stored) -> Measurement:
        """Run a candidate once, check its outputs, and delete them."""
        scratch, answer = self.directory / "scratch", self.directory / "answer.json"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        task = {
            "endpoint_url": self.running.endpoints[lane],
            "source_bucket": SOURCES,
            "source_prefix": sources.prefix,
            "bucket": OUTPUTS,
            "prefix": "out/",
            "extension": self.data_set.extension,
            "scratch": str(scratch),
            "settings": {**self.data_set.settings, **self.settings},
            "answer": str(answer),
        }
        lead = self.running.environment(self.embedded, lane)
        command = [sys.executable, "-m", "compactor_dev.bench.loops", name, json.dumps(task)]
        second_run: Mapping[str, int] = {}
        log = self.directory / f"{name}.log"
        if name in self.trees:
            # -P: modules in the script's directory could shadow others.
            command = [sys.executable, "-P", either.__file__, json.dumps(task)]
            run([*command, either.ASK], lead, log)
            lead = environment(lead, [str(self.trees[name])])
        taken = run(command, lead, log)
        result = json.loads(answer.read_bytes())
        if name in self.trees:
            self._require_own(name, result.pop("handler"))
            del result["requests"]
            # Over unchanged data: it must find nothing to do.
            run(command, lead, log)
            second_run = json.loads(answer.read_bytes())["requests"]
        client = self.embedded.client("s3")
        left, bytes_out = Records(), 0
        for key, size in listed(client, OUTPUTS, "out/"):
            body = client.get_object(Bucket=OUTPUTS, Key=key)["Body"].read()
            left, bytes_out = left + of_output(body, self.data_set.kind), bytes_out + size
        clear(client, OUTPUTS)
        return Measurement(
            candidate=name,
            lane=lane.name,
            round=number,
            objects=sources.objects,
            of_objects=self.data_set.objects,
            bytes_in=sources.bytes,
            bytes_out=bytes_out,
            equal=left == sources.records,
            second_run=second_run,
            **asdict(taken),
            **result,
        )

    def _require_own(self, name: str, handler: str) -> None:
        # If the commit lacks the module, an installed version would be imported instead.
        if not handler.startswith(os.path.realpath(self.trees[name]) + os.sep):
            raise IntegrityError(f"the worker of {name} was imported from {handler}")


def _show(data_set: DataSet, found: Sequence[Measurement], base: str) -> None:
    heads = [head.replace("loop", base) for head in HEADS]
    plain = [[cell.replace("**", "") for cell in row] for row in rows(found, base)]
    print_table(data_set.title, heads, plain, texts=(0, 1))
    print_line(notes(found))


def _write(known: Results) -> None:
    if write_between(_PAGE, "<!-- bench -->", "<!-- /bench -->", f"\n{page(known)}\n"):
        print_line("docs/performance.md: rewrote the table between its markers")
    speeds = solve(known)
    if set(speeds) == set(PAIRS) and write_speeds(_SPEEDS, speeds):
        print_line("discovery/speed.py: rewrote its measured table")
