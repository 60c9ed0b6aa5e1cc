"""Segments of keys as file names: which are invalid, and how those are escaped."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

# The limit of most file systems; some have a lower one.
_LONGEST_NAME_BYTES = 255
_NO_NAMES = frozenset({"", ".", ".."})
# Characters that separate names on Windows, besides "/", which ends segments.
_ENDS_NAMES = frozenset("\\:") if os.name == "nt" else frozenset()
_NEVER_IN_NAMES = frozenset("\0/")
_KEPT_BYTES = 180
_DIGEST_BYTES = 16


def fault_of(segment: str, directory: Path) -> str:
    """Return why a segment of a key is not a valid file name; empty if it is."""
    if segment in _NO_NAMES:
        return f"has the segment {segment!r}, which is not a name"
    if _NEVER_IN_NAMES.union(_ENDS_NAMES).intersection(segment):
        return f"has the segment {segment!r}, which is not a valid file name"
    try:
        size = len(os.fsencode(segment))
    except UnicodeEncodeError:
        return f"has the segment {segment!r}, which cannot be encoded in this locale"
    longest = longest_name(directory)
    if size > longest:
        return f"would have a name of {size} bytes; the limit is {longest}"
    return ""


def escaped(segment: str, directory: Path) -> str:
    """Return a valid file name for a segment; different segments get different names.

    Bytes that are not allowed, and ``%`` itself, become ``%`` and two hexadecimal digits. A name
    that is too long is cut, and a digest of the whole segment is appended.
    """
    if not fault_of(segment, directory):
        return segment
    if segment in _NO_NAMES:
        return "%" + segment.replace(".", "2E%").removesuffix("%")
    refused = _NEVER_IN_NAMES | _ENDS_NAMES | {"%"}
    name = "".join(_percent(one) if one in refused or not _encodes(one) else one for one in segment)
    if not fault_of(name, directory):
        return name
    digest = hashlib.blake2b(segment.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES)
    tail = f"%{digest.hexdigest()}"
    room = min(_KEPT_BYTES, longest_name(directory) - len(tail))
    return os.fsencode(name)[:room].decode("utf-8", "ignore") + tail


@cache
def longest_name(directory: Path) -> int:
    """Return the maximum bytes of a file name in a directory."""
    there = next((one for one in (directory, *directory.absolute().parents) if one.is_dir()), None)
    try:
        limit = os.pathconf(there, "PC_NAME_MAX") if there is not None else _LONGEST_NAME_BYTES
    except (AttributeError, OSError, ValueError):
        # Windows and some file systems do not report it.
        limit = _LONGEST_NAME_BYTES
    return min(limit, _LONGEST_NAME_BYTES) if limit > 0 else _LONGEST_NAME_BYTES


def _encodes(character: str) -> bool:
    try:
        os.fsencode(character)
    except UnicodeEncodeError:
        return False
    return True


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
