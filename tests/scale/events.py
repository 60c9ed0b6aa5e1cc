"""How many objects a process registers, lists and marks in a second, against DynamoDB Local.

    python -m tests.scale.events --objects 20000

The table works on the same processors, so that seconds are no better than here; the CPU time is
that of this process alone, which is what a Lambda function pays.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from compactor.model import Partition
from compactor.registry.items import ItemState, Mark
from compactor.registry.registering import register
from compactor.registry.starting import waiting_in
from compactor.registry.streams import parse_streams
from tests.support.dynamodb import registry_on
from tests.support.event_world import AT_ONCE, URIS
from tests.support.real_servers import dynamodb_local
from tests.support.s3_events import notification

_BATCH = 1_000
_NOW = 1_700_000_000.0
_T = TypeVar("_T")


@dataclass(frozen=True)
class Figure:
    """One line.

    Attributes:
        seconds: on the wall; ``cpu`` are those of this process.
    """

    what: str
    objects: int
    seconds: float
    cpu: float

    @property
    def line(self) -> str:
        per_second = self.objects / self.seconds
        micro = self.cpu / self.objects * 1e6
        return f"| {self.what} | {self.objects:,} | {per_second:,.0f} | {micro:,.0f} |"


def measured(what: str, objects: int, work: Callable[[], _T]) -> tuple[Figure, _T]:
    """What it took."""
    began, cpu = time.monotonic(), time.process_time()
    found = work()
    return Figure(what, objects, time.monotonic() - began, time.process_time() - cpu), found


def batches(bodies: list[str]) -> Iterator[list[tuple[str, str]]]:
    """As SQS hands them to a function."""
    every = iter(bodies)
    while batch := list(islice(every, _BATCH)):
        yield [(str(number), body) for number, body in enumerate(batch)]


def figures(url: str, objects: int) -> list[Figure]:
    """Register, register again, count, list and mark."""
    registry = registry_on(url)
    streams = parse_streams(
        json.dumps([{"name": "logs", "input": {**URIS, "depth": 1, **AT_ONCE}}]), "pending"
    )
    bodies = [
        notification(f"logs/{n % 4}/{n:08}.json.gz", sequencer=f"{n:016X}", time=_NOW)
        for n in range(objects)
    ]

    def deliver() -> int:
        done = [register(one, streams, registry, _NOW) for one in batches(bodies)]
        return sum(one.new for one in done)

    def mark() -> int:
        count = 0
        for path in "0123":
            partition = Partition("source", f"logs/{path}/", f"{path}/")
            items = list(registry.pending("logs", partition))
            marks = [Mark(one, ItemState.COMPACTED) for one in items]
            count += registry.mark("logs", marks, _NOW)
        return count

    first, new = measured("registered", objects, deliver)
    again, known = measured("registered a second time", objects, deliver)
    counted, waiting = measured(
        "counted by a sweep", objects, lambda: waiting_in(streams[0], registry, 0.0, _NOW + 1)
    )
    marked, done = measured("listed and marked, by transactions", objects, mark)
    if (new, known, waiting.objects, done) != (objects, 0, objects, objects):
        raise AssertionError((new, known, waiting, done))
    return [first, again, counted, marked]


def main() -> int:
    """Measure, tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.scale.events", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--objects", type=int, default=20_000)
    args = parser.parse_args()
    with dynamodb_local() as url:
        figures(url, 500)
        for one in figures(url, args.objects):
            sys.stdout.write(one.line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
