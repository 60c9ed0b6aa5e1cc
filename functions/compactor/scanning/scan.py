"""The scan command: lists what is below a prefix and sums it up, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compactor.model import ARCHIVED_CLASSES, Listing, Partition, SkipReason, SourceObject
from compactor.money import SMALL_BYTES
from compactor.planning.key_rules import KeyRules
from compactor.planning.markers import roots_in
from compactor.planning.surroundings import Surroundings
from compactor.ports import ObjectStore
from compactor.scanning.layouts import Keys
from compactor.scanning.listing_sums import Arrivals, Sizes, Skips
from compactor.scanning.sample import Chances
from compactor.scanning.survey import Surveyed, survey
from compactor.settings.settings import STATE_ROOT, Settings

# Beyond the point where listing stops, this many single pages are sampled.
_PLACES = 32
# Then the last page is searched for by bisection, in at most this many steps.
_STEPS_TO_THE_END = 24
# Outputs and state left by earlier runs.
_OWN = re.compile(r"(?:.*/)?compacted-[0-9a-f]{32}(?:\.[^/]*)?", re.DOTALL)

OnObjects = Callable[[int], None]
"""Called with how many objects were listed so far."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The objects after those that were listed in order.

    Attributes:
        after: the last key that was listed in order.
        objects: approximate number of objects after it.
        looked_at: number of these that were sampled; they are included in the listed ones.
    """

    after: str
    objects: int
    looked_at: int


@dataclass(slots=True)
class Seen:
    """What is below a prefix.

    Attributes:
        objects, bytes: of what was listed.
        classes: objects and bytes by storage class.
        taken: what a run would read once it is old enough, by storage class and kind of name:
            objects and bytes, and those of objects below 128 KiB.
        skips: what no run takes, whatever the layout.
        rest: None if everything was listed.
    """

    keys: Keys
    objects: int = 0
    bytes: int = 0
    sizes: Sizes = field(default_factory=Sizes)
    arrivals: Arrivals = field(default_factory=Arrivals)
    classes: dict[str, tuple[int, int]] = field(default_factory=dict)
    taken: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    skips: Skips = field(default_factory=Skips)
    chances: Chances = field(default_factory=Chances)
    rest: Rest | None = None

    @property
    def total_objects(self) -> int:
        """Number of all objects; estimated if not all were listed."""
        return self.objects if self.rest is None else self._listed_in_order + self.rest.objects

    @property
    def total_bytes(self) -> int:
        """Bytes of all objects; estimated if not all were listed."""
        return self.bytes * self.total_objects // max(1, self.objects)

    @property
    def _listed_in_order(self) -> int:
        return self.objects - (self.rest.looked_at if self.rest is not None else 0)


def scan(
    settings: Settings,
    store: ObjectStore,
    now: float,
    *,
    most: int,
    on_objects: OnObjects = lambda _: None,
) -> Seen:
    """List what is below the source, and sum it up.

    The objects after the listed ones are estimated with at most 97 LISTs.

    Args:
        settings: with a source without wildcards; they decide which keys are skipped.
        store: where the objects are.
        now: UNIX seconds.
        most: maximum number of objects to list in order, at least 1.
        on_objects: called with progress.

    Raises:
        InvalidInput: there is no such bucket, or listing it is not permitted.
        TransientStoreError: the store did not answer.
    """
    root = settings.source.root
    surroundings = Surroundings(store, root.bucket)
    owner = surroundings.above(root.prefix)
    roots = {} if owner is None else {root.prefix: owner}
    # Terminates: each pass adds a table or registry whose marker came after some of its keys.
    while True:
        summing = _Summing(settings, now, dict(roots))
        rest = _in_order(summing, store, most, on_objects)
        if rest is not None:
            summing.show(surroundings.around(rest.listing, ""))
        if not summing.shown_late:
            break
        roots = summing.roots
    if rest is not None:
        summing.seen.rest = _rest(summing, store, rest)
    return summing.seen


class _Cut(NamedTuple):
    """Where listing in order stopped before the end."""

    listing: Listing
    pages: int


def _in_order(
    summing: _Summing, store: ObjectStore, most: int, on_objects: OnObjects
) -> _Cut | None:
    """List at most ``most`` objects; return None if these are all."""
    partition = summing.partition
    listed = store.list_objects(partition.bucket, partition.prefix)
    for pages, page in enumerate(listed, 1):
        room = most - summing.seen.objects
        summing.add(page[:room])
        on_objects(summing.seen.objects)
        if len(page) > room or (room == len(page) and room):
            return _Cut(Listing(partition, (), complete=False, last_key=summing.last), pages)
    return None


class _Summing:
    """Sums up objects.

    Attributes:
        roots: prefixes that a table or registry owns, as far as known.
        shown_late: keys below such a prefix were added before it was known.
        last: the last key that was added.
    """

    def __init__(self, settings: Settings, now: float, roots: dict[str, SkipReason]) -> None:
        root = settings.source.root
        self.partition = Partition(root.bucket, root.prefix, "")
        self.roots, self.shown_late, self.last = roots, False, ""
        # KeyRules looks the roots up for each key, so roots may be added later.
        self._by_key = KeyRules(settings, self.roots)
        self._settled_before = now - settings.settle_seconds
        arrivals = Arrivals(open_since=now - settings.open_partition_seconds)
        self.seen = Seen(Keys(root.prefix), arrivals=arrivals)

    def show(self, roots: Mapping[str, SkipReason]) -> None:
        """Add roots that have become known."""
        new = roots.keys() - self.roots.keys()
        # Keys with the same prefix are adjacent, so checking the last one is enough.
        self.shown_late |= any(self.last.startswith(root) for root in new if self.last)
        self.roots |= roots

    def add(self, page: Sequence[SourceObject]) -> None:
        """Add the next objects."""
        seen = self.seen
        self.show(roots_in(page))
        if page:
            self.last = page[-1].key
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
        kind = one.storage_class, self.seen.chances.kind(one.key)
        counts = self.seen.taken.setdefault(kind, [0, 0, 0, 0])
        small = one.size < SMALL_BYTES
        for at, more in enumerate((1, one.size, small, one.size * small)):
            counts[at] += more

    def _never(self, one: SourceObject) -> SkipReason | None:
        """Return why a key is not part of a source; None for keys that count for the layout."""
        if one.key.startswith(STATE_ROOT) or _OWN.fullmatch(one.key):
            return SkipReason.OWN_STATE
        return self._by_key(one)

    def _by_state(self, one: SourceObject) -> SkipReason | None:
        if not one.size:
            return SkipReason.EMPTY
        if one.storage_class in ARCHIVED_CLASSES:
            return SkipReason.ARCHIVED
        return SkipReason.TOO_YOUNG if one.last_modified > self._settled_before else None


def _rest(summing: _Summing, store: ObjectStore, cut: _Cut) -> Rest | None:
    """Estimate what follows the listed keys from single pages; None if nothing does."""
    after, listed = cut.listing.last_key, summing.seen.objects
    looks = _Looks(summing, store, after)
    if not looks.after(after):
        return None
    first = looks.objects
    surveyed = survey(looks.page, looks.last)
    for key in surveyed.cuts(_PLACES):
        looks.after(key)
    looks.to_the_end(surveyed)
    rest = first + round(surveyed.pages * listed / cut.pages)
    return Rest(after, max(rest, looks.objects), looks.objects)


class _Looks:
    """Samples single pages after ascending keys; no object is counted twice."""

    def __init__(self, summing: _Summing, store: ObjectStore, after: str) -> None:
        self._summing, self._store = summing, store
        self.last = after
        self.objects = 0
        self._full = 0

    def page(self, key: str) -> Sequence[SourceObject]:
        """Return the page after a key."""
        partition = self._summing.partition
        pages = self._store.list_objects(partition.bucket, partition.prefix, start_after=key)
        return next(pages, ())

    def after(self, key: str) -> int:
        """Sample the page after a key, or after the last sampled one; return its length."""
        page = self.page(max(key, self.last))
        self._summing.add(page)
        self.objects += len(page)
        self._full = max(self._full, len(page))
        if page:
            self.last = page[-1].key
        return len(page)

    def to_the_end(self, surveyed: Surveyed) -> None:
        """Sample the last page, or one near it, because the newest dates are there."""
        space = surveyed.space
        end = space.number(surveyed.end)
        for _ in range(_STEPS_TO_THE_END):
            begin = space.number(self.last)
            middle = (begin + end) // 2
            if middle <= begin:
                return
            many = self.after(space.key(middle))
            if 0 < many < self._full:
                return
            if not many:
                end = middle
