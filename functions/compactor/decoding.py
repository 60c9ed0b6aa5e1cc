"""JSON documents of a known shape and version, decoded by many threads.

The rule of versions, for every document of the state: from version 1 on, what an earlier version
of this program wrote is read, and what a later one wrote in a version that is not known here is
refused. Fields that are not known, in a version that is, are passed over. ``docs/format.md`` has
them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from compactor.errors import IntegrityError

_T = TypeVar("_T")


def decoder(kind: type[_T]) -> Callable[[bytes], _T]:
    """A function that decodes JSON of one kind; to be made while a module is imported.

    msgspec (0.22) works out a type when it first decodes it, and crashes the process when two
    threads do so concurrently: a decoder that is made before there are threads knows its type.

    Raises (the function):
        msgspec.MsgspecError, ValueError: the bytes are not JSON of this kind.
    """
    return msgspec.json.Decoder(kind).decode


class _Numbered(msgspec.Struct):
    """Any document."""

    version: int | None = None


_decode_version = decoder(_Numbered)


def numbered(document: object, version: int) -> dict[str, Any]:
    """A document, ready for JSON, that names its version."""
    return {"version": version, **msgspec.to_builtins(document)}


def require_version(where: str, body: bytes, newest: int) -> None:
    """Refuse a document of a version that this program does not know.

    Args:
        where: its URI.
        body: the document; what is no JSON object is left to the decoder.
        newest: the last version that this program knows, from 1.

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
    decode: Callable[[bytes], _T], where: str, body: bytes, newest: int, *, way_out: str = ""
) -> _T:
    """A stored document again.

    Args:
        decode: of :func:`decoder`.
        where: its URI.
        body: the document.
        newest: the last version that this program knows.
        way_out: what to do about one that is damaged; shown after the fault.

    Raises:
        IntegrityError: it is damaged, or a later version of this program wrote it.
    """
    require_version(where, body, newest)
    try:
        return decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        remedy = f"; {way_out}" if way_out else ""
        raise IntegrityError(f"{where} is damaged: {error}{remedy}") from error
