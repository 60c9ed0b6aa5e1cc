"""Chooses how keys are divided into partitions: by dates or by depth. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from compactor.scanning.dates import date_in, is_unpadded
from compactor.settings.windows import named_level

# Shares of the keys: for one layout alone, and for each of several.
_CLEAR, _SOME = 0.9, 0.05
# Of the keys with a coarser date, for a finer one instead; of all keys, against dates.
_FINER, _FEW = 0.99, 0.01
_MOST_LAYOUTS = 4
# Partitions with fewer objects gain little.
_GOOD_PARTITION = 10
_ACCOUNT_OR_REGION = re.compile(r"\d{12}|(?:[a-z]{2}|us-gov|us-iso[a-z]?)(?:-[a-z]+)+-\d")


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to divide keys into partitions.

    Attributes:
        root: levels of the source below the scanned prefix, up to its first wildcard.
        pattern: the levels after it, with wildcards.
        date_format: of the levels after those; None if the depth decides.
        objects: number of keys that fit.
        begin, end: range of the dates, UNIX seconds.
        why: why it is not by dates; empty if there is nothing to say.
        partition_of: the partition of each directory that fits.
    """

    root: tuple[str, ...] = ()
    pattern: tuple[str, ...] = ()
    date_format: str | None = None
    depth: int = 0
    objects: int = 0
    begin: float = 0.0
    end: float = 0.0
    why: str = ""
    partition_of: Mapping[str, str] = field(default_factory=dict, repr=False)


class _Directory:
    """A directory, and what its levels name."""

    def __init__(self, path: str, prefix: str, objects: int) -> None:
        self.path, self.objects = path, objects
        self.levels = tuple(path[len(prefix) :].split("/")[:-1])
        self.date = date_in(self.levels)
        column = named_level(path, len(prefix))
        # Number of levels up to the last that names a column, which the partition must include.
        self.named = column.count("/") + 1 if column else 0
        lead, text = (self.date.lead, self.date.format) if self.date else ((), "")
        self.columns = tuple(level.partition("=")[0] * ("=" in level) for level in lead)
        # A coarser date fits, too.
        self.formats = [*accumulate(text.split("/"), "{}/{}".format)] if text else []
        self.names_below = self.date is not None and self.named > self.date.levels

    def partition(self, levels: int) -> str:
        return "".join(f"{level}/" for level in self.levels[:levels])


def choose(directories: Mapping[str, int], prefix: str) -> list[Layout]:
    """Return the layout of the keys, or several that each have keys of their own.

    Args:
        directories: number of objects by directory.
        prefix: what was scanned; a layout of a whole bucket leaves room for a destination.
    """
    every = [_Directory(path, prefix, objects) for path, objects in directories.items()]
    # No source's URI has a level that is empty, . or ..
    every = [directory for directory in every if not {"", ".", ".."} & set(directory.levels)]
    total = _objects(every)
    if not total:
        return []
    best, why = _best_dated(every), ""
    if _objects(directory for directory in every if is_unpadded(directory.levels)) > _FEW * total:
        why = "dates without zeros in front, which date_format cannot express: partitions by depth"
    elif _objects(directory for directory in every if directory.names_below) > _FEW * total:
        why = "levels below the date name columns, which only a depth keeps: partitions by depth"
    if why or best is None or best.objects < _FEW * total:
        return [_by_depth(every, () if prefix else _common(every)[:1], why)]
    return [best] if best.objects >= _CLEAR * total else _several(every, total)


def _several(directories: Sequence[_Directory], total: int) -> list[Layout]:
    """Return up to four layouts by date, and one by depth for the keys without a date."""
    layouts: list[Layout] = []
    while len(layouts) < _MOST_LAYOUTS:
        best = _best_dated(directories)
        if best is None or (layouts and best.objects < _SOME * total):
            break
        layouts.append(best)
        directories = [one for one in directories if one.path not in best.partition_of]
    undated = [directory for directory in directories if directory.date is None]
    root = _common(undated) if undated else ()
    # A source must not contain the keys of another.
    apart = all(root[: len(best.root)] != best.root[: len(root)] for best in layouts)
    if apart and _objects(undated) >= _SOME * total:
        layouts.append(_by_depth(undated, root, ""))
    return sorted(layouts, key=lambda layout: -layout.objects)


def _best_dated(directories: Sequence[_Directory]) -> Layout | None:
    """Return the date that most keys have, as fine as nearly all of these have it."""
    formats: dict[tuple[tuple[str, ...], str], list[_Directory]] = defaultdict(list)
    for directory in directories:
        for text in directory.formats:
            formats[directory.columns, text].append(directory)
    counts = {which: _objects(fitting) for which, fitting in formats.items()}
    nearly = [which for which in counts if counts[which] >= _FINER * max(counts.values())]
    finest = max(nearly, key=lambda which: which[1].count("/"), default=None)
    return _by_date(formats[finest], finest[1]) if finest else None


def _by_date(directories: Sequence[_Directory], text: str) -> Layout:
    dates = [directory.date for directory in directories if directory.date is not None]
    segments = [_segment(set(names)) for names in zip(*(date.lead for date in dates), strict=True)]
    root = next((at for at, segment in enumerate(segments) if "*" in segment), len(segments))
    levels = len(segments) + text.count("/") + 1
    return Layout(
        root=tuple(segments[:root]),
        pattern=tuple(segments[root:]),
        date_format=text,
        objects=_objects(directories),
        begin=min(date.begin for date in dates),
        end=max(date.end for date in dates),
        partition_of={directory.path: directory.partition(levels) for directory in directories},
    )


def _segment(names: set[str]) -> str:
    """Return a level's segment in a source's URI: its only name, or a wildcard.

    Accounts and regions always become a wildcard: others will follow.
    """
    first, *later = sorted(names)
    fixed = all(_ACCOUNT_OR_REGION.fullmatch(name) for name in names)
    if not later and not fixed:
        return first
    column, equals, _ = first.partition("=")
    is_column = equals and all(name.startswith(f"{column}=") for name in later)
    return f"{column}=*" if is_column else "*"


def _by_depth(directories: Sequence[_Directory], root: tuple[str, ...], why: str) -> Layout:
    """Return the deepest level below a root whose partitions are not too small."""
    above, deepest = len(root), max(len(directory.levels) for directory in directories)
    objects = {directory.path: directory.objects for directory in directories}
    partitions = [
        {
            directory.path: directory.partition(levels)
            for directory in directories
            if len(directory.levels) >= levels >= directory.named
        }
        for levels in range(above, deepest + 1)
    ]
    counts = [sum(map(objects.__getitem__, fitting)) for fitting in partitions]
    most = max(counts)
    depths = [depth for depth, count in enumerate(counts) if count == most]
    sizes = {depth: most / len(set(partitions[depth].values())) for depth in depths}
    depth = max((d for d in depths if sizes[d] >= _GOOD_PARTITION), default=min(depths))
    return Layout(root, depth=depth, objects=most, why=why, partition_of=partitions[depth])


def _common(directories: Sequence[_Directory]) -> tuple[str, ...]:
    """Return the leading levels that all share."""
    first, last = (pick(directory.levels for directory in directories) for pick in (min, max))
    shared = [level == other for level, other in zip(first, last, strict=False)]
    return first[: (*shared, False).index(False)]


def _objects(directories: Iterable[_Directory]) -> int:
    return sum(directory.objects for directory in directories)
