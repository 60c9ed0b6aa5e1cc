"""Answers to GET, read from the bytes that came of them; only those whose end is certain."""

from __future__ import annotations

import re
from typing import NamedTuple

OK = 200
_REFUSED = 400
_HEAD_BYTES = 16 * 1024
_BLANK_LINE = b"\r\n\r\n"
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})[ \r]")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r\n")
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n")
_UNUSUAL = re.compile(rb"\r\n(?:transfer-encoding|content-encoding|content-range):")
_CLOSES = re.compile(rb"\r\nconnection:[ \t]*close[ \t]*\r\n")
_ETAG = re.compile(rb'\r\netag:[ \t]*"([^"\r\n]*)"[ \t]*\r\n')
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,7})[^\r\n]*\r\n")


class NotPlain(Exception):
    """A success of a kind that is not known here."""


class Answered(NamedTuple):
    """An answer that is all there.

    Attributes:
        etag: in small letters, without quotes; empty for none.
        stays: the connection can be used again.
    """

    status: int
    etag: str
    body: bytes
    stays: bool


def answer_in(arrived: bytes) -> Answered | None:
    """The one answer that these bytes are.

    Args:
        arrived: what came since the request was sent.

    Returns:
        None as long as more is to come.

    Raises:
        NotPlain: it is a success, and not to be read here.
        ConnectionError: it is none, and not to be read here; or there is more than an answer.
    """
    end = arrived.find(_BLANK_LINE)
    if end < 0:
        if len(arrived) > _HEAD_BYTES:
            raise ConnectionError("an answer without an end of its head")
        return None
    head, begin = arrived[: end + 2].lower(), end + len(_BLANK_LINE)
    status = _STATUS.match(arrived)
    number = int(status[1]) if status is not None else 0
    length = _LENGTH.search(head) if head.count(b"\r\ncontent-length") == 1 else None
    if length is not None and _UNUSUAL.search(head) is None:
        body = _of_length(arrived, begin, int(length[1]))
    elif number == OK:
        raise NotPlain
    else:
        body = _in_chunks(arrived, begin) if length is None and _CHUNKED.search(head) else b""
    if number != OK and (number < _REFUSED or body == b""):
        raise ConnectionError("an answer that says nothing here")
    etag = _ETAG.search(head)
    told = etag[1].decode("latin-1") if etag is not None else ""
    return None if body is None else Answered(number, told, body, _CLOSES.search(head) is None)


def _of_length(arrived: bytes, begin: int, length: int) -> bytes | None:
    if len(arrived) - begin > length:
        raise ConnectionError("more than the answer")
    return arrived[begin:] if len(arrived) - begin == length else None


def _in_chunks(arrived: bytes, at: int) -> bytes | None:
    """A body whose pieces tell their own length, without trailers: S3 sends its errors so."""
    pieces: list[bytes] = []
    while (size := _CHUNK.match(arrived, at)) is not None:
        begin, length = size.end(), int(size[1], 16)
        at = begin + length + 2
        if len(arrived) < at:
            return None
        if arrived[at - 2 : at] != b"\r\n" or (not length and len(arrived) > at):
            raise ConnectionError("a body that is not what its chunks tell")
        if not length:
            return b"".join(pieces)
        pieces.append(arrived[begin : begin + length])
    if b"\r\n" in arrived[at:]:
        raise ConnectionError("a body without the length of a chunk")
    return None
