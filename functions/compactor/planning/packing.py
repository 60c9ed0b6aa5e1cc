"""Decides which sources share an output: pure arithmetic over keys and sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from compactor.encoding.output_encoding import (
    PackingClass,
    class_of,
    output_form,
    stored_bytes,
    target_bytes,
)
from compactor.model import ObjectGroup, Signature, SourceObject
from compactor.settings.settings import Settings

# Part of every group id: increment on any change to the bytes of an output.
BYTES_VERSION = "1"


def copied(source: SourceObject, settings: Settings, cls: PackingClass) -> bool:
    """Return True if the source is large enough to copy and its bytes may stay as they are."""
    threshold = settings.limits.small_object_bytes
    if threshold is None:
        threshold = target_bytes(settings, cls.compression) // 2
    # Most are too small. Readers of tables follow field ids, which a source may have from another
    # table.
    if source.size < threshold or settings.table:
        return False
    output = output_form(settings, source.key).encoding_of(cls.compression)
    return output is cls.compression and _passes_unchanged(source.key, settings)


def _passes_unchanged(key: str, settings: Settings) -> bool:
    if settings.merges(key):
        return settings.compression == "same"
    # What is declared is checked, and may be rewritten, record by record.
    return settings.declared(key) is None and settings.output_format == "same"


class _OpenGroup(msgspec.Struct):
    sources: list[SourceObject]
    bytes: float = 0.0


class Packed(msgspec.Struct, frozen=True):
    """A group; ``full`` if the next source would not have fitted."""

    group: ObjectGroup
    full: bool


def pack(
    candidates: Iterable[SourceObject],
    settings: Settings,
    signatures: Mapping[bytes, Signature],
) -> Iterator[Packed]:
    """Yield groups of candidates, each within the target size, sources in the order given.

    A source larger than the target gets its own group. Groups with only zero-byte sources are never
    created.
    """
    most_sources = settings.limits.group_sources
    open_groups: dict[PackingClass, _OpenGroup] = {}
    for source in candidates:
        signature = signatures.get(source.identity) if signatures else None
        cls = class_of(source.key, settings, signature)
        if copied(source, settings, cls):
            yield Packed(make_group((source,), settings, copy=True), full=True)
            continue
        output = output_form(settings, source.key).encoding_of(cls.compression)
        size = stored_bytes(source.size, cls.compression, output)
        group = open_groups.setdefault(cls, _OpenGroup([]))
        too_big = group.bytes + size > target_bytes(settings, output)
        if group.sources and (too_big or len(group.sources) >= most_sources):
            if group.bytes:
                yield Packed(make_group(group.sources, settings), full=True)
            group = open_groups[cls] = _OpenGroup([])
        group.sources.append(source)
        group.bytes += size
    for group in open_groups.values():
        if group.bytes:
            full = len(group.sources) >= most_sources
            yield Packed(make_group(group.sources, settings), full=full)


def make_group(
    sources: Sequence[SourceObject], settings: Settings, *, copy: bool = False
) -> ObjectGroup:
    """Return the group of these sources; its id is a pure function of them and the options.

    The id is the hex of a 16-byte BLAKE2b over the ordered (bucket, key, ETag) identities and every
    setting that affects the bytes of the output.
    """
    digest = hashlib.blake2b(digest_size=16)
    key = sources[0].key
    form, declaration = output_form(settings, key), settings.declared(key)
    options: tuple[str, ...] = (
        BYTES_VERSION,
        declaration.text if declaration is not None else "",
        settings.compression,
        str(copy),
    )
    if form.rows:
        options += (settings.output_format, settings.parquet_schema or "")
    if settings.upsert_key:
        # The columns are not part of it: outputs only name the origin of their rows.
        options += ("upsert",)
    digest.update("\0".join(options).encode())
    for source in sources:
        digest.update(source.identity)
    return ObjectGroup(digest.hexdigest(), tuple(sources), copy, form)
