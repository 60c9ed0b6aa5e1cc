"""Answers to GET, read from the bytes that came of them; only those whose end is certain."""

from __future__ import annotations

import re
from typing import NamedTuple

from compactor.attributes import Attributes, from_headers

OK = 200
_REFUSED = 400
_HEAD_BYTES = 16 * 1024
# Of an answer that says why not; S3's have less than one.
_REFUSAL_BYTES = 64 * 1024
_BLANK_LINE = b"\r\n\r\n"
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})[ \r]")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r\n")
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n")
_UNUSUAL = re.compile(rb"\r\n(?:transfer-encoding|content-range)[ \t]*:")
_ENCODED = re.compile(rb"\r\ncontent-encoding[ \t]*:")
# Headers that tell of an object what is beside its bytes.
_OF_OBJECT = (b"\r\nx-amz-meta-", b"\r\nx-amz-tagging-count", b"\r\ncontent-encoding")
_CLOSES = re.compile(rb"\r\nconnection:[^\r\n]*\bclose\b")
_ETAG = re.compile(rb'\r\netag:[ \t]*"([^"\r\n]*)"[ \t]*\r\n')
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,7})[^\r\n]*\r\n")


class NotPlain(Exception):
    """A success of a kind that is not known here."""


class Answered(NamedTuple):
    """An answer that is all there.

    Attributes:
        etag: in small letters, without quotes; empty for none.
        stays: the connection can be used again.
        attributes: what a success tells of its object beside its bytes.
    """

    status: int
    etag: str
    body: bytes
    stays: bool
    attributes: Attributes | None = None


def answer_in(arrived: bytes, size: int) -> Answered | None:
    """The one answer that these bytes are.

    Args:
        arrived: what came since the request was sent.
        size: bytes of the object that is asked for. A success of any other length is none, which
            its head tells: what an answer may make its reader hold is bounded.

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
    if number == OK:
        body = _success(arrived, head, begin, size)
    elif number >= _REFUSED and _ENCODED.search(head) is None:
        body = _refusal(arrived, head, begin)
    else:
        raise ConnectionError("an answer that says nothing here")
    if body is None:
        return None
    if not body and number != OK:
        raise ConnectionError("an answer that says nothing here")
    etag = _ETAG.search(head)
    told = etag[1].decode("latin-1") if etag is not None else ""
    attributes = _attributes(arrived, head) if number == OK else None
    return Answered(number, told, body, _CLOSES.search(head) is None, attributes)


def _attributes(arrived: bytes, head: bytes) -> Attributes | None:
    """None for nothing, which costs three searches."""
    if not any(one in head for one in _OF_OBJECT):
        return None
    # The values of headers keep their case.
    lines = arrived[: len(head)].decode("latin-1").split("\r\n")[1:-1]
    fields = (line.partition(":") for line in lines)
    return from_headers((name.strip(), value.strip()) for name, _, value in fields)


def _success(arrived: bytes, head: bytes, begin: int, size: int) -> bytes | None:
    """A whole object; it may have been stored with an encoding, in which it comes."""
    length = _length(head)
    if length is None:
        raise NotPlain
    if length != size:
        raise ConnectionError("a body of another length")
    return _of_length(arrived, begin, length)


def _refusal(arrived: bytes, head: bytes, begin: int) -> bytes | None:
    """What an answer tells that is no success."""
    if len(arrived) > _HEAD_BYTES + _REFUSAL_BYTES:
        raise ConnectionError("an answer that tells too much")
    length = _length(head)
    if length is not None:
        return _of_length(arrived, begin, length)
    if b"\r\ncontent-length" not in head and _CHUNKED.search(head) is not None:
        return _in_chunks(arrived, begin)
    raise ConnectionError("an answer whose end is not certain")


def _length(head: bytes) -> int | None:
    """None where there is not one, or it does not say where the body ends."""
    if head.count(b"\r\ncontent-length") != 1 or _UNUSUAL.search(head) is not None:
        return None
    found = _LENGTH.search(head)
    return int(found[1]) if found is not None else None


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
