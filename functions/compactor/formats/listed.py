"""Documents with one list of records and other fields beside it: spliced if those fields agree.

The fields beside the list are part of the signature, so only sources in which they are equal, value
by value and in the same order, share an output, which has them once. The fields that may be there
are known for each list. Any other field would be lost, or would describe one delivery only, so a
document that has one is left alone and the field is named. The decision needs the whole source.

A document on one line is a line of JSON lines, whose readers accept any fields. The exception is
one that begins with ``Records``, which no writer writes line by line.

Sources: AWS Config, delivery of configuration items (``configurationItems``); Kinesis Data Streams
API, GetRecords (``Records``); CloudWatch Logs, subscription filters (``logEvents``); Security Hub
API, GetFindings (``Findings``); Amazon Inspector, findings reports (``findings``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from compactor.errors import UnreadableSource
from compactor.formats.cloudtrail import OPENING
from compactor.formats.framing import Framed
from compactor.formats.lines import BOM
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look, malformed
from compactor.formats.splicing import proven, refuse_blanks, spliced, without_records
from compactor.model import Format, QuarantineReason

#: By list, the fields that may be beside it.
_FIELDS: dict[bytes, frozenset[bytes]] = {
    b"configurationItems": frozenset({b"fileVersion"}),
    b"Records": frozenset({b"MillisBehindLatest"}),
    b"logEvents": frozenset(
        {b"messageType", b"owner", b"logGroup", b"logStream", b"subscriptionFilters"}
    ),
    b"Findings": frozenset(),
    b"findings": frozenset(),
}
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\Z")
# JSON lines never begin like this: a document on several lines, or one of Records.
_BEGINS = re.compile(rb'[ \t\r\n]*\{(?:[ \t\r]*\n|[ \t]*"Records")')
_ENDS_WITH_LIST = re.compile(rb"\][ \t\r\n]*\}[ \t\r\n]*\Z")
_END_BYTES = 256
_W = rb"[ \t\r\n]*+"
_STRING = rb'"(?:[^"\\]|\\.)*+"'
_STRINGS = rb"\[" + _W + _STRING + rb"(?:" + _W + rb"," + _W + _STRING + rb")*+" + _W + rb"\]"
_VALUE = rb"(?:" + _STRING + rb"|-?[0-9][0-9.eE+-]*+|true|false|null|" + _STRINGS + rb")"
_FIELD = _STRING + _W + rb":" + _W + _VALUE
_NAMES = rb'"(' + rb"|".join(_FIELDS) + rb')"'
_OPENING = re.compile(
    rb"(?:\xef\xbb\xbf)?%b\{%b((?:%b%b,%b)*+)%b%b:%b\[(?=%b[{\]])"
    % (_W, _W, _FIELD, _W, _W, _NAMES, _W, _W, _W),
    re.DOTALL,
)
_CLOSING = re.compile(rb"\]((?:%b,%b%b)*+)%b\}%b\Z" % (_W, _W, _FIELD, _W, _W), re.DOTALL)
_EACH = re.compile(rb"(%b)%b:%b(%b)" % (_STRING, _W, _W, _VALUE), re.DOTALL)
_EMPTY_LIST = re.compile(_NAMES + rb":\[\]")
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_LONGEST_HEADER = 16 << 10
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Document(NamedTuple):
    """One document.

    Attributes:
        start, end: of the bytes between the brackets of its list.
        header: the document without blanks and records.
    """

    start: int
    end: int
    header: bytes


def _parsed(content: bytes) -> _Document | None:
    """Return the parts of a document; None if it is not a document with a known list.

    Raises:
        UnreadableSource: UNKNOWN_FORMAT, there is another field beside the list.
    """
    opening = _OPENING.match(content)
    if opening is None:
        return None
    name = opening[2]
    start = opening.end()
    try:
        listed = _decoded(content)[name.decode()]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, KeyError):
        return None
    end = start + memoryview(listed).nbytes - 2
    closing = _CLOSING.match(content, end)
    if closing is None:
        return None
    before, after = _EACH.findall(opening[1]), _EACH.findall(closing[1])
    fields = [field[1:-1] for field, _ in before + after]
    for field in fields:
        if field not in _FIELDS[name]:
            seen = f'beside "{name.decode()}" it has {field.decode()!r}, which would be lost'
            raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, content[:64])
    header = b"{%b%b:[]%b}" % (
        b"".join(b"%b:%b," % one for one in before),
        b'"%b"' % name,
        b"".join(b",%b:%b" % one for one in after),
    )
    if len(set(fields)) < len(fields) or len(header) > _LONGEST_HEADER:
        return None
    return _Document(start, end, header)


def _decoded(content: bytes) -> dict[str, msgspec.Raw]:
    content = content.removeprefix(BOM)
    try:
        return _members.decode(content)
    except msgspec.MsgspecError:
        # Valid JSON that msgspec rejects. The replacement has the same length.
        return _members.decode(_HALF_CHARACTER.sub(rb"\\u0020", content))


class ListFramer:
    """Joins documents whose fields beside the list are equal.

    Args:
        header: a document without blanks and records, as found for each source.
    """

    def __init__(self, header: bytes) -> None:
        found = _EMPTY_LIST.search(header)
        at = found.end() - 1 if found else len(header)
        self._header = header
        self._opening, self._closing = header[:at], header[at:]
        self._started = False

    def opening(self) -> bytes:
        """Return the fields before the list, and its opening bracket."""
        return self._opening

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Raises:
            UnreadableSource: MALFORMED, it is not such a document, or a record is not an object;
                UNKNOWN_FORMAT, it has another field; OPEN_END, TOO_LARGE.
        """
        content = bytes(content)
        if _BLANK.match(content):
            return without_records(content)
        found = _parsed(content)
        if found is None or found.header != self._header:
            raise malformed("its fields are not those that its first bytes showed")
        # The manifest keeps the fields and blanks around the list.
        refuse_blanks(found.start + len(content) - found.end)
        records, _ = proven(content, found.start, found.end)
        if not records:
            return without_records(content)
        first, self._started = not self._started, True
        return spliced(content, found.start, found.end, records, first=first)

    def stream(self) -> None:
        """Return None: the whole source is needed to prove it."""
        return

    def closing(self) -> bytes:
        """Return the closing bracket of the list, and the fields after it."""
        return self._closing


def _recognise(look: Look) -> Detected | None:
    head = look.head
    if head[:2] == b'{"' and (head[2:3] != b"R" or head.endswith(b"]}")):
        # Most JSON sources: they begin with another field, or have only Records.
        return None
    if not look.complete or "_CloudTrail_" in look.key or not _BEGINS.match(head):
        return None
    records = OPENING.match(head) is not None
    if records and _ENDS_WITH_LIST.search(head[-_END_BYTES:]):
        # Only Records, as in CloudTrail's documents.
        return None
    try:
        found = _parsed(head)
    except UnreadableSource:
        if records:
            # Left to CloudTrail's framer, which refuses it.
            return None
        raise
    if found is None or found.header == b'{"Records":[]}':
        return None
    return Detected(Format.JSON_LIST, found.header)


def _declared(look: Look) -> Detected:
    found = _parsed(look.head) if look.complete else None
    if found is None:
        raise malformed("it is no whole document with a known list, of at most 16 MiB")
    return Detected(Format.JSON_LIST, found.header)


SPEC = FormatSpec(
    format=Format.JSON_LIST,
    extension="json",
    media_type="application/json",
    framer=lambda signature, _: ListFramer(signature.header),
    recognise=_recognise,
    begins=b"{",
    declared=_declared,
    proven=True,
)
