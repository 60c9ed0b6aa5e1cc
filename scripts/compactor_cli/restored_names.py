"""Segments of keys as names of files: which cannot be any, and what they are called instead."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

# POSIX has no longer names on any file system in use; some have shorter ones.
_LONGEST_NAME_BYTES = 255
_NO_NAMES = frozenset({"", ".", ".."})
# What ends a name beside "/", which ends segments: nothing on POSIX, more on Windows.
_ENDS_NAMES = frozenset("\\:") if os.name == "nt" else frozenset()
_NEVER_IN_NAMES = frozenset("\0/")
_KEPT_BYTES = 180
_DIGEST_BYTES = 16


def fault_of(segment: str, directory: Path) -> str:
    """Why a segment of a key is no name below a directory, in words; empty where it is one."""
    if segment in _NO_NAMES:
        return f"has the segment {segment!r}, which is no name"
    if _NEVER_IN_NAMES.union(_ENDS_NAMES).intersection(segment):
        return f"has the segment {segment!r}, which no file can be called"
    try:
        size = len(os.fsencode(segment))
    except UnicodeEncodeError:
        return f"has the segment {segment!r}, which cannot be a name in this locale"
    longest = longest_name(directory)
    if size > longest:
        return f"would have a name of {size} bytes, the most are {longest}"
    return ""


def escaped(segment: str, directory: Path) -> str:
    """What a segment is called that cannot be a name; different ones stay different.

    Bytes that cannot stand in it are written as ``%`` and two digits, and so is ``%`` itself. What
    is too long is cut, and a digest of the whole is appended.
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
    """Bytes of the longest name that the file system of a directory takes."""
    there = next((one for one in (directory, *directory.absolute().parents) if one.is_dir()), None)
    try:
        most = os.pathconf(there, "PC_NAME_MAX") if there is not None else _LONGEST_NAME_BYTES
    except (AttributeError, OSError, ValueError):
        # Not on Windows, and not on every file system.
        most = _LONGEST_NAME_BYTES
    return min(most, _LONGEST_NAME_BYTES) if most > 0 else _LONGEST_NAME_BYTES


def _encodes(character: str) -> bool:
    try:
        os.fsencode(character)
    except UnicodeEncodeError:
        return False
    return True


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
