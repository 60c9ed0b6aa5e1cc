"""What is queried: days of JSON events in objects of one size, and the right answers.

Or of somebody's own CloudTrail objects, multiplied: each copy has its records under other event
ids, and is else what it was.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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


class _Call(msgspec.Struct):
    eventID: str  # noqa: N815 - as CloudTrail has it
    eventSource: str  # noqa: N815 - as CloudTrail has it
    eventName: str  # noqa: N815 - as CloudTrail has it
    errorCode: str | None = None  # noqa: N815 - as CloudTrail has it


class _Trail(msgspec.Struct):
    Records: list[_Call]


_events = msgspec.json.Decoder(_Event)
_trail = msgspec.json.Decoder(_Trail)
TRAILS = "cloudtrail"
_TRAIL_OBJECTS = "*.json.gz"
_TRAIL_ID = re.compile(rb'("eventID"\s*:\s*")[0-9a-f]{8}')


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Objects over some days.

    Attributes:
        name: as ``--sets`` takes it, and part of its keys.
        objects: how many, in all.
        rows: records of one.
        compressed: objects are gzip.
        files: CloudTrail objects, of which its objects are copies; empty for events.
    """

    name: str
    objects: int
    rows: int
    compressed: bool = True
    files: Sequence[Path] = ()

    @property
    def trails(self) -> bool:
        """True for CloudTrail: sources are documents, outputs lines of their records."""
        return bool(self.files)

    @property
    def options(self) -> Mapping[str, str]:
        """What every run over it is given besides."""
        return {"--documents": "lines"} if self.trails else {}

    @property
    def data(self) -> DataSet:
        """What renders its objects."""
        return DataSet(self.name, self.name, self.objects, self.rows, gzip=self.compressed)

    @property
    def extension(self) -> str:
        """The end of its keys."""
        return self.data.extension


@dataclass(frozen=True, slots=True)
class _Seen:
    """What queries ask of one record."""

    event_id: str
    service: str
    level: str
    size: int


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
        events = (
            _Seen(one.event_id, one.service, one.level, one.http.bytes)
            for one in _events.decode_lines(plain)
        )
        self._count(list(events), day, has_needle=has_needle)

    def add_trail(self, size: int, plain: bytes, day: int, *, has_needle: bool) -> None:
        """Count the records of one CloudTrail document.

        Raises:
            msgspec.DecodeError: it is none.
        """
        self.objects += 1
        self.stored_bytes += size
        calls = (
            _Seen(
                one.eventID,
                one.eventSource,
                "none" if one.errorCode is None else "ERROR",
                len(one.eventName),
            )
            for one in _trail.decode(plain).Records
        )
        self._count(list(calls), day, has_needle=has_needle)

    def _count(self, found: Sequence[_Seen], day: int, *, has_needle: bool) -> None:
        self.records += len(found)
        for one in found:
            counted = self.services.setdefault(one.service, Counter())
            counted["records"] += 1
            counted["errors"] += one.level == "ERROR"
            counted["bytes"] += one.size
        if day == ASKED_DAY:
            self.day[0] += len(found)
            self.day[1] += sum(one.size for one in found)
        if has_needle and found:
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


def chosen(names: str, trails: QuerySet | None = None) -> list[QuerySet]:
    """The sets that a comma-separated list names.

    Args:
        names: the list.
        trails: somebody's own CloudTrail objects, where they were given.

    Raises:
        InvalidInput: one is unknown, or wants objects that were not given.
    """
    wanted = [name for name in names.split(",") if name]
    known = dict(SETS) if trails is None else {**SETS, TRAILS: trails}
    for name in wanted:
        if name == TRAILS and trails is None:
            raise InvalidInput("--sets", name, "--source DIR beside it, with CloudTrail objects")
        if name not in known:
            raise InvalidInput("--sets", name, f"some of {', '.join([*SETS, TRAILS])}")
    return [known[name] for name in wanted]


def trails_of(source: Path, objects: int) -> QuerySet:
    """CloudTrail objects of a directory, so often that there are so many.

    Raises:
        InvalidInput: there are none below it, one of them is no CloudTrail document, or too few
            are wanted.
    """
    files = sorted(source.rglob(_TRAIL_OBJECTS))
    if not files:
        accepted = f"a directory with CloudTrail objects below it, {_TRAIL_OBJECTS}"
        raise InvalidInput("--source", str(source), accepted)
    if objects < DAYS:
        raise InvalidInput("--objects", objects, f"{DAYS} or more: one a day")
    for file in files:
        try:
            _trail.decode(zlib.decompress(file.read_bytes(), _GZIP))
        except (OSError, zlib.error, msgspec.DecodeError) as error:
            accepted = f"CloudTrail documents alone, of one gzip member each ({error})"
            raise InvalidInput("--source", str(file), accepted) from None
    return QuerySet(TRAILS, objects, 0, files=tuple(files))


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
    counted = answers.add_trail if given.trails else answers.add
    for index, (name, body) in enumerate(_copies(given) if given.trails else _rendered(given)):
        plain = zlib.decompress(body, _GZIP) if given.compressed else body
        day = index * DAYS // given.objects
        counted(len(body), plain, day, has_needle=index == given.objects // 2)
        key = f"{given.name}/{day_path(day)}{name}"
        yield SeedObject(key, body, now - _AGE_SECONDS)


def _rendered(given: QuerySet) -> Iterator[tuple[str, bytes]]:
    for one in objects(given.data):
        yield one.name, one.body


def _copies(given: QuerySet) -> Iterator[tuple[str, bytes]]:
    """The files themselves, then the same with other event ids, and again."""
    for index in range(given.objects):
        copy, number = divmod(index, len(given.files))
        body = given.files[number].read_bytes()
        if copy:
            plain = zlib.decompress(body, _GZIP)
            body = zlib.compress(_TRAIL_ID.sub(rb"\g<1>%08x" % copy, plain), wbits=_GZIP)
        yield f"{index:06d}{given.extension}", body
