"""What the key of a source shows of its content and compression; by it, sources share outputs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import lru_cache

import msgspec

from compactor.formats import SPECS
from compactor.model import Compression, Signature

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
    """What the key (or a look inside, once taken) shows; classes never share a group."""

    kind: str
    compression: Compression
    header: bytes = b""
    dialect: bytes = b""


def packing_class(key: str, signature: Signature | None = None) -> PackingClass:
    """Class of a source by its key, or by its signature when its content was seen already."""
    if signature is not None:
        return PackingClass(
            signature.format, signature.compression, signature.header, signature.dialect
        )
    name = key.rpartition("/")[2]
    if "_" not in name:
        # Without it only the end shows it, and ends are few.
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
    """What the next plan needs to distinguish this signature from others: no more of its header."""
    if len(signature.header) <= _LONG_HEADER_BYTES:
        return signature
    digest = hashlib.blake2b(signature.header, digest_size=_LONG_HEADER_BYTES).digest()
    return replace(signature, header=digest)
