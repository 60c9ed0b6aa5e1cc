"""Looks at a table over time, and the maintenance in between. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

import msgspec

from compactor_tables.measures import TableMeasure

#: Number of looks with a latency in a rolling average.
AVERAGED = 7
#: Number of recent compactions among which the best average is the standard of comparison.
COMPARED = 5


class Maintained(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one or several receipts.

    Attributes:
        engine: that did the work.
        status: of the receipt.
        runs: number of runs that are summed up.
        partitions: number of rewritten partitions.
        files, bytes: data files that were replaced, and their bytes.
        into, into_bytes: data files that replaced them, and their bytes.
        expired: number of snapshots or versions that expired.
        deleted_files, deleted_bytes: files that were deleted, and their bytes.
        seconds: in all.
        scan_seconds: time to read the rewritten files before and after; None where not measured.
    """

    engine: str
    status: str
    runs: int = 1
    partitions: int = 0
    files: int = 0
    bytes: int = 0
    into: int = 0
    into_bytes: int = 0
    expired: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0
    seconds: float = 0.0
    scan_seconds: tuple[float | None, float | None] = (None, None)


class Look(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A table at one moment, or the sum of older looks of one day.

    Attributes:
        at: UNIX seconds; for a sum, the time of its last look.
        run_id: of the run that looked.
        looks: number of looks that are summed up.
        files, bytes, delete_files, metadata_files, versions: as measured; ``files`` and ``bytes``
            are None if the table was not measured, as after maintenance.
        latency: average run time of the table's readers since the previous look, seconds; None if
            there were no reads.
        samples: number of run times in that average.
        source: of the latency, as a rule names it.
        due: why the table was due; empty if it was not.
        maintained: the work done to the table; None for a look that only measured.
    """

    at: float
    run_id: str = ""
    looks: int = 1
    files: int | None = None
    bytes: int | None = None
    delete_files: int = 0
    metadata_files: int = 0
    versions: int = 0
    latency: float | None = None
    samples: int = 0
    source: str = ""
    due: str = ""
    maintained: Maintained | None = None

    @property
    def is_compaction(self) -> bool:
        """Whether files were rewritten. Latencies before and after are not comparable."""
        return self.maintained is not None and self.maintained.files > 0

    @property
    def day(self) -> str:
        """The date (UTC)."""
        return datetime.fromtimestamp(self.at, UTC).date().isoformat()


@dataclass(frozen=True, slots=True)
class Average:
    """A rolling average of latencies.

    Attributes:
        seconds: weighted by samples.
        looks: number of looks in it.
        bytes: size of the table at the last of these; None if unknown.
    """

    seconds: float
    looks: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Best:
    """The lowest average seen after a compaction.

    Attributes:
        seconds: that average.
        growth: factor by which a read of today's table takes longer; at least 1.
    """

    seconds: float
    growth: float

    @property
    def expected(self) -> float:
        """The best average scaled to the size of today's table, in seconds."""
        return self.seconds * self.growth


@dataclass(frozen=True, slots=True)
class History:
    """The looks at a table, in order of time."""

    looks: tuple[Look, ...] = ()

    def plus(self, look: Look) -> History:
        """Return the history with one more look."""
        return History(in_order([*self.looks, look]))

    @property
    def last(self) -> Look | None:
        """The newest look, or None."""
        return self.looks[-1] if self.looks else None

    @property
    def maintained(self) -> float | None:
        """When maintenance of any kind last ended, UNIX seconds; None for never."""
        return max((one.at for one in self.looks if one.maintained is not None), default=None)

    def averages(self, source: str) -> list[list[Average]]:
        """Return the rolling average at each look with a latency, in one list per compaction.

        The first list is for the time before the first compaction.

        Args:
            source: of the latency. Looks with another source are not comparable, and are skipped.
        """
        found: list[list[Average]] = [[]]
        window: list[Look] = []
        for one in self.looks:
            if one.is_compaction:
                found.append([])
                window.clear()
            elif one.latency is not None and one.source == source:
                window = [*window[1 - AVERAGED :], one]
                found[-1].append(_average(window))
        return found

    def average(self, source: str) -> Average | None:
        """Return the current average; None if there was no read since the last compaction."""
        current = self.averages(source)[-1]
        return current[-1] if current else None

    def best(self, source: str, growth: Callable[[int | None], float]) -> Best | None:
        """Return the lowest average after one of the last compactions, or None.

        Args:
            source: of the latency.
            growth: returns the factor by which a read of today's table takes longer than one of
                the table when it had the given bytes.
        """
        found = [
            Best(one.seconds, growth(one.bytes))
            for averages in self.averages(source)[1:][-COMPARED:]
            for one in averages
        ]
        return min(found, key=lambda one: one.expected, default=None)


def look_of(measure: TableMeasure, now: float, run_id: str = "", *, due: str = "") -> Look:
    """Return a look at a table by its metadata.

    Args:
        measure: of the table.
        now: UNIX seconds.
        run_id: of the run that looks.
        due: why the table is due; empty if it is not.
    """
    return Look(
        at=now,
        run_id=run_id,
        files=measure.files,
        bytes=measure.bytes,
        delete_files=measure.delete_files,
        metadata_files=measure.metadata_files,
        versions=measure.versions,
        due=due,
    )


def in_order(looks: Iterable[Look]) -> tuple[Look, ...]:
    """Order looks by time. Of two looks of one run, as by a repeated call, the later one counts."""
    found: dict[tuple[object, ...], Look] = {}
    for one in sorted(looks, key=lambda one: one.at):
        summed = one.looks > 1 or not one.run_id
        name = (one.at, len(found)) if summed else (one.run_id, one.maintained is None)
        found.pop(name, None)
        found[name] = one
    return tuple(found.values())


def by_day(looks: Sequence[Look]) -> list[Look]:
    """Sum up the looks of each day, by source, and separately before and after maintenance."""
    found: list[Look] = []
    for _, group in groupby(looks, lambda one: (one.day, one.source, one.maintained is not None)):
        together = list(group)
        if together[0].maintained is None:
            found.append(_summed(together))
        else:
            found += _maintained_together(together)
    return found


def _maintained_together(looks: Sequence[Look]) -> list[Look]:
    """Sum up maintenance, but keep rewrites separate, because averages restart only there."""
    return [_summed(list(group)) for _, group in groupby(looks, lambda one: one.is_compaction)]


def _summed(looks: Sequence[Look]) -> Look:
    last = looks[-1]
    if len(looks) == 1:
        return last
    average = _average([one for one in looks if one.latency is not None] or [last])
    return msgspec.structs.replace(
        last,
        looks=sum(one.looks for one in looks),
        latency=average.seconds if any(one.latency is not None for one in looks) else None,
        samples=sum(one.samples for one in looks),
        due=next((one.due for one in reversed(looks) if one.due), ""),
        maintained=_work_of([one.maintained for one in looks if one.maintained is not None]),
    )


def _work_of(done: Sequence[Maintained]) -> Maintained | None:
    if not done:
        return None
    names = ("runs", "partitions", "files", "bytes", "into", "into_bytes", "expired")
    sums = {name: sum(getattr(one, name) for one in done) for name in names}
    return msgspec.structs.replace(
        done[-1],
        **sums,
        deleted_files=sum(one.deleted_files for one in done),
        deleted_bytes=sum(one.deleted_bytes for one in done),
        seconds=sum(one.seconds for one in done),
        scan_seconds=(done[0].scan_seconds[0], done[-1].scan_seconds[1]),
    )


def _average(looks: Sequence[Look]) -> Average:
    weights = [max(one.samples, 1) for one in looks]
    seconds = sum((one.latency or 0.0) * weight for one, weight in zip(looks, weights, strict=True))
    return Average(seconds / sum(weights), len(looks), looks[-1].bytes)
