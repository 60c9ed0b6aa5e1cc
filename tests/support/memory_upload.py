"""Multipart uploads of the in-memory store, with S3's rules."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compactor.attributes import Attributes
from compactor.model import StoredPart

MAX_PARTS = 10_000
MAX_PART_BYTES = 5 * 1024**3


class _Part(NamedTuple):
    body: bytes
    digest: bytes


class Assembled(NamedTuple):
    """The object that an upload becomes."""

    body: bytes
    etag: str


@dataclass(slots=True)
class Upload:
    """A multipart upload, whose parts cannot be read before it is completed."""

    key: str
    content_type: str
    began: float
    max_part_bytes: int = MAX_PART_BYTES
    metadata: Mapping[str, str] = field(default_factory=dict)
    attributes: Attributes | None = None
    parts: dict[int, _Part] = field(default_factory=dict)

    def add(self, number: int, body: bytes) -> StoredPart:
        assert 1 <= number <= MAX_PARTS, f"InvalidArgument: part number {number}"
        assert len(body) <= self.max_part_bytes, f"EntityTooLarge: {len(body)} bytes"
        digest = md5(body)
        self.parts[number] = _Part(body, digest)
        return StoredPart(number, digest.hex(), len(body), zlib.crc32(body))

    def assemble(self, listed: Sequence[StoredPart], min_part_bytes: int) -> Assembled:
        """Assemble these parts into one object, by S3's rules for CompleteMultipartUpload."""
        assert listed, "MalformedXML: an upload has at least one part"
        numbers = [part.number for part in listed]
        assert numbers == sorted(set(numbers)), f"InvalidPartOrder: {numbers}"
        parts = [self._as_listed(part) for part in listed]
        small = [len(part.body) for part in parts[:-1] if len(part.body) < min_part_bytes]
        assert not small, f"EntityTooSmall: parts of {small} bytes before the last"
        etag = f"{md5(b''.join(part.digest for part in parts)).hex()}-{len(parts)}"
        return Assembled(b"".join(part.body for part in parts), etag)

    def _as_listed(self, listed: StoredPart) -> _Part:
        part = self.parts.get(listed.number)
        assert part is not None, f"InvalidPart: {listed.number} was not stored"
        assert listed.etag == part.digest.hex(), f"InvalidPart: {listed}"
        assert listed.size == len(part.body), f"InvalidPart: {listed} has {len(part.body)} bytes"
        return part


def md5(body: bytes) -> bytes:
    return hashlib.md5(body, usedforsecurity=False).digest()
