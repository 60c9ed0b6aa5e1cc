"""JSON documents of a known type and version, decoded by many threads.

The rule of versions, for every document of the state: versions of earlier releases, from 1 on,
are read; versions that are not known here, from later releases, are rejected. Unknown fields of a
known version are ignored. ``docs/format.md`` lists all documents.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from compactor.errors import EARLIER_VERSION, IntegrityError, damaged

_T = TypeVar("_T")
# What decoding raises for bytes that differ from what was written.
_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OSError,
    EOFError,
    RecursionError,
    zlib.error,
    msgspec.MsgspecError,
)


def decoder(kind: type[_T]) -> Callable[[bytes], _T]:
    """Return a function that decodes JSON of one type. Call it while a module is imported.

    msgspec (0.22) analyses a type when it first decodes it, and crashes the process if two threads
    do so concurrently. A decoder that is made before there are threads has its type analysed.

    Raises (the function):
        msgspec.MsgspecError, ValueError: the bytes are not JSON of this type.
    """
    return msgspec.json.Decoder(kind).decode


class _Numbered(msgspec.Struct):
    """The version of any document."""

    version: int | None = None


_decode_version = decoder(_Numbered)


def numbered(document: object, version: int) -> dict[str, Any]:
    """Return a document as a JSON object with its version."""
    return {"version": version, **msgspec.to_builtins(document)}


def require_version(where: str, body: bytes, newest: int) -> None:
    """Reject a document of a version that this program cannot read.

    Args:
        where: its URI.
        body: the document. Anything but a JSON object is left to the decoder.
        newest: the newest version that this program can read, from 1.

    Raises:
        IntegrityError: names the document, its version and the accepted ones.
    """
    try:
        found = _decode_version(body).version
    except (msgspec.MsgspecError, ValueError):
        return
    if found is None or not 1 <= found <= newest:
        known = "version 1" if newest == 1 else f"versions 1 to {newest}"
        has = "no version" if found is None else f"version {found}"
        raise IntegrityError(
            f"{where} has {has}, and this program reads {known}: it takes the program that wrote"
            " it, or a later one"
        )


def decoded(
    decode: Callable[[bytes], _T],
    where: str,
    body: bytes,
    newest: int = 0,
    *,
    way_out: str = EARLIER_VERSION,
) -> _T:
    """Return a stored document, decoded.

    Args:
        decode: returns the document; made by :func:`decoder`, if it is JSON.
        where: its URI.
        body: the document.
        newest: the newest version that this program can read; 0 for documents without a version,
            and where ``decode`` looks at it.
        way_out: what to do about a damaged document.

    Raises:
        IntegrityError: it is damaged, or a later version of this program wrote it.
    """
    if newest:
        require_version(where, body, newest)
    try:
        return decode(body)
    except _DAMAGE as error:
        raise damaged(where, error, way_out) from error
