"""What was seen of a table, time and again, and what was done to it in between (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

import msgspec

from compactor_tables.measures import TableMeasure

#: Of so many looks with a latency the rolling average is taken.
AVERAGED = 7
#: Of so many compactions the best that was seen after one is what a table is compared with.
COMPARED = 5
# So far back commits are counted by the hour of the day.
_HOURS_SECONDS = 7 * 86_400.0


class Maintained(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a receipt, or of several.

    Attributes:
        engine: that did it.
        status: of the receipt.
        runs: that are summed up here.
        partitions: that were rewritten.
        files, bytes: data files that were replaced, and their bytes.
        into, into_bytes: data files that replaced them.
        expired: snapshots or versions that went.
        deleted_files, deleted_bytes: files that went.
        seconds: in all.
        scan_seconds: of reading what was rewritten, as it was and as it is, where measured.
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
    """A table at one moment; or, of one that lies further back, on one day.

    Attributes:
        at: UNIX seconds; of several looks that of the last.
        run_id: of the run that looked.
        looks: how many are summed up here.
        files, bytes, delete_files, metadata_files, versions: as measured; None where the table was
            not, as after maintenance.
        hours: commits of the seven days before, by the hour of the day (UTC).
        latency: of what reads the table, on average since the look before, seconds; None where
            nothing read it.
        samples: over which that average was taken.
        source: whose latency, as a rule names it.
        due: why the table was due; empty where it was not.
        maintained: what was done to it; None for a look that only looked.
    """

    at: float
    run_id: str = ""
    looks: int = 1
    files: int | None = None
    bytes: int | None = None
    delete_files: int = 0
    metadata_files: int = 0
    versions: int = 0
    hours: tuple[int, ...] = ()
    latency: float | None = None
    samples: int = 0
    source: str = ""
    due: str = ""
    maintained: Maintained | None = None

    @property
    def is_compaction(self) -> bool:
        """Files were rewritten: from here on readers find another table."""
        return self.maintained is not None and self.maintained.files > 0

    @property
    def day(self) -> str:
        """The day of it (UTC)."""
        return datetime.fromtimestamp(self.at, UTC).date().isoformat()


@dataclass(frozen=True, slots=True)
class Average:
    """A rolling average of latencies.

    Attributes:
        seconds: weighted by samples.
        looks: that it is of.
        bytes: of the table at the last of these; None where unknown.
        at: UNIX seconds of that.
    """

    seconds: float
    looks: int
    bytes: int | None
    at: float


@dataclass(frozen=True, slots=True)
class Best:
    """The lowest average seen after a compaction.

    Attributes:
        seconds: of it.
        growth: how much more there is to read today; at least 1.
    """

    seconds: float
    growth: float

    @property
    def expected(self) -> float:
        """Seconds that the table of today would take, were it as it was then."""
        return self.seconds * self.growth


@dataclass(frozen=True, slots=True)
class History:
    """Looks at a table, in order of time."""

    looks: tuple[Look, ...] = ()

    def plus(self, look: Look) -> History:
        """With one more."""
        return History(in_order([*self.looks, look]))

    @property
    def last(self) -> Look | None:
        """The newest look; None where there is none."""
        return self.looks[-1] if self.looks else None

    @property
    def maintained(self) -> float | None:
        """When maintenance ended last, whatever it did, UNIX seconds; None for never."""
        return max((one.at for one in self.looks if one.maintained is not None), default=None)

    def averages(self, source: str) -> list[list[Average]]:
        """The rolling average at each look with a latency, before and after each compaction.

        Args:
            source: whose latency; others' cannot be compared with it.
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
        """The present average; None where no reader was seen since the last compaction."""
        current = self.averages(source)[-1]
        return current[-1] if current else None

    def best(self, source: str, growth: Callable[[int | None], float]) -> Best | None:
        """The lowest seen after one of the last compactions; None where there is none.

        Args:
            source: whose latency.
            growth: how much more there is to read today than when the table had so many bytes.
        """
        found = [
            Best(one.seconds, growth(one.bytes))
            for averages in self.averages(source)[1:][-COMPARED:]
            for one in averages
        ]
        return min(found, key=lambda one: one.expected, default=None)


def look_of(measure: TableMeasure, now: float, run_id: str = "", *, due: str = "") -> Look:
    """A look at a table as its metadata describes it.

    Args:
        measure: of the table.
        now: UNIX seconds.
        run_id: of the run that looks.
        due: why the table is due, where it is.
    """
    hours = [0] * 24
    for one in measure.commits:
        if now - _HOURS_SECONDS < one <= now:
            hours[datetime.fromtimestamp(one, UTC).hour] += 1
    return Look(
        at=now,
        run_id=run_id,
        files=measure.files,
        bytes=measure.bytes,
        delete_files=measure.delete_files,
        metadata_files=measure.metadata_files,
        versions=measure.versions,
        hours=tuple(hours) if any(hours) else (),
        due=due,
    )


def in_order(looks: Iterable[Look]) -> tuple[Look, ...]:
    """By time; of a run that looked twice, as a repeated call does, the later look counts."""
    found: dict[tuple[object, ...], Look] = {}
    for one in sorted(looks, key=lambda one: one.at):
        summed = one.looks > 1 or not one.run_id
        name = (one.at, len(found)) if summed else (one.run_id, one.maintained is None)
        found.pop(name, None)
        found[name] = one
    return tuple(found.values())


def by_day(looks: Sequence[Look]) -> list[Look]:
    """Looks of one day, one source and the time between two compactions as one."""
    found: list[Look] = []
    for _, group in groupby(looks, lambda one: (one.day, one.source, one.maintained is not None)):
        together = list(group)
        if together[0].maintained is None:
            found.append(_summed(together))
        else:
            found += _maintained_together(together)
    return found


def _maintained_together(looks: Sequence[Look]) -> list[Look]:
    """What rewrote files stays apart from what did not: averages restart there alone."""
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
    last = looks[-1]
    return Average(seconds / sum(weights), len(looks), last.bytes, last.at)
