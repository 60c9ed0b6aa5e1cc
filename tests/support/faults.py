"""Kinds of faults, and the requests that they affect."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from enum import StrEnum
from random import Random
from urllib.parse import parse_qsl, unquote, urlsplit


class Fault(StrEnum):
    """A fault of one request; the value is its name in reports."""

    LATENCY = "latency"
    RESET = "connection reset before the request was read"
    HALF_REQUEST = "connection reset in the middle of a request body"
    LOST_ANSWER = "answer lost after the request was done"
    CUT_ANSWER = "connection reset in the middle of an answer body"
    SHORT_ANSWER = "answer body shorter than told"
    SLOW_DOWN = "503 SlowDown, in bursts"
    INTERNAL_ERROR = "500 InternalError"
    CONFLICT = "409 ConditionalRequestConflict"
    SILENCE = "no answer for long, then a reset"
    FLIPPED_ANSWER = "wrong byte in an answer body"
    FLIPPED_REQUEST = "wrong byte in a request body"
    KILLED_BEFORE = "worker killed before its request was done"
    KILLED_AFTER = "worker killed after its request was done"
    CLOCK_JUMP = "clock of the workers jumped"
    SKEWED = "403 RequestTimeTooSkewed to a clock that is wrong"


REFUSALS: Mapping[Fault, tuple[int, str, str]] = {
    Fault.SLOW_DOWN: (503, "SlowDown", "Please reduce your request rate."),
    Fault.INTERNAL_ERROR: (500, "InternalError", "We encountered an internal error."),
    Fault.CONFLICT: (409, "ConditionalRequestConflict", "A conflicting operation occurred."),
    Fault.SKEWED: (
        403,
        "RequestTimeTooSkewed",
        "The difference between the request time and the current time is too large.",
    ),
}
"""Status, code and message of S3's own answers."""

NEED_BODY = (Fault.HALF_REQUEST, Fault.FLIPPED_REQUEST)
IN_ANSWER = (Fault.CUT_ANSWER, Fault.SHORT_ANSWER, Fault.FLIPPED_ANSWER)
KILLS = (Fault.KILLED_BEFORE, Fault.KILLED_AFTER)


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        operation: GET, HEAD, LIST, UPLOADS, PUT, PART, COPY, CREATE, COMPLETE, ABORT or DELETE.
        path: ``/bucket/key``, decoded; for a listing ``/bucket/prefix``.
        part: the part number; empty if it is not about a part.
        port: the client's port on the loopback interface.
        date: when it was signed, by the client's clock; empty if not given.
    """

    operation: str
    path: str
    part: str
    port: int
    date: str

    @classmethod
    def read(cls, method: str, target: str, headers: Message, port: int) -> Request:
        """Return the request of an HTTP request head."""
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        path = unquote(parts.path)
        operation = _operation(method, query, copies="x-amz-copy-source" in headers)
        if operation in {"LIST", "UPLOADS"}:
            path = f"{path.rstrip('/')}/{query.get('prefix', '')}"
        date = headers.get("x-amz-date", "")
        return cls(operation, path, query.get("partNumber", ""), port, date)


def _operation(method: str, query: Mapping[str, str], *, copies: bool) -> str:
    if "partNumber" in query:
        return "COPY" if copies else "PART"
    if method == "POST":
        return {"uploads": "CREATE", "delete": "DELETE"}.get(next(iter(query), ""), "COMPLETE")
    if method == "DELETE":
        return "ABORT" if "uploadId" in query else "DELETE"
    if method == "GET" and "list-type" in query:
        return "LIST"
    return "UPLOADS" if method == "GET" and "uploads" in query else method


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault, and the requests that it may affect.

    Attributes:
        share: the share of those requests that it affects, 0 to 1.
        operations: see :class:`Request`; empty for all.
        path: pattern that must be found in the path.
        most: the maximum number of times; None for no limit.
    """

    fault: Fault
    share: float
    operations: Sequence[str] = ()
    path: str = ""
    most: int | None = None

    def fits(self, request: Request, *, body: bool) -> bool:
        """Return whether the fault could affect this request."""
        if self.operations and request.operation not in self.operations:
            return False
        if self.fault in NEED_BODY and not body:
            return False
        return re.search(self.path, request.path) is not None


def flipped(body: bytes, dice: Random) -> bytes:
    """Return the body with the lowest bit of one byte flipped, so that text stays text.

    The byte is in the second half, because the head of a gzip file has bytes without meaning.
    """
    at = dice.randrange(len(body) // 2, len(body))
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
