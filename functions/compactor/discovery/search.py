"""Finds the prefixes that are partitions, by listing level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from compactor.discovery.location_checks import blaming
from compactor.discovery.parallel import Parallel
from compactor.model import SHOWN_EXAMPLES, Partition, Skipped, SourceObject
from compactor.planning.surroundings import Level, Surroundings
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.windows import expand, matches


def dates_of(settings: Settings, now: float) -> tuple[str, ...] | None:
    """Return the date prefixes of a run's window; None if partitions are defined by depth."""
    window = settings.window_at(now)
    if window is None or settings.date_format is None:
        return None
    return expand(settings.date_format, *window)


def partition_below(settings: Settings, prefix: str) -> Partition:
    """Return the partition with this source prefix."""
    root = settings.source.root
    return Partition(root.bucket, prefix, prefix.removeprefix(root.prefix))


class Search:
    """Finds the prefixes that are partitions, level by level.

    Args:
        settings: settings of the run.
        store: where the source is.
        parallel: lists several levels concurrently.
        around: given each listed level, to recognize roots of tables.
        require_time: called before each level; raises an error if there is no time for it.

    Attributes:
        unpartitioned: objects above the depth of the partitions.
    """

    def __init__(
        self,
        settings: Settings,
        store: ObjectStore,
        parallel: Parallel,
        around: Surroundings | None = None,
        require_time: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._around = around
        self._require_time = require_time
        self._store = store
        self._parallel = parallel
        self._source = settings.source
        self.unpartitioned = Skipped(0, 0)

    def partitions(self, dates: tuple[str, ...] | None) -> Iterator[Partition]:
        """Yield the partitions that the source's wildcards and the dates, or the depth, define.

        Each of them has an object.
        """
        parents = self.parents()
        prefixes: Iterable[str]
        if dates is None:
            prefixes = self._below(parents)
            if not self._is_last_listed:
                prefixes = self._existing(list(prefixes))
        elif len(dates) > dates[0].count("/"):
            prefixes = self._dated(parents, dates)
        else:
            # Fewer LISTs than one for each level.
            prefixes = self._existing([parent + date for parent in parents for date in dates])
        return (partition_below(self._settings, prefix) for prefix in prefixes)

    @property
    def _is_last_listed(self) -> bool:
        """True if the last level of a partition that depth defines was found by a listing."""
        pattern = self._source.pattern
        return self._settings.depth > 0 or (bool(pattern) and "*" in pattern[-1])

    def parents(self) -> list[str]:
        """Return the prefixes that the source's wildcards match."""
        parents = [self._source.root.prefix]
        for segment in self._source.pattern:
            if "*" in segment:
                matching = partial(self._matching, segment)
                parents = [p for found in self._parallel.in_order(matching, parents) for p in found]
            else:
                parents = [f"{parent}{segment}/" for parent in parents]
        return parents

    def _below(self, parents: list[str]) -> list[str]:
        """Return the prefixes ``depth`` levels below, and count the objects above that depth."""
        for _ in range(self._settings.depth):
            below: list[str] = []
            for prefixes, skipped in self._parallel.in_order(self._level, parents):
                below.extend(prefixes)
                self.unpartitioned = self.unpartitioned.plus(skipped, SHOWN_EXAMPLES)
            parents = below
        return parents

    def _dated(self, parents: list[str], dates: tuple[str, ...]) -> list[str]:
        """Return the prefixes that exist, of each parent in the order of the dates."""
        order = {date: number for number, date in enumerate(dates)}
        starts = [(parent, "") for parent in parents]
        for depth in range(1, dates[0].count("/") + 1):
            begun_dates = {
                "".join(f"{segment}/" for segment in date.split("/")[:depth]) for date in dates
            }
            levels = self._parallel.in_order(
                self._level, [parent + date for parent, date in starts]
            )
            starts = [
                (parent, date)
                for (parent, _), (prefixes, _) in zip(starts, levels, strict=True)
                for prefix in prefixes
                if (date := prefix[len(parent) :]) in begun_dates
            ]
        place = {parent: number for number, parent in enumerate(parents)}
        starts.sort(key=lambda start: (place[start[0]], order[start[1]]))
        return [parent + date for parent, date in starts]

    def _existing(self, prefixes: list[str]) -> list[str]:
        """Return the prefixes below which there is an object."""
        there = self._parallel.in_order(self._has_object, prefixes)
        return [prefix for prefix, has in zip(prefixes, there, strict=True) if has]

    def _has_object(self, prefix: str) -> bool:
        self._require_time()
        with blaming("s3_source_uri", self._settings):
            pages = self._store.list_objects(self._source.root.bucket, prefix)
            return any(map(len, pages))

    def _matching(self, segment: str, parent: str) -> list[str]:
        prefixes, _ = self._level(parent)
        return [p for p in prefixes if matches(segment, p[len(parent) : -1])]

    def _level(self, parent: str) -> tuple[list[str], Skipped]:
        prefixes: list[str] = []
        skipped = Skipped(0, 0)
        level = Level(parent)
        with blaming("s3_source_uri", self._settings):
            for page in self._store.list_level(self._source.root.bucket, parent):
                self._require_time()
                level.take(page)
                prefixes.extend(page.prefixes)
                skipped = skipped.plus(skipped_of(page.objects), SHOWN_EXAMPLES)
        if self._around is not None:
            self._around.learn(level)
        return prefixes, skipped


def skipped_of(objects: Iterable[SourceObject]) -> Skipped:
    """Return the sum of objects that are left alone, without directory markers."""
    # Consoles create an empty object named like a prefix to show a directory. It is not data.
    data = [source for source in objects if source.size or not source.key.endswith("/")]
    examples = tuple(source.key for source in data[:SHOWN_EXAMPLES])
    return Skipped(len(data), sum(source.size for source in data), examples)
