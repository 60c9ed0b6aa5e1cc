"""What S3 stores with an object besides its bytes, as far as each GET returns it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

META_PREFIX = "x-amz-meta-"
# What S3 stores if the writer names no type.
_NO_TYPE = "binary/octet-stream"
# User metadata in which Amazon S3 encryption clients of all versions store how to decrypt.
_CLIENT_ENCRYPTION = frozenset(
    {
        *("x-amz-key", "x-amz-key-v2", "x-amz-iv", "x-amz-matdesc", "x-amz-wrap-alg"),
        *("x-amz-cek-alg", "x-amz-tag-len", "x-amz-unencrypted-content-length"),
        *("x-amz-crypto-instr-file", "x-amz-c", "x-amz-3", "x-amz-w", "x-amz-d", "x-amz-i"),
        *("x-amz-m", "x-amz-t"),
    }
)

Pairs = tuple[tuple[str, str], ...]


class Attributes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What S3 stores with one object besides its bytes. Made only if there is something.

    Attributes:
        encoding: its Content-Encoding.
        metadata: lower-case names and values, as S3 sends them, in order of the names.
        content_type: its Content-Type; empty for S3's default.
    """

    encoding: str = ""
    metadata: Pairs = ()
    content_type: str = ""

    @property
    def is_client_encrypted(self) -> bool:
        """Whether this object, or the one it has decryption data for, was encrypted by a client."""
        return any(name in _CLIENT_ENCRYPTION for name, _ in self.metadata)

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes that are set, for display."""
        found = {
            "encoding": self.encoding,
            "metadata": dict(self.metadata),
            "content_type": self.content_type,
        }
        return {name: value for name, value in found.items() if value}


def pairs_of(found: Mapping[str, str]) -> Pairs:
    """Return names and values, in order of the names."""
    return tuple(sorted(found.items()))


def from_headers(headers: Iterable[tuple[str, str]]) -> Attributes | None:
    """Return the attributes in the headers of a GET or HEAD, or None.

    Args:
        headers: with names in any case.
    """
    encoding, metadata, content_type = "", {}, ""
    for header, value in headers:
        name = header.lower()
        if name.startswith(META_PREFIX):
            metadata[name.removeprefix(META_PREFIX)] = value
        elif name == "content-encoding":
            encoding = value
        elif name == "content-type" and value != _NO_TYPE:
            content_type = value
    if not (encoding or metadata or content_type):
        return None
    return Attributes(encoding, pairs_of(metadata), content_type)


@lru_cache(maxsize=1_000)
def of_type(content_type: str) -> Attributes | None:
    """Return the attributes of an object with this Content-Type and nothing else."""
    return from_headers([("content-type", content_type)])
