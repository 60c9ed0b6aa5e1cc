"""The records in an object, read with nothing of the compactor's own.

This is the second opinion of :mod:`scripts.audit`: simple, slow, and on purpose without the
code that wrote the outputs. JSON is compared by value (its spacing may change when objects
without newlines between them are put on lines), everything else line by line.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import zstandard

_SPACE = re.compile(r"[ \t\r\n]*")
_HEADED_KEY = re.compile(r"\.[ct]sv(\.gz|\.gzip|\.zst|\.zstd)?$", re.IGNORECASE)
# The header of VPC flow logs: nothing but names of fields, these among them.
_FLOW_HEADER = re.compile(r"(?=.*\b(srcaddr|interface-id)\b)[a-z][a-z0-9-]*( [a-z][a-z0-9-]*)+")


def plain_text(content: bytes) -> str:
    """The decompressed content as text; bytes that are no UTF-8 are kept as surrogates."""
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    elif content.startswith(b"\x28\xb5\x2f\xfd"):
        reader = zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True)
        content = reader.read()
    return content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def records(key: str, content: bytes) -> Iterator[str]:
    """The records of one object in a form that is equal for equal records.

    Args:
        key: decides only whether the first line is a CSV header.
        content: the object as stored.

    Raises:
        OSError, EOFError, zlib.error, ZstdError: the content does not decompress.
    """
    text = plain_text(content)
    if text.lstrip()[:1] in ("{", "["):
        values = _json_values(text)
        if values is not None:
            yield from (_canonical(record) for value in values for record in _inner(value))
            return
    for number, line in enumerate(text.split("\n")):
        record = line.removesuffix("\r")
        if record and not _is_header(key, number, record):
            yield from _from_line(record)


def _from_line(line: str) -> Iterator[str]:
    values = _json_values(line) if line.lstrip()[:1] in ("{", "[") else None
    if values is None:
        yield line
    else:
        yield from (_canonical(value) for value in values)


def _is_header(key: str, number: int, line: str) -> bool:
    if line.startswith(("#Version:", "#Fields:")):
        return True
    if number:
        return False
    return bool(_HEADED_KEY.search(key) or _FLOW_HEADER.fullmatch(line))


def _json_values(text: str) -> list[Any] | None:
    """The JSON values a text consists of, with or without anything between them."""
    values = []
    at = _end_of_space(text, 0)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        values.append(value)
        at = _end_of_space(text, at)
    return values


def _inner(value: Any) -> list[Any]:
    """The records inside a CloudTrail document; any other value is one record."""
    if isinstance(value, _Pairs) and len(value) == 2 and value[1][0] == "Records":
        inner = value[1][1]
        if isinstance(inner, list):
            return inner
    return [value]


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its order and its repeated names, behind a mark that no list has."""


def _pairs(pairs: list[tuple[str, Any]]) -> _Pairs:
    return _Pairs([("object", len(pairs)), *pairs])


def _number(text: str) -> list[str]:
    # 1.10 must not become 1.1 on one side only.
    return ["number", text]


def _canonical(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _end_of_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_number, parse_int=_number)
