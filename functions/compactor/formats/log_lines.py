r"""First lines that identify a log by themselves, and logs with an open end.

A line that begins with a time, or has the structure of an access log, is never a header: such
sources are text, whatever their names and however other sources begin.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache

from compactor.formats.delimited import ends_within_quotes
from compactor.formats.refusal import refused
from compactor.model import QuarantineReason


class Form(StrEnum):
    """What identifies a first line as that of a log."""

    STRUCTURED = "structured"
    """Blanks, brackets and quotes of an access log, in which clients' bytes stand as they came."""
    DATED = "dated"
    """A date with a time of day at its start, or what a standard puts there."""


_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_WEEKDAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
# An empty alternative is faster than an optional group.
_CLOCK = rb"[0-2]\d:[0-5]\d:[0-6]\d(?:\.\d{1,9}+|,\d{3}(?:\d{3})?|)"
# The empty one is first: a time is more often followed by a word than by a zone.
_ZONE = rb"(?:| ?(?:Z|[A-Z]{3,4}|[+-]\d\d:?\d\d)(?![A-Za-z0-9:]))"
_ISO = rb"\d{4}-[01]\d-[0-3]\d[Tt \t]" + _CLOCK + _ZONE
_SLASHED = rb"\d{4}/[01]\d/[0-3]\d[ T]" + _CLOCK + _ZONE
_APACHE = _WEEKDAY + rb" " + _MONTH + rb" [ 0-3]?\d " + _CLOCK + rb"(?: [A-Z]{3,4})? \d{4}"
_SYSLOG = _MONTH + rb" [ 0-3]\d (?:\d{4} )?" + _CLOCK
_CLF = rb"[0-3]\d/" + _MONTH + rb"/\d{4}:[0-2]\d:[0-5]\d:[0-6]\d(?:\.\d{1,6})?(?: [+-]\d{4})?"
_DASHED = rb"[ 0-3]?\d-" + _MONTH + rb"-(?:\d{4}|\d\d) " + _CLOCK
_LOCAL = (
    rb"[0-3]?\d[/.-][0-3]?\d[/.-]\d{4},? [0-2]?\d:[0-5]\d(?::[0-6]\d(?:[.,]\d{1,6})?)?(?: [AP]M)?"
)
_NUMERIC = b"|".join((_ISO, _SLASHED, _DASHED, _LOCAL))
_NAMED = b"|".join((_APACHE, _SYSLOG))
_AFTER = rb"(?=[ \t\]|>])"

_STRUCTURED = (
    # Common and combined log format (Apache, nginx, Traefik, S3 server access logs).
    rb"""[^\[\n"#<{}]{3,300}+\[""" + _CLF + rb"\] ",
    # Elastic load balancing: type and time; the classic one has only the time.
    rb"(?:https?|h2|grpcs?|wss?|tls|tcp|udp)(?: \d\.\d)? \d{4}-\d\d-\d\dT" + _CLOCK + rb"Z? ",
    rb"\d{4}-\d\d-\d\dT" + _CLOCK + rb"""Z [^ "\n]+ [^ "\n]+:\d+ (?:[^ "\n]+:\d+|-) -?\d""",
)
_DATED = (
    rb"(?:%s)%s" % (_NUMERIC, _AFTER),
    rb"(?:%s)[ :]" % _NAMED,
    rb"\[(?:%s|%s|%s)[^\]\n]{0,40}\]" % (_NUMERIC, _NAMED, _CLF),
    # A syslog priority, and the version of RFC 5424.
    rb"<\d{1,3}>(?:\d{1,2} )?(?:%s|%s)[ :]" % (_ISO, _SYSLOG),
    # MySQL's slow queries; auditd; LTSV; CEF and LEEF; VPC flow records without their header;
    # AWS Lambda.
    rb"# Time: (?:%s|\d{6} )" % _ISO,
    rb"(?:node=\S+ )?type=[\w\[\]]+ msg=audit\(\d+\.\d+:\d+\): ",
    rb"time:\[?(?:%s|%s)\]?\t[\w.-]+:" % (_ISO, _CLF),
    rb"(?:CEF|LEEF):\d(?:\.\d)?\|[^|\n]*\|[^|\n]*\|",
    rb"[2-9] (?:\d{12}|unknown) eni-[0-9a-f]{8,17} ",
    rb"(?:START|END|REPORT) RequestId: [0-9a-f]{8}-|INIT_START Runtime",
)
_LOOKED_AT_FOR_DATES = 16 << 10
# Readers that split fields take a quote after one of these as the start of a field.
_DELIMITERS = (b",", b";", b"\t", b"|")
_ESCAPED = re.compile(rb"\\.", re.DOTALL)


@cache
def _forms() -> re.Pattern[bytes]:
    # Compiled at the first text: it takes as long as several imports.
    return re.compile(
        rb"(?P<structured>%s)|(?P<dated>%s)" % (b"|".join(_STRUCTURED), b"|".join(_DATED))
    )


@cache
def _dated() -> re.Pattern[bytes]:
    return re.compile(rb"\n(?=[\d\[<JFMASONDTW #])(?:%s)" % b"|".join(_DATED))


def begins_within_entry(head: bytes) -> bool:
    """Return whether the first line, without a date, continues an entry: others have a date."""
    start = head.lstrip(b"\r\n")
    return start[:1] in b" \t" or _dated().search(head, 0, _LOOKED_AT_FOR_DATES) is not None


def form_of(head: bytes) -> Form | None:
    """Return what identifies the first line as a log's, given ASCII; None if nothing does."""
    found = _forms().match(head)
    return None if found is None else Form(found.lastgroup or "")


def refuse_open_quote(content: bytes, *, structured: bool) -> None:
    """Raise UnreadableSource (OPEN_QUOTE) if a quoted field is open at the end.

    Args:
        content: the whole source, or its end from the start of a line.
        structured: whether its fields are delimited by blanks and read line by line.
    """
    if b'"' not in content:
        return
    text = content.rstrip(b"\r\n")
    last = text[text.rfind(b"\n") + 1 :]
    if _is_open(last) or (not structured and b'"' in text and _is_open_field(text)):
        raise refused(QuarantineReason.OPEN_QUOTE, "it ends within quotes", last)


def _is_open(line: bytes) -> bool:
    line = _ESCAPED.sub(b"", line) if b"\\" in line else line
    return line.count(b'"') % 2 == 1 and b' "' in line


def _is_open_field(text: bytes) -> bool:
    return any(
        delimiter + b'"' in text and ends_within_quotes(text, delimiter)
        for delimiter in _DELIMITERS
    )
