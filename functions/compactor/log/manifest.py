"""The part of a commit that maps every source to its place in the output.

Stored by column, with repeated envelopes in a separate table, so that a manifest of 100,000 sources
takes a few megabytes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from compactor.attributes import Attributes
from compactor.formats.framing import Edit, Framed
from compactor.model import SourceObject

Json = dict[str, Any]


# A tuple of three, one of its numbers, and its list slot; its bytes are counted separately.
_EDIT_BYTES = 104


class SliceFacts(NamedTuple):
    """What a manifest keeps of :class:`~compactor.formats.framing.Framed`; same meanings."""

    records: int
    dropped_prefix: bytes = b""
    dropped_suffix: bytes = b""
    appended: int = 0
    newlines_stand_for: bytes | None = None
    edits: tuple[Edit, ...] = ()


class ManifestRow(NamedTuple):
    """One source's place in the output; a NamedTuple because one is created per source.

    Attributes:
        source: the source that was read.
        offset: first byte of the slice in the plain (decompressed) output. For a copied output, in
            the output as stored.
        length: length of the slice in bytes.
        plain_bytes: decompressed size of the source in bytes; None for a copied output.
        crc32: of those bytes; None if S3 copied them and they were not read.
        facts: how to undo the framing; None for a copied output, which is the source itself.
        attributes: what S3 stored with the source besides its bytes; None for nothing.
    """

    source: SourceObject
    offset: int
    length: int
    plain_bytes: int | None
    crc32: int | None
    facts: SliceFacts | None
    attributes: Attributes | None = None


class _Table:
    """Byte strings, each stored once and referenced by index."""

    def __init__(self) -> None:
        self._index: dict[bytes, int] = {}

    def ref(self, value: bytes) -> int:
        return self._index.setdefault(value, len(self._index))

    def to_json(self) -> list[str]:
        return [base64.b64encode(value).decode() for value in self._index]


def to_json(rows: Sequence[ManifestRow]) -> Json:
    """Return the manifest as columns of equal length, one value per source."""
    table = _Table()
    facts = [row.facts for row in rows]
    document: Json = {
        "key": [row.source.key for row in rows],
        "etag": [row.source.etag for row in rows],
        "size": [row.source.size for row in rows],
        "offset": [row.offset for row in rows],
        "length": [row.length for row in rows],
        "plain_bytes": [row.plain_bytes for row in rows],
        "crc32": [row.crc32 for row in rows],
        "records": [f.records if f else None for f in facts],
        "prefix": [table.ref(f.dropped_prefix) if f else None for f in facts],
        "suffix": [table.ref(f.dropped_suffix) if f else None for f in facts],
        "appended": [f.appended if f else None for f in facts],
        "newlines": [
            None if f is None or f.newlines_stand_for is None else table.ref(f.newlines_stand_for)
            for f in facts
        ],
        "edits": {
            str(n): [[e.offset, e.inserted, table.ref(e.original)] for e in f.edits]
            for n, f in enumerate(facts)
            if f is not None and f.edits
        },
    }
    document["bytes"] = table.to_json()
    if any(row.attributes is not None for row in rows):
        document |= _attributes_json(rows)
    return document


def _attributes_json(rows: Sequence[ManifestRow]) -> Json:
    """Return each distinct attribute set once, and each source's index into them."""
    sets: dict[Attributes, int] = {}
    refs = [
        None if (a := row.attributes) is None else sets.setdefault(a, len(sets)) for row in rows
    ]
    return {"attributes": refs, "attribute_sets": msgspec.to_builtins(list(sets))}


_Count = Annotated[int, msgspec.Meta(ge=0)]


class Columns(msgspec.Struct):
    """The document that :func:`to_json` returns; decoding checks each value's type."""

    key: list[str]
    etag: list[str]
    size: list[_Count]
    offset: list[_Count]
    length: list[_Count]
    plain_bytes: list[_Count | None]
    crc32: list[_Count | None]
    records: list[_Count | None]
    prefix: list[_Count | None]
    suffix: list[_Count | None]
    appended: list[_Count | None]
    newlines: list[_Count | None]
    edits: dict[str, list[tuple[_Count, _Count, _Count]]]
    table: list[bytes] = msgspec.field(name="bytes")
    # Present only if some source has attributes.
    attributes: list[_Count | None] | None = None
    attribute_sets: list[Attributes] = []


_OF_EACH = Columns.__struct_fields__[: Columns.__struct_fields__.index("edits")]


def from_json(columns: Columns, bucket: str) -> tuple[ManifestRow, ...]:
    """Rebuild the rows; ``last_modified`` of the sources is not stored and reads 0.0.

    Raises:
        ValueError, IndexError: the columns do not belong together.
    """
    lengths = {len(getattr(columns, name)) for name in _OF_EACH}
    sets, refs = columns.attribute_sets, columns.attributes or [None] * len(columns.key)
    if len({*lengths, len(refs)}) > 1:
        raise ValueError("the columns of the manifest differ in length")
    return tuple(
        ManifestRow(
            SourceObject(bucket, key, columns.etag[n], columns.size[n], 0.0),
            columns.offset[n],
            columns.length[n],
            columns.plain_bytes[n],
            columns.crc32[n],
            _facts(columns, n),
            None if (ref := refs[n]) is None else sets[ref],
        )
        for n, key in enumerate(columns.key)
    )


def _facts(columns: Columns, n: int) -> SliceFacts | None:
    records, appended = columns.records[n], columns.appended[n]
    prefix, suffix = columns.prefix[n], columns.suffix[n]
    if records is None or prefix is None or suffix is None or appended is None:
        return None
    table, newlines = columns.table, columns.newlines[n]
    return SliceFacts(
        records=records,
        dropped_prefix=table[prefix],
        dropped_suffix=table[suffix],
        appended=appended,
        newlines_stand_for=None if newlines is None else table[newlines],
        edits=tuple(
            Edit(offset, inserted, table[ref])
            for offset, inserted, ref in columns.edits.get(str(n), ())
        ),
    )


def identities(rows: Iterable[ManifestRow]) -> set[bytes]:
    """Return the identities of these sources, as the commit log keeps them."""
    return {row.source.identity for row in rows}


class Kept:
    """What one output's manifest keeps to restore its sources, with equal bytes stored once.

    Args:
        most_bytes: approximate memory limit; the first source may exceed it.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._shared: dict[bytes, bytes] = {}
        # Facts without edits, which many sources share.
        self._facts: dict[tuple[object, ...], SliceFacts] = {}

    def has_room(self, framed: Framed) -> bool:
        """Return True if a source with new facts may still be kept."""
        return not self._bytes or self._bytes + self._cost(framed) <= self._most_bytes

    def known(self, framed: Framed) -> SliceFacts | None:
        """Return the facts of a source if an earlier one had the same, else None."""
        return self._facts.get(framed[2:])

    def take(self, framed: Framed) -> SliceFacts:
        """Return the facts needed to undo the framing of one source, and keep them."""
        facts = self.known(framed)
        if facts is not None:
            return facts
        self._bytes += self._cost(framed)
        prefix, suffix = framed.dropped_prefix, framed.dropped_suffix
        prefix = self._shared.setdefault(prefix, prefix)
        suffix = self._shared.setdefault(suffix, suffix)
        facts = SliceFacts(framed.records, prefix, suffix, *framed[5:])
        if not facts.edits:
            self._facts[facts] = facts
        return facts

    def _cost(self, framed: Framed) -> int:
        """Return how many bytes the source would add."""
        cost = 0
        for part in (framed.dropped_prefix, framed.dropped_suffix):
            if part and part not in self._shared:
                cost += len(part)
        if framed.edits:
            cost += sum(_EDIT_BYTES + len(edit.original) for edit in framed.edits)
        return cost


def restore_slice(slice_bytes: bytes | memoryview, facts: SliceFacts) -> bytes:
    """Return the plain bytes of a source from its slice of the output."""
    body = memoryview(slice_bytes)[: len(slice_bytes) - facts.appended]
    pieces: list[bytes | memoryview] = [facts.dropped_prefix]
    if facts.edits:
        pieces += _unedited(body, facts.edits)
    elif facts.newlines_stand_for is not None:
        pieces.append(bytes(body).replace(b"\n", facts.newlines_stand_for))
    else:
        pieces.append(body)
    pieces.append(facts.dropped_suffix)
    return b"".join(pieces)


def _unedited(body: memoryview, edits: tuple[Edit, ...]) -> list[bytes | memoryview]:
    pieces: list[bytes | memoryview] = []
    at = 0
    for edit in edits:
        pieces += (body[at : edit.offset], edit.original)
        at = edit.offset + edit.inserted
    pieces.append(body[at:])
    return pieces
