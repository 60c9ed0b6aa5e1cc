"""What S3 stores with an object besides its bytes: Content-Encoding, user metadata and tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

META_PREFIX = "x-amz-meta-"
_ENCODING = "content-encoding"
_TAG_COUNT = "x-amz-tagging-count"
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
        tags: names and values, in order of the names; None if there may be some that are unknown.
    """

    encoding: str = ""
    metadata: Pairs = ()
    tags: Pairs | None = ()

    @property
    def is_client_encrypted(self) -> bool:
        """Whether this object, or the one it has decryption data for, was encrypted by a client."""
        return any(name in _CLIENT_ENCRYPTION for name, _ in self.metadata)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request that writes an object with these attributes."""
        found = {f"{META_PREFIX}{name}": value for name, value in self.metadata}
        if self.encoding:
            found[_ENCODING] = self.encoding
        if self.tags:
            found["x-amz-tagging"] = urlencode(self.tags, quote_via=quote)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes that are set, for display."""
        found = {
            "encoding": self.encoding,
            "metadata": dict(self.metadata),
            "tags": dict(self.tags or ()),
        }
        return {name: value for name, value in found.items() if value}

    @property
    def cost(self) -> int:
        """Their length in characters."""
        return len(self.encoding) + sum(map(_length, (*self.metadata, *(self.tags or ()))))


def pairs_of(found: Mapping[str, str]) -> Pairs:
    """Return names and values, in order of the names."""
    return tuple(sorted(found.items()))


def from_headers(headers: Iterable[tuple[str, str]]) -> Attributes | None:
    """Return the attributes in the headers of a GET or HEAD, or None.

    Args:
        headers: with names in any case.
    """
    encoding, metadata, tagged = "", {}, False
    for header, value in headers:
        name = header.lower()
        if name.startswith(META_PREFIX):
            metadata[name.removeprefix(META_PREFIX)] = value
        elif name == _ENCODING:
            encoding = value
        elif name == _TAG_COUNT:
            tagged = value != "0"
    if not (encoding or metadata or tagged):
        return None
    return Attributes(encoding, pairs_of(metadata), None if tagged else ())


def _length(pair: tuple[str, str]) -> int:
    return len(pair[0]) + len(pair[1])
