"""What is queried: days of JSON events in objects of one size, and the right answers."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from compactor.errors import InvalidInput
from compactor_cli.local.embedded import SeedObject
from compactor_dev.benchmark.datasets import DataSet, objects

DAYS = 5
#: The one that the query ``day`` is about.
ASKED_DAY = 2
# Sources that have settled.
_AGE_SECONDS = 30 * 86_400
_GZIP = 31  # zlib's wbits of a gzip container


class _Http(msgspec.Struct):
    bytes: int


class _Event(msgspec.Struct):
    event_id: str
    level: str
    service: str
    http: _Http


_events = msgspec.json.Decoder(_Event)


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Objects over some days.

    Attributes:
        name: as ``--sets`` takes it, and part of its keys.
        objects: how many, in all.
        rows: records of one.
        compressed: objects are gzip.
    """

    name: str
    objects: int
    rows: int
    compressed: bool = True

    @property
    def data(self) -> DataSet:
        """What renders its objects."""
        return DataSet(self.name, self.name, self.objects, self.rows, gzip=self.compressed)

    @property
    def extension(self) -> str:
        """The end of its keys."""
        return self.data.extension


@dataclass(slots=True)
class Answers:
    """What each query must answer, counted while the objects were made.

    Attributes:
        objects: in all.
        stored_bytes: of them, as stored.
        records: in all.
        day: records of the day that is asked for, and the sum of their bytes.
        services: records, errors and bytes of each service.
        needle: event id, service and level of one record in the middle.
    """

    objects: int = 0
    stored_bytes: int = 0
    records: int = 0
    day: list[int] = field(default_factory=lambda: [0, 0])
    services: dict[str, Counter[str]] = field(default_factory=dict)
    needle: tuple[str, str, str] = ("", "", "")

    def add(self, size: int, plain: bytes, day: int, *, has_needle: bool) -> None:
        """Count the records of one object."""
        self.objects += 1
        self.stored_bytes += size
        found = _events.decode_lines(plain)
        self.records += len(found)
        for event in found:
            counted = self.services.setdefault(event.service, Counter())
            counted["records"] += 1
            counted["errors"] += event.level == "ERROR"
            counted["bytes"] += event.http.bytes
        if day == ASKED_DAY:
            self.day[0] += len(found)
            self.day[1] += sum(event.http.bytes for event in found)
        if has_needle:
            last = found[-1]
            self.needle = (last.event_id, last.service, last.level)

    def of(self, query: str) -> list[list[Any]]:
        """The rows of one query."""
        if query == "count":
            return [[self.records]]
        if query == "day":
            return [list(self.day)]
        if query == "needle":
            return [list(self.needle)]
        return [
            [name, counted["records"], counted["errors"], counted["bytes"]]
            for name, counted in sorted(self.services.items())
        ]


QUERIES = ("count", "day", "group", "needle")
#: Stored sizes: 36 events are some 3 KB of gzip, 2,070 some 120 KB, the shape of AWS's own test.
SETS: Mapping[str, QuerySet] = {
    one.name: one
    for one in (
        QuerySet("2k-3kb", 2_000, 36),
        QuerySet("20k-3kb", 20_000, 36),
        QuerySet("2k-120kb", 2_000, 2_070),
        QuerySet("1k-120kb", 1_000, 2_070),
        QuerySet("500-120kb", 500, 2_070),
    )
}


def chosen(names: str) -> list[QuerySet]:
    """The sets that a comma-separated list names.

    Raises:
        InvalidInput: one is unknown.
    """
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in SETS:
            raise InvalidInput("--sets", name, f"some of {', '.join(SETS)}")
    return [SETS[name] for name in wanted]


def day_value(day: int) -> str:
    """A day as its partition has it."""
    return f"2026-01-{day + 1:02d}"


def day_path(day: int) -> str:
    """Where a day's objects lie below a root."""
    return f"dt={day_value(day)}/"


def seeded(given: QuerySet, answers: Answers, now: float) -> Iterator[SeedObject]:
    """The objects of a set, day after day, counted as they pass.

    Args:
        given: the set.
        answers: are complete after the last object.
        now: UNIX seconds.
    """
    for index, one in enumerate(objects(given.data)):
        plain = zlib.decompress(one.body, _GZIP) if given.compressed else one.body
        day = index * DAYS // given.objects
        answers.add(len(one.body), plain, day, has_needle=index == given.objects // 2)
        key = f"{given.name}/{day_path(day)}{one.name}"
        yield SeedObject(key, one.body, now - _AGE_SECONDS)
