"""Lines of text: named as a log, or dated as one."""

from __future__ import annotations

import re
from functools import cache

from compactor.formats import characters
from compactor.formats.lines import LineFramer
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.model import Format, QuarantineReason

_TEXT = Detected(Format.TEXT)
# A rotation's number or date, and a shipper's suffix, may follow the extension.
_LOG_NAME = re.compile(
    r"\.log(?:[._-]\d[\w:.-]*?|-[a-z0-9]+)*(?:\.(?:gz|gzip|zst|zstd))?\Z", re.IGNORECASE
)
# Their first line may be a header, even if it begins with a date.
_TABLE_NAME = re.compile(r"\.[ct]sv(?:\.(?:gz|gzip|zst|zstd))?\Z", re.IGNORECASE)
_LOOKED_AT_LINES = 20
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = rb"[0-2]\d:[0-5]\d:[0-6]\d"
_CLF = rb"[0-3]\d/" + _MONTH + rb"/\d{4}:" + _CLOCK
_DATES = (
    rb"\d{4}[-/][01]\d[-/][0-3]\d[Tt \t]" + _CLOCK,
    rb"(?:%b )?%b [ 0-3]?\d (?:\d{4} )?%b" % (_DAY, _MONTH, _CLOCK),
    rb"[ 0-3]?\d[-/ ]" + _MONTH + rb"[-/ ](?:\d{4}|\d\d)[ :]" + _CLOCK,
    rb"[0-3]?\d[/.-][0-3]?\d[/.-]\d{4},? [0-2]?\d:[0-5]\d(?::[0-5]\d)?",
)
_DATED = (
    *_DATES,
    rb"\[(?:%b|%b)" % (b"|".join(_DATES), _CLF),
    # A syslog priority, and the version of RFC 5424.
    rb"<\d{1,3}>(?:\d{1,2} )?(?:%b)" % b"|".join(_DATES[:2]),
    # Access logs: common log format (Apache, nginx, S3), and Elastic Load Balancing.
    rb'[^\[\n"#<{}]{3,300}+\[' + _CLF + rb" [+-]\d{4}\] ",
    rb"(?:https?|h2|grpcs?|wss?|tls)(?: \d\.\d)? \d{4}-\d\d-\d\dT" + _CLOCK,
    # AWS Lambda, auditd, VPC flow records without their header.
    rb"(?:START|END|REPORT) RequestId: [0-9a-f]{8}-|INIT_START Runtime",
    rb"(?:node=\S+ )?type=[\w\[\]]+ msg=audit\(\d+\.\d+:\d+\): ",
    rb"[2-9] (?:\d{12}|unknown) eni-[0-9a-f]{8,17} ",
)


@cache
def _pattern() -> re.Pattern[bytes]:
    # Compiled at the first text: it takes as long as several imports.
    return re.compile(b"|".join(_DATED))


def begins_dated(head: bytes) -> bool:
    """Return whether the first line is an entry of a log.

    It begins with a date and time or is a line of an access log, and so does another of the first
    twenty, or it is the only entry. So a dated title above a table does not count.
    """
    dated = _pattern().match
    lines = head.split(b"\n", _LOOKED_AT_LINES)[:_LOOKED_AT_LINES]
    if not lines or dated(lines[0]) is None:
        return False
    others = [line for line in lines[1:] if line.strip()]
    # Lines of the same entry are indented.
    return any(map(dated, others)) or all(line[:1] in b" \t" for line in others)


def _recognise(look: Look) -> Detected | None:
    name = look.key.rpartition("/")[2]
    named = _LOG_NAME.search(name) is not None
    is_text = named or (not _TABLE_NAME.search(name) and begins_dated(look.head))
    look.require_text()
    if not is_text:
        seen = "neither its name nor its first lines show its format"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, look.head)
    return _checked(look)


def _declared(look: Look) -> Detected:
    declaration = look.declaration
    look.require_text(single_byte=declaration is not None and declaration.single_byte)
    return _checked(look)


def _checked(look: Look) -> Detected:
    if look.complete:
        characters.require_line_end(look.head)
    if b"\n" not in look.head and b"\r" in look.head[:-1]:
        seen = "its lines end with CR alone"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, look.head, "")
    return _TEXT


SPEC = FormatSpec(
    format=Format.TEXT,
    extension="log",
    media_type="text/plain",
    framer=lambda *_: LineFramer(),
    recognise=_recognise,
    declared=_declared,
    newlines=True,
    rows="log",
    hint="text",
    named=r"_elasticloadbalancing_[^/]*$|\.(?:log|txt|out|err)$",
)
