"""The verb: a listing of what lies below a prefix -> what there is, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from compactor.discovery.survey import Surveyed, survey
from compactor.model import ARCHIVED_CLASSES, Partition, SkipReason, SourceObject
from compactor.money.shapes import SMALL_BYTES
from compactor.planning.key_rules import KeyRules
from compactor.ports import ObjectStore
from compactor.scanning.figures import Arrivals, Sizes, Skips
from compactor.scanning.layouts import Keys
from compactor.scanning.sample import Chances
from compactor.settings.settings import STATE_ROOT, Settings

# Behind where listing stops, a page is looked at in so many places.
_PLACES = 32
# So many pages listed entitle a survey to as many LISTs as it ever asks, 40.
_SURVEYED_PAGES = 1_000
# And from there on so many times where half of what is left lies, up to the last page.
_STEPS_TO_THE_END = 24
# What a run before left: an output, or its state.
_OWN = re.compile(r"(?:.*/)?compacted-[0-9a-f]{32}(?:\.[^/]*)?", re.DOTALL)

OnObjects = Callable[[int], None]
"""Told how many objects were listed so far."""


class Lists(Protocol):
    """Whatever tells which objects there are."""

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of all objects below a prefix in UTF-8 key order."""
        ...


@dataclass(frozen=True, slots=True)
class Rest:
    """What lies behind the objects that were listed.

    Attributes:
        after: the last key that was listed in order.
        objects: about how many there are behind it.
        looked_at: of them, in pages here and there, which count among those that were listed.
    """

    after: str
    objects: int
    looked_at: int


@dataclass(slots=True)
class Seen:
    """What there is below a prefix.

    Attributes:
        objects, bytes: that were listed.
        classes: objects and bytes by storage class.
        taken: objects and bytes by storage class, and those of them below 128 KiB, of what a run
            would take once it is old enough.
        skips: what no run takes whatever the layout is.
        rest: None where all was listed.
    """

    keys: Keys
    objects: int = 0
    bytes: int = 0
    sizes: Sizes = field(default_factory=Sizes)
    arrivals: Arrivals = field(default_factory=Arrivals)
    classes: dict[str, tuple[int, int]] = field(default_factory=dict)
    taken: dict[str, list[int]] = field(default_factory=dict)
    skips: Skips = field(default_factory=Skips)
    chances: Chances = field(default_factory=Chances)
    rest: Rest | None = None

    @property
    def total_objects(self) -> int:
        """All there are; estimated where not all were listed."""
        return self.objects if self.rest is None else self._listed_in_order + self.rest.objects

    @property
    def total_bytes(self) -> int:
        """Likewise."""
        return self.bytes * self.total_objects // max(1, self.objects)

    @property
    def _listed_in_order(self) -> int:
        return self.objects - (self.rest.looked_at if self.rest is not None else 0)


def scan(
    settings: Settings,
    lists: Lists,
    now: float,
    *,
    most: int,
    on_objects: OnObjects = lambda _: None,
    known: int | None = None,
) -> Seen:
    """List what lies below the source, and sum it up.

    Args:
        settings: with a source that has no wildcards; say which keys are left alone.
        lists: what lists it.
        now: UNIX seconds; of an inventory, when it was made.
        most: objects are listed in order, at least 1.
        on_objects: told of progress.
        known: how many objects there are, where that is known; else LISTs tell, 97 at most.

    Raises:
        InvalidInput: there is no such bucket, or it may not be listed.
        TransientStoreError: the store did not answer.
    """
    root = settings.source.root
    summing = _Summing(settings, now)
    last, left, pages = "", False, 0
    for page in lists.list_objects(root.bucket, root.prefix):
        room = most - summing.seen.objects
        summing.add(page[:room])
        pages += 1
        on_objects(summing.seen.objects)
        if page:
            last = page[min(room, len(page)) - 1].key
        if len(page) > room or (room == len(page) and room):
            left = True
            break
    if left:
        summing.seen.rest = _rest(summing, lists, last, pages, known)
    return summing.seen


class _Summing:
    """Adds objects up."""

    def __init__(self, settings: Settings, now: float) -> None:
        root = settings.source.root
        self.partition = Partition(root.bucket, root.prefix, "")
        self._by_key = KeyRules(settings, self.partition)
        self._settled_before = now - settings.settle_seconds
        self.seen = Seen(Keys(root.prefix))

    def add(self, page: Iterable[SourceObject]) -> None:
        """Objects behind those before."""
        seen = self.seen
        for one in page:
            seen.objects += 1
            seen.bytes += one.size
            objects, size = seen.classes.get(one.storage_class, (0, 0))
            seen.classes[one.storage_class] = objects + 1, size + one.size
            seen.arrivals.add(one)
            reason = self._never(one)
            if reason is not None:
                seen.skips.add(reason, one)
                continue
            seen.sizes.add(one.size)
            seen.keys.add(one)
            state = self._by_state(one)
            if state is not None:
                seen.skips.add(state, one)
            if one.size and state is not SkipReason.ARCHIVED:
                seen.chances.add(one)
                self._take(one)

    def _take(self, one: SourceObject) -> None:
        counts = self.seen.taken.setdefault(one.storage_class, [0, 0, 0, 0])
        small = one.size < SMALL_BYTES
        for at, more in enumerate((1, one.size, small, one.size * small)):
            counts[at] += more

    def _never(self, one: SourceObject) -> SkipReason | None:
        """Why a key is none of a source; what is left counts for the layout."""
        if one.key.startswith(STATE_ROOT) or _OWN.fullmatch(one.key):
            return SkipReason.OWN_STATE
        return self._by_key(one)

    def _by_state(self, one: SourceObject) -> SkipReason | None:
        if not one.size:
            return SkipReason.EMPTY
        if one.storage_class in ARCHIVED_CLASSES:
            return SkipReason.ARCHIVED
        return SkipReason.TOO_YOUNG if one.last_modified > self._settled_before else None


def _rest(
    summing: _Summing, lists: Lists, after: str, pages: int, known: int | None
) -> Rest | None:
    """What is behind a key, by single pages of it; None where there is nothing."""
    listed = summing.seen.objects
    if known is not None:
        return Rest(after, known - listed, 0) if known > listed else None
    looks = _Looks(summing, lists, after)
    if not looks.behind(after):
        return None
    first = looks.objects
    surveyed = survey(_as_store(lists), summing.partition, looks.last, "", _SURVEYED_PAGES)
    for cut in surveyed.cuts(_PLACES):
        looks.behind(cut)
    looks.to_the_end(surveyed)
    behind = first + round(surveyed.pages * listed / pages)
    return Rest(after, max(behind, looks.objects), looks.objects)


class _Looks:
    """Single pages behind keys that follow on each other; no object is counted twice."""

    def __init__(self, summing: _Summing, lists: Lists, after: str) -> None:
        self._summing, self._lists = summing, lists
        self.last = after
        self.objects = 0
        self._full = 0

    def behind(self, key: str) -> int:
        """How many objects there are on the page behind a key and behind what was looked at."""
        partition = self._summing.partition
        place = partition.bucket, partition.prefix
        page = next(self._lists.list_objects(*place, start_after=max(key, self.last)), ())
        self._summing.add(page)
        self.objects += len(page)
        self._full = max(self._full, len(page))
        if page:
            self.last = page[-1].key
        return len(page)

    def to_the_end(self, surveyed: Surveyed) -> None:
        """Look at the last page, too, as the newest dates are there; or near it."""
        space = surveyed.space
        end = space.number(surveyed.end)
        for _ in range(_STEPS_TO_THE_END):
            begin = space.number(self.last)
            middle = (begin + end) // 2
            if middle <= begin:
                return
            many = self.behind(space.key(middle))
            if 0 < many < self._full:
                return
            if not many:
                end = middle


def _as_store(lists: Lists) -> ObjectStore:
    return lists  # type: ignore[return-value]  # a survey only lists
