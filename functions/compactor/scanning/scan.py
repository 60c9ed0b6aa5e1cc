"""The verb: a listing of what lies below a prefix -> what there is, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from compactor.model import ARCHIVED_CLASSES, Listing, Partition, SkipReason, SourceObject
from compactor.money.shapes import SMALL_BYTES
from compactor.planning.key_rules import KeyRules
from compactor.planning.markers import roots_in
from compactor.planning.surroundings import Surroundings
from compactor.ports import KeyPage, ObjectStore
from compactor.scanning.layouts import Keys
from compactor.scanning.listing_sums import Arrivals, Sizes, Skips
from compactor.scanning.sample import Chances
from compactor.scanning.survey import Surveyed, survey
from compactor.settings.settings import STATE_ROOT, Settings

# After where listing stops, a page is looked at in so many places.
_PLACES = 32
# And from there on so many times where half of what is left lies, up to the last page.
_STEPS_TO_THE_END = 24
# What a run before left: an output, or its state.
_OWN = re.compile(r"(?:.*/)?compacted-[0-9a-f]{32}(?:\.[^/]*)?", re.DOTALL)

OnObjects = Callable[[int], None]
"""Called with how many objects were listed so far."""


class Lists(Protocol):
    """Lists objects, as :class:`compactor.ports.ObjectStore` does."""

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of all objects below a prefix in UTF-8 key order."""
        ...

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        """Pages of one level below a prefix, cut at ``/``."""
        ...


@dataclass(frozen=True, slots=True)
class Rest:
    """What follows the objects that were listed.

    Attributes:
        after: the last key that was listed in order.
        objects: about how many there are after it.
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
        on_objects: called with progress.
        known: how many objects there are, where that is known; else by LISTs, 97 at most.

    Raises:
        InvalidInput: there is no such bucket, or it may not be listed.
        TransientStoreError: the store did not answer.
    """
    root = settings.source.root
    surroundings = Surroundings(_as_store(lists), root.bucket)
    owner = surroundings.above(root.prefix)
    roots = {} if owner is None else {root.prefix: owner}
    # Ends: each turn knows a table or registry more, whose marker came after some of its keys.
    while True:
        summing = _Summing(settings, now, dict(roots))
        rest = _in_order(summing, lists, most, on_objects)
        if rest is not None:
            summing.show(surroundings.around(rest.listing, ""))
        if not summing.shown_late:
            break
        roots = summing.roots
    if rest is not None:
        summing.seen.rest = _rest(summing, lists, rest, known)
    return summing.seen


class _Cut(NamedTuple):
    """Where listing in order stopped, before the end."""

    listing: Listing
    pages: int


def _in_order(summing: _Summing, lists: Lists, most: int, on_objects: OnObjects) -> _Cut | None:
    """List the first objects, at most so many; None where these are all."""
    partition = summing.partition
    listed = lists.list_objects(partition.bucket, partition.prefix)
    for pages, page in enumerate(listed, 1):
        room = most - summing.seen.objects
        summing.add(page[:room])
        on_objects(summing.seen.objects)
        if len(page) > room or (room == len(page) and room):
            return _Cut(Listing(partition, (), complete=False, last_key=summing.last), pages)
    return None


class _Summing:
    """Adds objects up.

    Attributes:
        roots: prefixes that a table or registry owns, as far as that is known.
        shown_late: keys below one of them were added before that was known.
        last: the last key that was added.
    """

    def __init__(self, settings: Settings, now: float, roots: dict[str, SkipReason]) -> None:
        root = settings.source.root
        self.partition = Partition(root.bucket, root.prefix, "")
        self.roots, self.shown_late, self.last = roots, False, ""
        # It looks roots up again for each key.
        self._by_key = KeyRules(settings, self.partition, self.roots)
        self._settled_before = now - settings.settle_seconds
        self.seen = Seen(Keys(root.prefix))

    def show(self, roots: Mapping[str, SkipReason]) -> None:
        """Know these roots from here on."""
        new = roots.keys() - self.roots.keys()
        # Keys of one prefix follow on each other.
        self.shown_late |= any(self.last.startswith(root) for root in new if self.last)
        self.roots |= roots

    def add(self, page: Sequence[SourceObject]) -> None:
        """The next objects."""
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
        counts = self.seen.taken.setdefault(one.storage_class, [0, 0, 0, 0])
        small = one.size < SMALL_BYTES
        for at, more in enumerate((1, one.size, small, one.size * small)):
            counts[at] += more

    def _never(self, one: SourceObject) -> SkipReason | None:
        """Why a key is not part of a source; what is left counts for the layout."""
        if one.key.startswith(STATE_ROOT) or _OWN.fullmatch(one.key):
            return SkipReason.OWN_STATE
        return self._by_key(one)

    def _by_state(self, one: SourceObject) -> SkipReason | None:
        if not one.size:
            return SkipReason.EMPTY
        if one.storage_class in ARCHIVED_CLASSES:
            return SkipReason.ARCHIVED
        return SkipReason.TOO_YOUNG if one.last_modified > self._settled_before else None


def _rest(summing: _Summing, lists: Lists, cut: _Cut, known: int | None) -> Rest | None:
    """What follows a key, by single pages of it; None where there is nothing."""
    after, listed = cut.listing.last_key, summing.seen.objects
    if known is not None:
        return Rest(after, known - listed, 0) if known > listed else None
    looks = _Looks(summing, lists, after)
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
    """Single pages after keys that follow on each other; no object is counted twice."""

    def __init__(self, summing: _Summing, lists: Lists, after: str) -> None:
        self._summing, self._lists = summing, lists
        self.last = after
        self.objects = 0
        self._full = 0

    def page(self, key: str) -> Sequence[SourceObject]:
        """The page after a key."""
        partition = self._summing.partition
        pages = self._lists.list_objects(partition.bucket, partition.prefix, start_after=key)
        return next(pages, ())

    def after(self, key: str) -> int:
        """How many objects there are on the page after a key and after what was looked at."""
        page = self.page(max(key, self.last))
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
            many = self.after(space.key(middle))
            if 0 < many < self._full:
                return
            if not many:
                end = middle


def _as_store(lists: Lists) -> ObjectStore:
    return lists  # type: ignore[return-value]  # a survey only lists
