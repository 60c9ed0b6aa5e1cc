"""Tell a line of JSON lines that came alone from a document, by the sources around it.

An object on one line may be either. Lines share members with others of their kind; what shares none
with any other source of its group may be settings, or whatever else is read file by file.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from compactor.errors import UnreadableSource
from compactor.formats import Detected
from compactor.formats.json_documents import members_of
from compactor.formats.refusal import refused
from compactor.model import Format, QuarantineReason, SourceObject
from compactor.outputs.plain_content import PlainContent

# So many sources wait for one that shares a member with the first of them.
_MOST_WAITING, _MOST_WAITING_BYTES = 256, 4 << 20
# Of so many members, by so much of their names, it is remembered that they were seen.
_MOST_NAMES, _NAME_CHARACTERS = 1 << 16, 64
_ONE_LINE = re.compile(rb"[ \t\r\n]*+[^\n]*+[ \t\r\n]*+\Z")
_FIRST_LINE = re.compile(rb"[ \t\r\n]*+([^\n]*+)")
_NONE: frozenset[str] = frozenset()


class Found(NamedTuple):
    """A source that was read, and what it is; None for nothing, or a byte order mark alone."""

    source: SourceObject
    content: PlainContent
    raw: bytes | None
    detected: Detected | None


#: A source, and why it is left alone; None where it is not.
Settled = tuple[Found, UnreadableSource | None]


class _Held:
    """A source and its members, as long as no other source is known to share one of them."""

    __slots__ = ("found", "unshared")

    def __init__(self, found: Found, unshared: frozenset[str]) -> None:
        self.found = found
        self.unshared = unshared


class Neighbours:
    """Holds sources back, in their order, until it is known whether they stand alone.

    That depends on the group alone: on all sources before, and up to 255 after. All iterators
    give up a source when the next one is asked for, not before.

    Args:
        judges: false where the format is declared, so that every source is settled at once.
    """

    def __init__(self, *, judges: bool) -> None:
        self._judges = judges
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self._names: set[str] = set()
        self._compared = 0

    @property
    def held(self) -> list[SourceObject]:
        """The sources that are held back."""
        return [one.found.source for one in self._held]

    def add(self, found: Found) -> Iterator[Settled]:
        """The sources that are settled now that this one came; it may be among them."""
        names, unshared = _NONE, _NONE
        if self._judges and found.detected is not None and _is_json(found.detected):
            names = _first_names(found.content.head)
            # What is no object by itself waits only for those before it.
            if names.isdisjoint(self._names) and _is_one_line(found.content):
                unshared = names
        self._see(names)
        self._held.append(_Held(found, unshared))
        self._held_bytes += len(found.content.head)
        # Only what is whole can wait.
        return self._settled(at_once=not found.content.complete)

    def see(self, head: bytes) -> None:
        """Look at the first bytes of lines of the group that are not read."""
        if self._judges:
            self._see(_first_names(head))

    def rest(self) -> Iterator[Settled]:
        """All that are held back, now that none can come that shares anything with them."""
        return self._settled(at_once=True)

    def _see(self, names: frozenset[str]) -> None:
        if not names:
            return
        self._compared += 1
        if len(self._names) < _MOST_NAMES:
            self._names |= names
        for one in self._held:
            if not one.unshared.isdisjoint(names):
                one.unshared = _NONE

    def _settled(self, *, at_once: bool) -> Iterator[Settled]:
        held = self._held
        while held and (at_once or not held[0].unshared or self._is_full()):
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
    """The members of the object on the first line; none where that is no whole object."""
    line = _FIRST_LINE.match(head.removeprefix(BOM_UTF8))
    members = members_of(line[1]) if line is not None else None
    return frozenset(name[:_NAME_CHARACTERS] for name in members or ())


def _alone(found: Found) -> UnreadableSource:
    seen = "it is one JSON object that shares no member with the others of its group"
    remedy = 'set format: "json_lines"'
    return refused(QuarantineReason.UNKNOWN_FORMAT, seen, found.content.head, remedy)
