"""Chooses the layout of the keys, or the two best ones if it is not clear. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from compactor.scanning.date_levels import is_usual
from compactor.scanning.layouts import MOST_DEPTH, Depths, Keys, Level, Packs, Way

# Shares: of all keys for a clear layout; of a coarser date's keys for a finer one, and for doubt.
_CLEAR, _FINER, _DOUBTFUL = 0.9, 0.99, 0.5
# Smaller shares of the keys do not justify another layout.
_FEW = 0.01
# Partitions with fewer objects gain little, and those with one object nothing.
_GOOD_PARTITION, _POOR_PARTITION = 10, 2
_DIRECTIVE = re.compile("%[YmdHj]")


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to divide keys into partitions.

    Attributes:
        root: levels of the source below the scanned prefix, up to its first wildcard.
        pattern: the levels after it, with wildcards.
        date_format: of the levels after those; None if the depth decides.
        objects, bytes: of the keys that fit.
        partitions, outputs: approximate numbers; outputs at the default sizes.
        begin, end: range of the dates, UNIX seconds, or None.
        kinds: what the wildcards stand for, each with its number of names.
        shape: the form of the levels before a date: how many, and which columns they name.
        packs: the sources that outputs would be made of.
        way: the counts for this layout, if it has dates.
    """

    root: tuple[str, ...]
    pattern: tuple[str, ...] = ()
    date_format: str | None = None
    depth: int = 0
    objects: int = 0
    bytes: int = 0
    partitions: int = 0
    outputs: int = 0
    begin: float | None = None
    end: float | None = None
    kinds: tuple[tuple[str, int], ...] = ()
    example: str = ""
    shape: tuple[str, ...] = ()
    packs: Packs = field(default_factory=Packs, compare=False)
    way: Way | None = field(default=None, compare=False)

    @property
    def shown(self) -> str:
        """The layout below the scanned prefix, for display."""
        levels = [*self.root, *self.pattern]
        levels += [self.date_format] if self.date_format else ["*"] * self.depth
        return "".join(f"{one}/" for one in levels) or "one partition, flat"


@dataclass(frozen=True, slots=True)
class Choice:
    """The layout or layouts of the keys.

    Attributes:
        layouts: one if it is clear, else the two best, with the one that most keys fit first.
        clear: one layout fits nearly all keys, and no other fits as well.
        either: both are readings of the same keys; otherwise each has its own keys.
        why: why it is not clear, or why there are no dates; empty if there is nothing to say.
        total: number of all keys.
    """

    layouts: tuple[Layout, ...]
    clear: bool
    why: str
    total: int
    either: bool = False


def choose(keys: Keys, *, whole_bucket: bool) -> Choice:
    """Choose the layout of all listed keys.

    Args:
        keys: at least one.
        whole_bucket: no prefix was given. The source should then be narrower than the bucket if
            possible, to leave room for a destination.
    """
    total = keys.total
    found = sorted(_dated(keys), key=_rank)
    best = found[0] if found else None
    if keys.unpadded > _FEW * total:
        why = "dates without zeros in front, which date_format cannot say: partitions by depth"
        return _by_depth(keys, why, whole_bucket)
    if best is None or best.objects < _FEW * total:
        return _by_depth(keys, "", whole_bucket)
    if best.way is not None and best.way.named_below > _FEW * best.objects:
        why = "levels below the date name columns, which only a depth keeps: partitions by depth"
        return _by_depth(keys, why, whole_bucket)
    if best.objects < _CLEAR * total:
        return _mixed(keys, found)
    return _settled(best, found, total)


def _settled(best: Layout, found: Sequence[Layout], total: int) -> Choice:
    """Return the layout that fits nearly all keys, unless another one fits as well."""
    same = [one for one in found if one.shape == best.shape]
    finer = [one for one in same if _is_finer(one, best)]
    finest = max(finer, key=lambda one: one.objects, default=None)
    if finest is not None and finest.objects >= _FINER * best.objects:
        return Choice((finest,), clear=True, why="", total=total)
    if finest is not None and finest.objects >= _DOUBTFUL * best.objects:
        why = "some keys have a finer date than others"
        return Choice((best, finest), clear=False, why=why, total=total, either=True)
    rivals = [one for one in same if one is not best and _is_reordered(one, best)]
    rivals = [one for one in rivals if one.objects >= _FINER * best.objects]
    if rivals and not is_usual(best.date_format or ""):
        why = "day and month may be meant either way: no day above 12 distinguishes them"
        return Choice((best, rivals[0]), clear=False, why=why, total=total, either=True)
    return Choice((best,), clear=True, why="", total=total)


def _is_reordered(one: Layout, other: Layout) -> bool:
    """Return whether both have the same levels, with the numbers read in another order."""
    texts = [_DIRECTIVE.sub("%", each.date_format or "") for each in (one, other)]
    return texts[0] == texts[1]


def _is_finer(one: Layout, than: Layout) -> bool:
    return (one.date_format or "").startswith(f"{than.date_format}/")


def _rank(one: Layout) -> tuple[int, bool, int]:
    """Sort by most keys first, then by the usual order of day and month."""
    text = one.date_format or ""
    return -one.objects, not is_usual(text), -text.count("%")


def _mixed(keys: Keys, found: Sequence[Layout]) -> Choice:
    """Return the two layouts that most keys fit, each with its own keys; none fits nearly all."""
    chosen: list[Layout] = []
    for one in found:
        if not any(_same_keys(one, other) for other in chosen):
            chosen.append(one)
    undated = next(iter(_depths(keys.undated)), None) if keys.undated.total else None
    if undated is not None:
        root = keys.undated.common or ()
        alone = replace(undated, root=root, depth=max(0, undated.depth - len(root)))
        if not any(_overlap(alone.root, other.root) for other in chosen):
            chosen.append(alone)
    chosen.sort(key=lambda one: -one.objects)
    why = "no one layout fits nine of ten keys"
    return Choice(tuple(chosen[:2]), clear=False, why=why, total=keys.total)


def _same_keys(one: Layout, other: Layout) -> bool:
    """Return whether both are dates below the same levels, read differently or finer."""
    if one.shape != other.shape:
        return False
    return _is_reordered(one, other) or _is_finer(one, other) or _is_finer(other, one)


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    return all(left == right for left, right in zip(one, other, strict=False))


def _dated(keys: Keys) -> Iterator[Layout]:
    """Yield a layout for each way to read dates, including keys with finer ones below it."""
    for (names, text), way in keys.ways.items():
        with_finer = [way]
        with_finer += [
            other
            for (others, format), other in keys.ways.items()
            if others == names and format.startswith(f"{text}/")
        ]
        segments = [level.segment for level in _levels(with_finer)]
        root = next((n for n, one in enumerate(segments) if "*" in one), len(segments))
        wild = [one for one in _levels(with_finer) if "*" in one.segment]
        yield Layout(
            root=tuple(segments[:root]),
            pattern=tuple(segments[root:]),
            date_format=text,
            objects=sum(one.objects for one in with_finer),
            bytes=sum(one.bytes for one in with_finer),
            partitions=sum(one.partitions for one in with_finer),
            outputs=sum(one.packs.outputs(one.partitions) for one in with_finer),
            begin=min((one.begin for one in with_finer), default=inf),
            end=max((one.end for one in with_finer), default=-inf),
            kinds=tuple((one.kind or "names", len(one.names)) for one in wild),
            example=way.example,
            shape=names,
            packs=sum((one.packs for one in with_finer), Packs()),
            way=max(with_finer, key=lambda one: one.objects),
        )


def _levels(ways: Sequence[Way]) -> list[Level]:
    """Merge the levels of several ways."""
    joined = [Level(set(level.names)) for level in ways[0].levels]
    for way in ways[1:]:
        for level, more in zip(joined, way.levels, strict=True):
            level.names |= more.names
    return joined


def _by_depth(keys: Keys, why: str, whole_bucket: bool) -> Choice:
    found = list(_depths(keys.all))
    if whole_bucket and keys.all.common:
        root = keys.all.common[:1]
        found = [replace(one, root=root, depth=max(0, one.depth - 1)) for one in found]
    if not found:
        return Choice((), clear=False, why="no key can be named by a URI", total=keys.total)
    best, *others = found
    if best.objects < _CLEAR * keys.total:
        why = why or "keys have different numbers of levels"
        return Choice(tuple(found[:2]), clear=False, why=why, total=keys.total, either=True)
    if others:
        why = why or (
            "a partition for each of the lowest levels has few objects, and so gains little"
        )
        return Choice(tuple(found[:2]), clear=False, why=why, total=keys.total, either=True)
    return Choice((best,), clear=True, why=why, total=keys.total)


def _depths(depths: Depths) -> Iterator[Layout]:
    """Yield the depth that suits most keys, and plausible alternatives."""
    fits = {
        depth: depths.fitting(depth)
        for depth in range(MOST_DEPTH + 1)
        if depths.partitions[depth] and depths.fitting(depth)
    }
    if not fits:
        return
    most = max(fits.values())
    all_fit = [depth for depth, many in fits.items() if many == most]
    good = [one for one in all_fit if most >= _GOOD_PARTITION * depths.partitions[one]]
    chosen, deepest = max(good, default=min(all_fit)), max(all_fit)
    yield _of_depth(depths, chosen, most)
    if most >= _POOR_PARTITION * depths.partitions[deepest] and deepest != chosen:
        yield _of_depth(depths, deepest, most)
    elif most < _CLEAR * depths.total:
        rest = {depth: many for depth, many in fits.items() if many < most}
        if rest:
            other = max(rest, key=lambda depth: (rest[depth], -depth))
            yield _of_depth(depths, other, rest[other])


def _of_depth(depths: Depths, depth: int, objects: int) -> Layout:
    partitions = depths.partitions[depth]
    return Layout(
        root=(),
        depth=depth,
        objects=objects,
        bytes=depths.bytes * objects // max(1, depths.total),
        partitions=partitions,
        outputs=depths.packs.outputs(partitions),
        example=depths.example,
        packs=depths.packs,
    )


def wildcards(kinds: Iterable[tuple[str, int]]) -> str:
    """Format wildcards, such as ``3 accounts, 2 regions``."""
    parts = []
    for kind, many in kinds:
        noun = kind.removesuffix("s")
        parts.append(f"{many:,} {noun}{'' if many == 1 else 's'}")
    return ", ".join(parts)
