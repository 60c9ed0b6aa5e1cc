"""JSON of a known shape, decoded by many threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

_T = TypeVar("_T")


def decoder(kind: type[_T]) -> Callable[[bytes], _T]:
    """A function that decodes JSON of one kind; to be made while a module is imported.

    msgspec (0.22) works out a type when it first decodes it, and crashes the process when two
    threads do so at once: a decoder that is made before there are threads knows its type.

    Raises (the function):
        msgspec.MsgspecError, ValueError: the bytes are not JSON of this kind.
    """
    return msgspec.json.Decoder(kind).decode
