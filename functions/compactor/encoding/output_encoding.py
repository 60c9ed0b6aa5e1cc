"""The input of packing: what keys show about sources; encoding and target size of outputs.

Sources share an output if their keys show the same content and compression.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import cache, lru_cache

import msgspec

from compactor.formats import SPECS
from compactor.formats.parquet import is_merged
from compactor.model import Compression, Format, OutputForm, Signature
from compactor.settings.settings import Settings
from compactor.sizes import MIB

_LONG_HEADER_BYTES = 64
_COMPRESSION_SUFFIXES = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
}
# Names that AWS chooses are tried before extensions, which any writer may choose.
_KEY_HINTS = tuple(
    (re.compile(spec.named), spec.hint)
    for spec in sorted(SPECS, key=lambda spec: not spec.named.startswith("_"))
    if spec.named
)


class PackingClass(msgspec.Struct, frozen=True):
    """What is known of a source from its key or content. Different classes never share a group."""

    kind: str
    compression: Compression
    header: bytes = b""
    dialect: bytes = b""
    declared: str = ""


# Keys and headers of records, which Kafka Connect's S3 sink writes beside their values as
# <topic>+<partition>+<offset>.keys.json.
_BESIDE_VALUES = (".keys.", ".headers.")
# Compressed within itself, whatever its name says.
_PARQUET = PackingClass(Format.PARQUET, Compression.ZSTD)


def class_of(key: str, settings: Settings, signature: Signature | None = None) -> PackingClass:
    """Return the class of a source by what is declared, its key, and its signature if known."""
    declaration = settings.declared(key)
    if is_merged(key, declaration):
        # Of sources whose columns clash with those of most others, the signature has the columns.
        dialect = signature.dialect if signature is not None else b""
        known = msgspec.structs.replace(_PARQUET, dialect=dialect) if dialect else _PARQUET
        declared = ""
    else:
        known = packing_class(key, signature)
        declared = declaration.text if declaration is not None else ""
    declared += next((part for part in _BESIDE_VALUES if part in key), "")
    return msgspec.structs.replace(known, declared=declared) if declared else known


def packing_class(key: str, signature: Signature | None = None) -> PackingClass:
    """Return the class of a source by its key, or by its signature if its content was read."""
    if signature is not None:
        return PackingClass(
            signature.format, signature.compression, signature.header, signature.dialect
        )
    name = key.rpartition("/")[2]
    if "_" not in name:
        # Then only the extension can match. There are few, so the cache is effective.
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
    """Replace a long header by its digest, which is enough for the next plan to distinguish it."""
    if len(signature.header) <= _LONG_HEADER_BYTES:
        return signature
    digest = hashlib.blake2b(signature.header, digest_size=_LONG_HEADER_BYTES).digest()
    return replace(signature, header=digest)


COMPRESSED_TARGET_BYTES = 128 * MIB
# Readers split plain lines anywhere, so larger outputs are still read in parallel.
PLAIN_TARGET_BYTES = 1024 * MIB
# Log data shrinks to between a third and a tenth under gzip and zstd. A fixed factor keeps the
# packing, and so the group id, independent of measurements.
ASSUMED_RATIO = 5


def output_form(settings: Settings, key: str) -> OutputForm:
    """Return how the output of a source and those like it is written.

    Parquet is not encoded as a whole, but the sizes of its content are those of encoded bytes.
    """
    declaration = settings.declared(key)
    rows = settings.output_format == "parquet" or is_merged(key, declaration)
    lines = declaration is not None and declaration.lines
    return _output_form("zstd" if rows else settings.compression, lines=lines, rows=rows)


@cache
def _output_form(compression: str, *, lines: bool, rows: bool) -> OutputForm:
    encoded = None if compression == "same" else Compression(compression)
    return OutputForm(encoded, lines=lines, rows=rows)


def target_bytes(settings: Settings, output: Compression) -> int:
    """Return the target size of an output in its encoded form, bytes."""
    if settings.target_bytes is not None:
        return settings.target_bytes
    return PLAIN_TARGET_BYTES if output is Compression.NONE else COMPRESSED_TARGET_BYTES


def stored_bytes(size: int, source: Compression, output: Compression) -> float:
    """Return the expected size in an output, encoded, of sources with this many stored bytes."""
    if source is Compression.NONE and output is not Compression.NONE:
        return size / ASSUMED_RATIO
    if source is not Compression.NONE and output is Compression.NONE:
        return size * ASSUMED_RATIO
    return size
