"""Counts for each possible layout of the keys, while they are listed in order. Pure.

Memory depends on the number of layouts, not of keys: a directory is analysed when its first key
arrives, and partitions are counted where one ends and the next begins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from compactor.encoding.output_encoding import (
    COMPRESSED_TARGET_BYTES,
    PLAIN_TARGET_BYTES,
    packing_class,
)
from compactor.model import Compression, SourceObject
from compactor.scanning.date_levels import Dated, is_unpadded, readings
from compactor.settings.windows import named_level

#: Maximum number of levels below the scanned prefix that form partitions without dates.
MOST_DEPTH = 12
# Further ways to read keys, and further names of a level, are ignored.
_MOST_WAYS, _MOST_NAMES = 256, 1_000
_ACCOUNT = re.compile(r"\d{12}")
_REGION = re.compile(r"(?:[a-z]{2}|us-gov|us-iso[a-z]?|eu-isoe)(?:-[a-z]+)+-\d")
# Segments that a source's URI must not have.
_ODD = re.compile(r"[*\x00-\x1f\x7f]")


@dataclass(slots=True)
class Level:
    """The names of one level before the date.

    Attributes:
        names: at most 1,000 of them.
    """

    names: set[str] = field(default_factory=set)

    def add(self, name: str) -> None:
        """Add a name."""
        if len(self.names) < _MOST_NAMES:
            self.names.add(name)

    @property
    def kind(self) -> str:
        """``account`` or ``region`` if all names are of that kind, else empty."""
        for kind, pattern in (("account", _ACCOUNT), ("region", _REGION)):
            if all(pattern.fullmatch(name) for name in self.names):
                return kind
        return ""

    @property
    def segment(self) -> str:
        """The level's segment in a source's URI: its only name, or a wildcard.

        Accounts and regions always become a wildcard: others will follow, and a source that changes
        later needs another destination.
        """
        (first, *others) = sorted(self.names)
        if not others and not self.kind and not _ODD.search(first):
            return first
        name, equals, _ = first.partition("=")
        named = equals and all(one.startswith(f"{name}=") for one in others)
        return f"{name}=*" if named and not _ODD.search(name) else "*"


@dataclass(slots=True)
class Packs:
    """The sources that would become outputs at the default sizes.

    Attributes:
        plain, compressed: bytes of sources that would be packed together.
        large, large_bytes: number and bytes of sources that would each be copied alone.
    """

    plain: int = 0
    compressed: int = 0
    large: int = 0
    large_bytes: int = 0

    def add(self, one: SourceObject) -> None:
        """Add a source."""
        compressed = packing_class(one.key).compression is not Compression.NONE
        target = COMPRESSED_TARGET_BYTES if compressed else PLAIN_TARGET_BYTES
        if one.size >= target // 2:
            self.large += 1
            self.large_bytes += one.size
        elif compressed:
            self.compressed += one.size
        else:
            self.plain += one.size

    def __add__(self, other: Packs) -> Packs:
        """Return the sum of both."""
        return Packs(
            self.plain + other.plain,
            self.compressed + other.compressed,
            self.large + other.large,
            self.large_bytes + other.large_bytes,
        )

    def outputs(self, partitions: int) -> int:
        """Return the approximate number of outputs in ``partitions`` partitions."""
        full = self.compressed // COMPRESSED_TARGET_BYTES + self.plain // PLAIN_TARGET_BYTES
        return (partitions if self.plain or self.compressed else 0) + full + self.large


@dataclass(slots=True)
class Way:
    """The keys below a date that is read in one particular way.

    Attributes:
        format: for ``date_format``.
        levels: before the date.
        named_below: number of keys with a level below the date that names a column.
        begin, end: range of the periods, UNIX seconds.
    """

    format: str
    levels: tuple[Level, ...]
    objects: int = 0
    bytes: int = 0
    partitions: int = 0
    named_below: int = 0
    begin: float = inf
    end: float = -inf
    example: str = ""
    packs: Packs = field(default_factory=Packs)
    _partition: str = ""
    _named: bool = False

    def enter(self, dated: Dated, partition: str, *, named: bool) -> None:
        """Start a directory, which belongs to this partition."""
        if partition != self._partition or not self.objects:
            self.partitions += 1
            self._partition = partition
        for level, name in zip(self.levels, dated.lead, strict=True):
            level.add(name)
        self._named = named
        self.begin, self.end = min(self.begin, dated.begin), max(self.end, dated.end)

    def add(self, one: SourceObject) -> None:
        """Add a key in the current directory."""
        self.example = self.example or one.key
        self.objects += 1
        self.bytes += one.size
        self.named_below += self._named
        self.packs.add(one)


@dataclass(slots=True)
class Depths:
    """Keys by their number of levels.

    Attributes:
        objects: by number of levels, and by how many of these must belong to the partition because
            the last of them names a column.
        partitions: number of prefixes by depth.
        common: the leading levels that all keys share.
    """

    objects: Counter[tuple[int, int]] = field(default_factory=Counter)
    bytes: int = 0
    partitions: list[int] = field(default_factory=lambda: [0] * (MOST_DEPTH + 1))
    common: tuple[str, ...] | None = None
    example: str = ""
    packs: Packs = field(default_factory=Packs)
    _levels: tuple[str, ...] | None = None
    _kind: tuple[int, int] = (0, 0)

    def enter(self, levels: tuple[str, ...]) -> None:
        """Start a directory."""
        before = self._levels
        same = _shared(levels, before) if before is not None else -1
        for depth in range(same + 1, min(len(levels), MOST_DEPTH) + 1):
            self.partitions[depth] += 1
        common = levels if self.common is None else self.common
        self.common = common[: _shared(common, levels)]
        self._levels = levels
        self._kind = len(levels), _named(levels)

    def add(self, one: SourceObject) -> None:
        """Add a key in the current directory."""
        self.objects[self._kind] += 1
        self.bytes += one.size
        self.example = self.example or one.key
        self.packs.add(one)

    @property
    def total(self) -> int:
        """Number of all keys."""
        return self.objects.total()

    def fitting(self, depth: int) -> int:
        """Return the number of keys at this depth or deeper that lose no column by it."""
        return sum(
            many
            for (levels, named), many in self.objects.items()
            if levels >= depth and named <= depth
        )


class Keys:
    """All keys below a prefix, added in order.

    Attributes:
        ways: to read them as dated, by the names of columns in the levels before the date, and by
            the format.
        all: all keys; undated: those without a date.
        unpadded: number of keys with a date without leading zeros.
        odd: number of keys with a level that no URI can name.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._directory: str | None = None
        self._entered: tuple[Way | Depths, ...] = ()
        self.ways: dict[tuple[tuple[str, ...], str], Way] = {}
        self.all, self.undated = Depths(), Depths()
        self.total = self.unpadded = self.odd = 0
        self._is_unpadded = self._is_odd = False

    def add(self, one: SourceObject) -> None:
        """Add the next key."""
        at = one.key.rfind("/") + 1
        directory = one.key[:at]
        if directory != self._directory:
            self._directory = directory
            self._enter(directory)
        self.total += 1
        self.unpadded += self._is_unpadded
        self.odd += self._is_odd
        for each in self._entered:
            each.add(one)

    def _enter(self, directory: str) -> None:
        levels = tuple(directory[len(self._prefix) :].split("/")[:-1])
        self._is_unpadded = self._is_odd = False
        if any(level in ("", ".", "..") for level in levels):
            self._entered, self._is_odd = (), True
            return
        self._is_unpadded = is_unpadded(levels)
        ways = [self._way(dated, levels) for dated in readings(levels)]
        depths = [self.all] if ways else [self.all, self.undated]
        for one in depths:
            one.enter(levels)
        self._entered = (*depths, *(way for way in ways if way is not None))

    def _way(self, dated: Dated, levels: Sequence[str]) -> Way | None:
        named = tuple(
            f"{name}=" if (name := one.partition("=")[0]) != one else "" for one in dated.lead
        )
        way = self.ways.get((named, dated.format))
        if way is None:
            if len(self.ways) == _MOST_WAYS:
                return None
            way = self.ways[named, dated.format] = Way(
                dated.format, tuple(Level() for _ in dated.lead)
            )
        partition = "/".join(levels[: dated.levels])
        way.enter(dated, partition, named=_named(levels) > dated.levels)
        return way


def _named(levels: Sequence[str]) -> int:
    """Return the number of levels up to the last one that names a column to query engines."""
    named = named_level("".join(f"{level}/" for level in levels), 0)
    return named.count("/") + 1 if named else 0


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of leading levels that both share."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))
