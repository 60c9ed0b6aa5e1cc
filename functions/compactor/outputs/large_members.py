"""Large sources that are one gzip member or zstd frame: read to their end before any is written.

Only then is it known whether they may go into their output as they are stored. S3 copies them, or
their bytes pass through the worker once more: the output is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from compactor.formats import PassingCheck, StreamFraming, spec_of
from compactor.formats.framing import Framed
from compactor.formats.lines import BOM, count_newlines
from compactor.model import Signature, SourceObject
from compactor.outputs.members import ends_like_a_member, has_usual_window, is_unchanged
from compactor.outputs.plain import PlainContent, fetched, read, read_again
from compactor.ports import ObjectStore, SourceBody
from compactor.settings.settings import Settings


class LargeMember(NamedTuple):
    """A source that is one member or frame, and that its output takes as it is stored.

    Attributes:
        source: which.
        framed: its place; ``slice`` holds no more than the newline that it lacks.
        plain_bytes, plain_crc32: of its content.
        newlines: in it.
        crc32: of the source as it is stored.
    """

    source: SourceObject
    framed: Framed
    plain_bytes: int
    plain_crc32: int
    newlines: int
    crc32: int


class LargeMembers:
    """Reads large sources of one output for what they are, and gives their bytes once more.

    Args:
        store: where they are.
        settings: of the run.
        copies: the store may copy them.
    """

    def __init__(self, store: ObjectStore, settings: Settings, *, copies: bool) -> None:
        self._store = store
        self._settings = settings
        self._limits = settings.limits
        self._copies = copies and store.traits.copies

    def stored(
        self, source: SourceObject, content: PlainContent, parts: int
    ) -> Iterator[bytes] | None:
        """The bytes of a source that was read, as they are stored; None where S3 is to copy them.

        Args:
            source: which.
            content: of it.
            parts: of the output so far. A copy may take two, and no more than 10,000 are taken.

        Raises:
            SourceChanged, UnreadableSource: as reading it raises them.
        """
        held = _held(content)
        if held is not None:
            return held
        if self._copies and parts < self._limits.most_parts // 2:
            return None
        body = fetched(source, self._store)
        return iter((body.content or b"",)) if body.chunks is None else body.chunks()

    def again(self, source: SourceObject, content: PlainContent) -> PlainContent:
        """The content of a source from its beginning, however much of it was read.

        Raises:
            SourceChanged, UnreadableSource: as reading it raises them.
        """
        if content.complete:
            return content
        held = _held(content)
        if held is None:
            return read_again(source, self._store, self._settings)
        return read(SourceBody(source, chunks=lambda: held), self._settings)


def _held(content: PlainContent) -> Iterator[bytes] | None:
    return None if content.stored is None else content.stored.from_begin()


def may_be_one(content: PlainContent, signature: Signature) -> bool:
    """Whether a source could be taken as it is stored, as far as its beginning tells."""
    stored = content.stored
    if stored is None or not spec_of(signature.format).copied or content.head.startswith(BOM):
        return False
    return stored.units == 1 and has_usual_window(stored.head, content.compression)


def read_as_one(
    source: SourceObject, content: PlainContent, framing: StreamFraming, check: PassingCheck
) -> LargeMember | None:
    """Read a source to its end, unless it shows before that it cannot be taken as it is stored.

    Args:
        source: which.
        content: of it, from its beginning.
        framing: of this source.
        check: likewise.

    Raises:
        UnreadableSource: it does not decompress, or is not what its head promised.
    """
    stored = content.stored
    if stored is None:
        return None
    passed = newlines = 0
    for chunk in content.chunks():
        check.feed(chunk)
        for piece in framing.feed(chunk):
            passed += len(piece)
            newlines += count_newlines(piece)
        if stored.units > 1:
            return None
    check.finish()
    framed = framing.finish()
    if stored.units != 1 or passed != content.size or not is_unchanged(framed):
        return None
    if stored.size != source.size or not ends_like_a_member(content, stored.tail):
        return None
    size, crc32 = content.size, content.crc32
    return LargeMember(source, framed, size, crc32, newlines, stored.crc32)
