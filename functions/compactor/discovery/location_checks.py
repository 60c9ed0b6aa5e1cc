"""Checks source, destination and state before a run does anything with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice

from compactor.discovery.work_items import blaming
from compactor.errors import InvalidInput
from compactor.log.completeness import not_whole, outputs_among
from compactor.log.identity import check_new_state, read_identity, refuse_outputs_as_sources
from compactor.log.log_reader import some_entries
from compactor.log.resting import Rests
from compactor.log.schemes import check_scheme
from compactor.model import Partition, SourceObject
from compactor.planning.key_rules import KeyRules
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.windows import named_level

_PAGES_LOOKED_AT = 10


def check_places(settings: Settings, store: ObjectStore) -> bool:
    """Check each location once, so that a mistake in a URI ends the run before it does anything.

    Returns:
        Whether the state has an identity. An identity is never removed, so this invocation need not
        look again. If another run creates it meanwhile, this run only examines more.

    Raises:
        InvalidInput: a bucket does not exist or may not be read; the destination was made with
            another partition scheme; the source has outputs of a run; or the state lies in
            another state.
        IntegrityError: the log of what is in the destination is gone or elsewhere.
    """
    for field, place in (
        ("s3_source_uri", settings.source.root),
        ("s3_destination_uri", settings.destination),
    ):
        with blaming(field, settings):
            next(iter(store.list_level(place.bucket, place.prefix)), None)
    with blaming("s3_state_uri", settings):
        check_scheme(settings, store)
        has_identity = read_identity(settings, store) is not None
        if not has_identity:
            check_new_state(settings, store)
    with blaming("s3_source_uri", settings):
        refuse_outputs_as_sources(settings, store)
    if not has_identity:
        _refuse_unknown_outputs(settings, store)
    return has_identity


def rests_of(
    settings: Settings, store: ObjectStore, now: float, run_id: str = "", *, has_identity: bool
) -> Rests | None:
    """Return what finds partitions at rest; None if nothing was ever committed."""
    return Rests.of(settings, store, now, run_id) if has_identity else None


def _has_log(settings: Settings, store: ObjectStore) -> bool:
    known = read_identity(settings, store) is not None
    return known or any(some_entries(settings.state, store))


def _refuse_unknown_outputs(settings: Settings, store: ObjectStore) -> None:
    """Raise IntegrityError if there are outputs but no log: it is gone or elsewhere.

    Only the first pages are read. Each partition is checked again before its first commit.
    """
    place = settings.destination

    def listed() -> Iterator[SourceObject]:
        pages = store.list_objects(place.bucket, place.prefix)
        return (one for page in islice(pages, _PAGES_LOOKED_AT) for one in page)

    with blaming("s3_destination_uri", settings):
        there = outputs_among(listed, store)
    # Another first run may have published these outputs just now. Then there is a log by now.
    if there and not _has_log(settings, store):
        raise not_whole(settings.s3_state_uri, 0, there)


@dataclass(frozen=True, slots=True)
class NamedLevels:
    """Sources in levels below their partition that name a column: their number and an example."""

    objects: int = 0
    key: str = ""
    level: str = ""

    def plus(self, other: NamedLevels) -> NamedLevels:
        """Return the sum, with the first example of the two."""
        first = self if self.objects else other
        return replace(first, objects=self.objects + other.objects)


def in_named_levels(
    settings: Settings, partition: Partition, page: Iterable[SourceObject]
) -> NamedLevels:
    """Find the sources of a page that lie in levels below the partition that name a column."""
    found = NamedLevels()
    below = len(partition.prefix)
    reason_to_skip: KeyRules | None = None
    for one in page:
        if one.key.find("=", below) < 0 or (one.key.endswith("/") and not one.size):
            continue
        level = named_level(one.key, below)
        if not level:
            continue
        # Built lazily: few pages have such levels.
        reason_to_skip = reason_to_skip or KeyRules(settings)
        if reason_to_skip(one) is None:
            found = found.plus(NamedLevels(1, one.key, level))
    return found


def refuse_named_levels(settings: Settings, found: Sequence[NamedLevels], objects: int) -> None:
    """End a run in which every source would lose a column if compacted.

    If only some would, they are left alone: a few keys must not stop all others.

    Args:
        settings: settings of the run.
        found: such sources, by partition.
        objects: number of all sources.

    Raises:
        InvalidInput: all sources would lose a column.
    """
    lost = reduce(NamedLevels.plus, found, NamedLevels())
    if not lost.objects or lost.objects < objects:
        return
    if settings.date_format is not None:
        name = "date_format"
        way = f"{settings.date_format}/{lost.level}, or no date_format and a depth"
    else:
        name = "depth"
        way = f"{settings.depth + lost.level.count('/') + 1}, or whatever depth"
    accepted = (
        f"{way} that makes partitions of all levels which name a column, for outputs above"
        f" {lost.level}/ would lose that of s3://{settings.source.root.bucket}/{lost.key}"
    )
    raise InvalidInput(name, getattr(settings, name), accepted)
