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
from compactor.log.slice_facts import Edit, SliceFacts
from compactor.model import SourceObject

Json = dict[str, Any]


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
