"""Which sources share an output: pure arithmetic over keys and sizes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import msgspec

from compactor.formats import SPECS
from compactor.model import Compression, Format, ObjectGroup, Signature, SourceObject
from compactor.settings.settings import Settings
from compactor.sizes import MIB

COMPRESSED_TARGET_BYTES = 128 * MIB
# Readers split plain lines wherever they like, so that larger outputs are read in parallel, too.
PLAIN_TARGET_BYTES = 1024 * MIB
# Log data shrinks to between a third and a tenth under gzip and zstd; a fixed factor keeps
# the packing, and so the group id, independent of what was measured elsewhere.
ASSUMED_RATIO = 5
# Part of every group id: to be raised by any change to the bytes an output gets.
BYTES_VERSION = "1"
_LONG_HEADER_BYTES = 64

_COMPRESSION_SUFFIXES = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
}
# Names that AWS gives go before ends of names that anybody gives.
_KEY_HINTS = tuple(
    (re.compile(spec.named), spec.hint)
    for spec in sorted(SPECS, key=lambda spec: not spec.named.startswith("_"))
    if spec.named
)


class PackingClass(msgspec.Struct, frozen=True):
    """What the key alone (or a look inside, once taken) tells; classes never share a group."""

    kind: str
    compression: Compression
    header: bytes = b""
    dialect: bytes = b""


# What Parquet objects are called says nothing of what they hold.
_PARQUET = PackingClass(Format.PARQUET, Compression.ZSTD)


def packing_class(key: str, signature: Signature | None = None) -> PackingClass:
    """Class of a source by its key, or by its signature when its content was seen already."""
    if signature is not None:
        return PackingClass(
            signature.format, signature.compression, signature.header, signature.dialect
        )
    name = key.rpartition("/")[2]
    if "_" not in name:
        # Without it only the end tells, and ends are few.
        dot = name.rfind(".")
        before = name.rfind(".", 0, dot) if dot > 0 else dot
        name = name[before:] if before >= 0 else name[dot:] if dot >= 0 else ""
    return _class_of_name(name)


@lru_cache(1024)
def _class_of_name(name: str) -> PackingClass:
    compression = Compression.NONE
    stem, lower = name, name.lower()
    for suffix, candidate in _COMPRESSION_SUFFIXES.items():
        if lower.endswith(suffix):
            compression, stem = candidate, name[: -len(suffix)]
            break
    for pattern, kind in _KEY_HINTS:
        if pattern.search(stem):
            return PackingClass(kind, compression)
    return PackingClass("unknown", compression)


def as_learned(signature: Signature) -> Signature:
    """What the next plan must know to tell this signature from others: no more of its header."""
    if len(signature.header) <= _LONG_HEADER_BYTES:
        return signature
    digest = hashlib.blake2b(signature.header, digest_size=_LONG_HEADER_BYTES).digest()
    return replace(signature, header=digest)


def output_compression(settings: Settings, source: Compression) -> Compression:
    """How an output is encoded, given how its sources are.

    Parquet is not encoded as a whole; of what it holds the sizes are those of encoded bytes.
    """
    if settings.columnar:
        return Compression.ZSTD
    return source if settings.compression == "same" else Compression(settings.compression)


def target_bytes(settings: Settings, output: Compression) -> int:
    """Wanted size of an output in its encoded form, bytes."""
    if settings.target_bytes is not None:
        return settings.target_bytes
    return PLAIN_TARGET_BYTES if output is Compression.NONE else COMPRESSED_TARGET_BYTES


def copied(source: SourceObject, settings: Settings, cls: PackingClass) -> bool:
    """True when the source is large enough, and its bytes fit to be copied as they are."""
    output = output_compression(settings, cls.compression)
    if output is not cls.compression or not _passes_unchanged(settings):
        return False
    if settings.upsert_key:
        # Its rows get columns of where they come from.
        return False
    if _is_rewritten(cls, settings):
        return False
    threshold = settings.limits.small_object_bytes
    if threshold is None:
        threshold = target_bytes(settings, output) // 2
    return source.size >= threshold


def _is_rewritten(cls: PackingClass, settings: Settings) -> bool:
    """Whether even one large source is rewritten, as its records go on lines."""
    if settings.documents != "lines":
        return False
    return any(spec.lines and cls.kind in (spec.hint, spec.format) for spec in SPECS)


def _passes_unchanged(settings: Settings) -> bool:
    if settings.format == "parquet":
        return settings.compression == "same"
    return settings.format == "auto" and settings.output_format == "same"


class _OpenGroup(msgspec.Struct):
    sources: list[SourceObject]
    bytes: float = 0.0


class Packed(msgspec.Struct, frozen=True):
    """``full`` says that the next source would not have fitted."""

    group: ObjectGroup
    full: bool


def pack(
    candidates: Iterable[SourceObject],
    settings: Settings,
    signatures: Mapping[bytes, Signature],
) -> Iterator[Packed]:
    """Groups of candidates, each within the target size, sources in the order given.

    A source larger than the target is alone in its group. Groups that hold nothing but
    zero-byte sources are never made.
    """
    most_sources = settings.limits.group_sources
    open_groups: dict[PackingClass, _OpenGroup] = {}
    for source in candidates:
        known = signatures.get(source.identity) if signatures else None
        cls = _PARQUET if settings.format == "parquet" else packing_class(source.key, known)
        if copied(source, settings, cls):
            yield Packed(make_group((source,), settings, copy=True), full=True)
            continue
        output = output_compression(settings, cls.compression)
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


def stored_bytes(size: int, source: Compression, output: Compression) -> float:
    """What so many stored bytes of sources are expected to be in an output, in its encoded form."""
    if source is Compression.NONE and output is not Compression.NONE:
        return size / ASSUMED_RATIO
    if source is not Compression.NONE and output is Compression.NONE:
        return size * ASSUMED_RATIO
    return size


def make_group(
    sources: Sequence[SourceObject], settings: Settings, *, copy: bool = False
) -> ObjectGroup:
    """The group of these sources; its id is a pure function of them and the options.

    The id is the hex of a 16-byte BLAKE2b over the ordered (bucket, key, ETag) identities
    and every setting that shapes the bytes of the output.
    """
    digest = hashlib.blake2b(digest_size=16)
    options: tuple[str, ...] = (
        BYTES_VERSION,
        settings.format,
        settings.encoding,
        settings.csv_header,
        settings.compression,
        settings.documents,
        str(copy),
    )
    options += settings.csv_rules
    if settings.columnar:
        options += (settings.output_format, settings.parquet_schema or "")
    if settings.upsert_key:
        # Which columns these are does not matter: outputs say where their rows come from.
        options += ("upsert",)
    digest.update("\0".join(options).encode())
    for source in sources:
        digest.update(source.identity)
    return ObjectGroup(digest.hexdigest(), tuple(sources), copy)
