"""Judges sources by the others of their group: single JSON documents, and shared first lines.

A JSON object on one line may be a document or a line of JSON lines. Lines share members with other
lines of their kind. An object that shares no member with any other source of its group may be a
settings file, or anything else that is read file by file.

A first line that several text sources share may be a header. The header of a table begins each of
its sources, and differs from the lines below. A log line begins several sources by chance, or
because the program logs little else.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from compactor.errors import UnreadableSource
from compactor.formats import Detected
from compactor.formats.document_shapes import is_one_of
from compactor.formats.json_documents import members_of
from compactor.formats.lines import BOM
from compactor.formats.log_lines import form_of
from compactor.formats.refusal import refused
from compactor.model import Format, Quarantined, QuarantineReason, SourceObject
from compactor.outputs.plain_content import PlainContent

# How many sources may wait for one that shares a member with the first of them.
_MOST_WAITING, _MOST_WAITING_BYTES = 256, 4 << 20
# How many member names are remembered, and how many characters of each.
_MOST_NAMES, _NAME_CHARACTERS = 1 << 16, 64
_ONE_LINE = re.compile(rb"[ \t\r\n]*+[^\n]*+[ \t\r\n]*+\Z")
_FIRST_LINE = re.compile(rb"[ \t\r\n]*+([^\n]*+)")
_NONE: frozenset[str] = frozenset()


class Found(NamedTuple):
    """A source that was read, and its format; None if it is empty or only a byte order mark."""

    source: SourceObject
    content: PlainContent
    detected: Detected | None


#: A source, and the reason to leave it alone; None to compact it.
Settled = tuple[Found, UnreadableSource | None]


class _Held:
    """A source, and its members until another source is known to share one of them."""

    __slots__ = ("found", "unshared")

    def __init__(self, found: Found, unshared: frozenset[str]) -> None:
        self.found = found
        self.unshared = unshared


class Neighbours:
    """Holds sources back, in order, until it is known whether they share members with others.

    That depends only on the group: on all sources before a source, and up to 255 after it. All
    iterators remove a source when the next one is requested, not before.

    Args:
        judges: False if the format is declared, so that every source is settled immediately.
    """

    def __init__(self, *, judges: bool) -> None:
        self._judges = judges
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self._names: set[str] = set()
        self._compared = 0

    @property
    def held(self) -> list[SourceObject]:
        """The sources that are held back, in order."""
        return [one.found.source for one in self._held]

    def add(self, found: Found) -> Iterator[Settled]:
        """Add a source; yield the sources that are settled now, which may include it."""
        names, unshared = _NONE, _NONE
        if self._judges and found.detected is not None and _is_json(found.detected):
            names = _first_names(found.content.head)
            # A source that is not a single object waits only for the sources before it.
            if names.isdisjoint(self._names) and _is_one_line(found.content):
                unshared = names
        self._see(names)
        self._held.append(_Held(found, unshared))
        self._held_bytes += len(found.content.head)
        # Only sources held completely in memory can wait.
        return self._settled(all_held=not found.content.complete)

    def rest(self) -> Iterator[Settled]:
        """Yield all sources that are held back, as no more sources follow."""
        return self._settled(all_held=True)

    def _see(self, names: frozenset[str]) -> None:
        if not names:
            return
        self._compared += 1
        if len(self._names) < _MOST_NAMES:
            self._names |= names
        for one in self._held:
            if not one.unshared.isdisjoint(names):
                one.unshared = _NONE

    def _settled(self, *, all_held: bool) -> Iterator[Settled]:
        held = self._held
        while held and (all_held or not held[0].unshared or self._is_full()):
            one = held[0]
            alone = bool(one.unshared) and self._compared > 1
            yield one.found, _alone(one.found) if alone else None
            held.popleft()
            self._held_bytes -= len(one.found.content.head)

    def _is_full(self) -> bool:
        many = len(self._held)
        return many >= _MOST_WAITING or (many > 1 and self._held_bytes >= _MOST_WAITING_BYTES)


def _is_json(found: Detected) -> bool:
    return found.format is Format.JSON_LINES


def _is_one_line(content: PlainContent) -> bool:
    return content.complete and _ONE_LINE.match(content.head) is not None


def _first_names(head: bytes) -> frozenset[str]:
    """Return the member names of the object on the first line; empty if it is not an object."""
    line = _FIRST_LINE.match(head.removeprefix(BOM_UTF8))
    members = members_of(line[1]) if line is not None else None
    return frozenset(name[:_NAME_CHARACTERS] for name in members or ())


def _alone(found: Found) -> UnreadableSource:
    seen = "it is one JSON object that shares no member with the others of its group"
    remedy = 'set format: "json_lines"'
    return refused(QuarantineReason.UNKNOWN_FORMAT, seen, found.content.head, remedy)


_LINE_BYTES = 1 << 10
_SAMPLE_BYTES = 8 << 10
# Limit for all samples. The first source of each line may use half of it, as most lines have only
# one source.
_HELD_BYTES = 16 << 20
_SAMPLES_EACH = 8
_BLANKS = b" \t\r\n"
_DELIMITERS = b",;|\t"


class SharedLines:
    """The first lines of the sources of one group, and samples of what follows them."""

    def __init__(self) -> None:
        self._sources: dict[bytes, list[SourceObject]] = {}
        self._samples: dict[bytes, list[bytes]] = {}
        self._held = 0

    def see(self, source: SourceObject, head: bytes) -> None:
        """Record how a source begins.

        Args:
            source: a source of text lines.
            head: its first plain bytes, or all of them.
        """
        text = head[:_SAMPLE_BYTES].removeprefix(BOM).lstrip(_BLANKS)
        line = text[:_LINE_BYTES].partition(b"\n")[0].rstrip(_BLANKS)
        sources = self._sources.setdefault(line, [])
        sources.append(source)
        if len(sources) > _SAMPLES_EACH:
            return
        room = _HELD_BYTES if len(sources) > 1 else _HELD_BYTES // 2
        if self._held + len(text) <= room:
            self._held += len(text)
            self._samples.setdefault(line, []).append(text)

    def left_alone(self) -> Iterator[Quarantined]:
        """Yield the sources whose first line may be a header, as quarantined."""
        extended = self._extended()
        for line, sources in self._sources.items():
            is_shared = len(sources) > 1 or line in extended
            if is_shared and not self._is_one_of_the_lines(line):
                seen = f"{len(sources):,} sources begin with the same line, which may be a header"
                if line in extended:
                    seen = "it begins as another source does, with other columns, as a header may"
                detail = refused(QuarantineReason.UNKNOWN_FORMAT, seen, line).detail
                for source in sources:
                    yield Quarantined(source, QuarantineReason.UNKNOWN_FORMAT, detail)

    def _extended(self) -> set[bytes]:
        """Return the first lines that differ from another only by more or fewer columns."""
        found: set[bytes] = set()
        begun: list[bytes] = []
        for line in sorted(self._sources):
            while begun and not line.startswith(begun[-1]):
                begun.pop()
            for short in begun:
                if short and line[len(short)] in _DELIMITERS:
                    found |= {short, line}
            begun.append(line)
        return found

    def _is_one_of_the_lines(self, line: bytes) -> bool:
        samples = self._samples.get(line, [])
        if len(self._sources) == 1:
            # All sources begin alike, as with a header. The line is data only if it occurs again
            # below. If that is only the last line of some, the header may have been written again.
            below = [_below(one.rstrip(_BLANKS)) for one in samples]
            return any(line in lines[:-1] for lines in below) or all(line in one for one in below)
        if form_of(line) or any(is_one_of(line, _below(one)) for one in samples):
            return True
        # The line is data, too, if it is the whole content of its sources, and other sources
        # consist of another single line.
        alone = len(samples) == min(len(self._sources[line]), _SAMPLES_EACH)
        return (
            alone
            and all(one.rstrip(_BLANKS) == line for one in samples)
            and any(
                other != line and some[0].rstrip(_BLANKS) == other
                for other, some in self._samples.items()
            )
        )


def _below(text: bytes) -> list[bytes]:
    return [one.rstrip(_BLANKS) for one in text.split(b"\n")[1:]]
