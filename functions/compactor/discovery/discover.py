"""Discover: find the partitions of a run and count what is in them. Reads only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from compactor.discovery.fleet import Fleet
from compactor.discovery.places import (
    NamedLevels,
    check_places,
    in_named_levels,
    refuse_named_levels,
)
from compactor.discovery.speed import speed_for
from compactor.discovery.work import (
    Discovery,
    WorkItem,
    WorkLists,
    blaming,
    to_items_json,
    write_work,
)
from compactor.model import SHOWN_EXAMPLES, Partition, Skipped, SourceObject
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.windows import expand, matches

__all__ = [
    "Committed",
    "Discovery",
    "WorkItem",
    "WorkLists",
    "discover",
    "to_items_json",
    "write_work",
]

#: Gives the identities of the sources that a partition's commits name.
Committed = Callable[[Partition], Container[bytes]]

MAX_KEY_BYTES = 1024
# What follows a partition's path: at most the name of an output, 100 of stem, 33 of group id and
# 34 of extension.
LONGEST_NAME = 170
# Enough submitted tasks to keep every thread busy, few enough to keep a long window small.
_AHEAD_PER_WORKER = 4

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def discover(
    settings: Settings,
    store: ObjectStore,
    now: float,
    *,
    committed: Committed,
    fleet: Fleet | None = None,
    workers: int = 16,
) -> Discovery:
    """Find every partition that holds an object, in order of parents and dates.

    Args:
        settings: what the run shall do.
        store: where the objects are; called from several threads at once.
        now: UNIX seconds; decides which days a window before today has.
        committed: consulted only for partitions that hold more than one worker may take;
            called from several threads at once.
        fleet: the workers that the partitions are for; those that were measured by default.
        workers: threads, each with one request at a time.

    Raises:
        InvalidInput: a bucket does not exist or may not be read, the window is empty, or the
            destination was made of other partitions; or the source is what a run wrote, or the
            state lies in another one.
        IntegrityError: the log of what is in the destination is gone, or elsewhere.
    """
    dates = _dates(settings, now)
    check_places(settings, store)
    count = _Count(settings, store, committed, fleet or Fleet())
    with _Parallel(workers) as parallel:
        search = _Search(settings, store, parallel)
        counted = [c for c in parallel.in_order(count, search.partitions(dates)) if c is not None]
    refuse_named_levels(settings, [c.lost for c in counted], sum(c.item.objects for c in counted))
    return Discovery(
        items=tuple(c.item for c in counted if not c.oversized),
        oversized=tuple(c.item for c in counted if c.oversized),
        unpartitioned=search.unpartitioned,
    )


def _dates(settings: Settings, now: float) -> tuple[str, ...] | None:
    window = settings.window(now)
    if window is None or settings.date_format is None:
        return None
    return expand(settings.date_format, *window)


class _Parallel:
    """Threads that work ahead of the caller, by a bounded number of tasks."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="discover")
        self._ahead = workers * _AHEAD_PER_WORKER

    def __enter__(self) -> _Parallel:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def in_order(self, work: Callable[[_In], _Out], inputs: Iterable[_In]) -> Iterator[_Out]:
        """Results in the order of the inputs."""
        running: deque[Future[_Out]] = deque()
        for one in inputs:
            if len(running) >= self._ahead:
                yield running.popleft().result()
            running.append(self._pool.submit(work, one))
        while running:
            yield running.popleft().result()


class _Search:
    """Finds the prefixes that are partitions, level by level."""

    def __init__(self, settings: Settings, store: ObjectStore, parallel: _Parallel) -> None:
        self._settings = settings
        self._store = store
        self._parallel = parallel
        self._source = settings.source
        self.unpartitioned = Skipped(0, 0)
        places = (settings.destination.prefix, f"{settings.state.prefix}partitions/")
        self._longest_path = MAX_KEY_BYTES - LONGEST_NAME - max(len(p.encode()) for p in places)

    def partitions(self, dates: tuple[str, ...] | None) -> Iterator[Partition]:
        root = self._source.root
        parents = self._parents()
        if dates is None:
            prefixes: Iterable[str] = self._below(parents)
        else:
            prefixes = (parent + relative for parent in parents for relative in dates)
        for prefix in prefixes:
            partition = Partition(root.bucket, prefix, prefix.removeprefix(root.prefix))
            if len(partition.path.encode()) <= self._longest_path:
                yield partition
            else:
                self._leave_alone(partition)

    def _leave_alone(self, partition: Partition) -> None:
        """A partition whose outputs or commits would have keys that S3 does not take."""
        with blaming("s3_source_uri", self._settings):
            for page in self._store.list_objects(partition.bucket, partition.prefix):
                self.unpartitioned = self.unpartitioned.plus(_skipped(page), SHOWN_EXAMPLES)

    def _parents(self) -> list[str]:
        """The prefixes that the source's wildcards match."""
        parents = [self._source.root.prefix]
        for segment in self._source.pattern:
            if "*" in segment:
                matching = partial(self._matching, segment)
                parents = [p for found in self._parallel.in_order(matching, parents) for p in found]
            else:
                parents = [f"{parent}{segment}/" for parent in parents]
        return parents

    def _below(self, parents: list[str]) -> list[str]:
        """The prefixes ``depth`` levels below; the objects above that depth are counted."""
        for _ in range(self._settings.depth):
            below: list[str] = []
            for prefixes, skipped in self._parallel.in_order(self._level, parents):
                below.extend(prefixes)
                self.unpartitioned = self.unpartitioned.plus(skipped, SHOWN_EXAMPLES)
            parents = below
        return parents

    def _matching(self, segment: str, parent: str) -> list[str]:
        prefixes, _ = self._level(parent)
        return [p for p in prefixes if matches(segment, p[len(parent) : -1])]

    def _level(self, parent: str) -> tuple[list[str], Skipped]:
        prefixes: list[str] = []
        skipped = Skipped(0, 0)
        with blaming("s3_source_uri", self._settings):
            for page in self._store.list_level(self._source.root.bucket, parent):
                prefixes.extend(page.prefixes)
                skipped = skipped.plus(_skipped(page.objects), SHOWN_EXAMPLES)
        return prefixes, skipped


def _skipped(objects: Iterable[SourceObject]) -> Skipped:
    # An empty object named like a prefix is how consoles draw a directory, not data.
    data = [one for one in objects if one.size or not one.key.endswith("/")]
    examples = tuple(one.key for one in data[:SHOWN_EXAMPLES])
    return Skipped(len(data), sum(one.size for one in data), examples)


@dataclass(frozen=True, slots=True)
class _Counted:
    item: WorkItem
    oversized: bool
    lost: NamedLevels


class _Count:
    """Counts one partition, no further than it takes to know that it is oversized."""

    def __init__(
        self, settings: Settings, store: ObjectStore, committed: Committed, fleet: Fleet
    ) -> None:
        self._settings = settings
        self._store = store
        self._committed = committed
        self._processors = fleet.processors

    def __call__(self, partition: Partition) -> _Counted | None:
        counted = self._count(partition)
        if counted is None or not self._settings.columnar:
            return counted
        # Rows are written by Spark alone, however few they are.
        return _Counted(counted.item, oversized=True, lost=counted.lost)

    def _count(self, partition: Partition) -> _Counted | None:
        counted = self._tally(partition, None)
        if not counted.oversized:
            return counted if counted.item.objects else None
        known = self._committed(partition)
        if isinstance(known, Sized) and not len(known):
            return counted
        # Listed again instead of kept: half a million objects in each of many threads would
        # not fit. Even a partition with every object committed stays a work item, because a
        # commit may wait for its output and a source for its clean-up.
        return self._tally(partition, known)

    def _tally(self, partition: Partition, known: Container[bytes] | None) -> _Counted:
        objects, size, seconds, oversized = 0, 0, 0.0, False
        lost = NamedLevels()
        with blaming("s3_source_uri", self._settings):
            for page in self._store.list_objects(partition.bucket, partition.prefix):
                fresh = [one for one in page if known is None or one.identity not in known]
                lost = lost.plus(in_named_levels(self._settings, partition, fresh))
                page_size = sum(one.size for one in fresh)
                objects += len(fresh)
                size += page_size
                if fresh:
                    # Neighbours are of a kind, nearly always; it is an estimate.
                    speed = speed_for(fresh[0].key).on(self._processors)
                    seconds += speed.seconds(len(fresh), page_size)
                oversized = self._is_oversized(objects, size, seconds)
                if oversized:
                    break
        item = WorkItem(partition.path, partition.bucket, partition.prefix, objects, size)
        return _Counted(item, oversized, lost)

    def _is_oversized(self, objects: int, size: int, seconds: float) -> bool:
        limits = self._settings
        return (
            objects > limits.lambda_max_objects
            or size > limits.lambda_max_bytes
            or seconds > limits.lambda_max_seconds
        )
