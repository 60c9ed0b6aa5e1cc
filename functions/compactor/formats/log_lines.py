r"""Whether text is the lines of a log: every line begins as lines of logs do, or goes on from one.

What a log's line begins with is a catalogue of forms that software documents, each with a point
in time or a mark of its own in a fixed place. Text is certain when

- its first line has one of these forms,
- every other line looked at has one, too, or plainly continues the one before: it is blank,
  starts with a blank, or is a line of a stack trace,
- at least one line in a hundred has one,
- no quote is open at its end that began behind a delimiter.

Lines are looked at in sources of up to 1.5 KiB in all, else in the first and last 512 bytes and
in 512 bytes in the middle.
"""

from __future__ import annotations

import re
from functools import cache

from compactor.formats.delimited import ends_within_quotes
from compactor.formats.refusal import refused
from compactor.model import QuarantineReason

_SAMPLED_WHOLE = 3 << 9
_END_BYTES = 1 << 9
_MIDDLE_BYTES = 1 << 9
_LEAST_SHARE = 1 / 100

_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_WEEKDAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LEVEL = (
    rb"(?:TRACE|DEBUG|INFO|INFORMATION|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|CRIT|SEVERE"
    rb"|CONFIG|FINE|FINER|FINEST|ALERT|EMERG|trace|debug|info|notice|warn|warning|error|err|fatal"
    rb"|critical|crit|alert|emerg|Trace|Debug|Info|Information|Warning|Warn|Error|Fatal|Critical)"
)
# An empty alternative takes less time than to repeat a group once at most.
_CLOCK = rb"[0-2]\d:[0-5]\d:[0-6]\d(?:\.\d{1,9}+|,\d{3}(?:\d{3})?|)"
# It comes first here: what follows a time is rather a word than a zone.
_ZONE = rb"(?:| ?(?:Z|[A-Z]{3,4}|[+-]\d\d:?\d\d)(?![A-Za-z0-9:]))"
_ISO = rb"\d{4}-[01]\d-[0-3]\d[Tt \t]" + _CLOCK + _ZONE
_SLASHED = rb"\d{4}/[01]\d/[0-3]\d[ T]" + _CLOCK + _ZONE
_APACHE = _WEEKDAY + rb" " + _MONTH + rb" [ 0-3]?\d " + _CLOCK + rb"(?: [A-Z]{3,4})? \d{4}"
_CLF = rb"[0-3]\d/" + _MONTH + rb"/\d{4}:[0-2]\d:[0-5]\d:[0-6]\d(?:\.\d{1,6})?(?: [+-]\d{4})?"
_DASHED = rb"[ 0-3]?\d-" + _MONTH + rb"-(?:\d{4}|\d\d) " + _CLOCK
_LOCAL = (
    rb"[0-3]?\d[/.-][0-3]?\d[/.-]\d{4},? [0-2]?\d:[0-5]\d(?::[0-6]\d(?:[.,]\d{1,6})?)?(?: [AP]M)?"
)
_DATE = b"(?:" + b"|".join((_ISO, _SLASHED, _APACHE, _CLF, _DASHED, _LOCAL)) + b")"
# Behind a zone and a comma stand the fields of Postgres' csvlog.
_BEHIND = rb"(?=[ \t\]|>])(?! [A-Z]{3,4}+,)"
_PRIORITY = rb"<\d{1,3}>"
_UUID = rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

# Lines whose readers split them at blanks and quotes, and in which bytes of clients stand as they
# came: they are known by their structure, whatever the encoding of those.
_STRUCTURED = (
    # Common and combined log format (Apache, nginx, Traefik, S3 server access logs).
    rb"""[^\[\n"#<{}]{3,300}+\[""" + _CLF + rb"\] ",
    # Elastic load balancing: type and time; the classic one has the time alone.
    rb"(?:https?|h2|grpcs?|wss?|tls|tcp|udp)(?: \d\.\d)? \d{4}-\d\d-\d\dT" + _CLOCK + rb"Z? ",
    rb"\d{4}-\d\d-\d\dT" + _CLOCK + rb"""Z [^ "\n]+ [^ "\n]+:\d+ (?:[^ "\n]+:\d+|-) -?\d""",
)
_FREE = (
    _ISO + _BEHIND,
    # A time and a level behind a comma: Windows setup and servicing logs.
    _ISO + rb", " + _LEVEL + rb"\b",
    _SLASHED + _BEHIND,
    rb"\[" + _DATE + rb"[^\]\n]{0,40}\]",
    # syslog, RFC 3164 and 5424, with or without priority.
    rb"(?:" + _PRIORITY + rb")?" + _MONTH + rb" [ 0-3]\d (?:\d{4} )?" + _CLOCK + rb"[ :]\S*",
    _PRIORITY + rb"(?:\d{1,2} (?:" + _ISO + rb"|-)|" + _ISO + rb") ",
    # A level first, and a time (log4j, Go, Cassandra, .NET), or Python's own form.
    rb"\[?" + _LEVEL + rb"\]?[ \t:|-]+(?:\[[^\]\n]{1,100}\] +)?[\[(]?" + _DATE,
    rb"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[A-Za-z_][\w.]*:",
    # A clock, thread or level: logback and log4j without a date.
    _CLOCK + rb" (?:\[[^\]\n]{1,100}\] +)?" + _LEVEL + rb" ",
    rb"\d\d/\d\d/\d\d " + _CLOCK + rb" " + _LEVEL + rb" ",
    # klog and glog.
    rb"[IWEFD]\d{4} " + _CLOCK + rb" +\d+ \S+:\d+\] ",
    # Ruby's Logger.
    rb"[DIWEFA], \[" + _ISO + rb" #\d+\] ",
    # Apache's and wtmp's dates, BIND's, Tomcat's, java.util.logging's.
    _APACHE + rb"(?=[ :]\S)",
    _DASHED + rb" ",
    _MONTH + rb" \d\d?, \d{4} \d{1,2}:\d\d:\d\d [AP]M ",
    _LEVEL + rb": \S",
    _LOCAL + rb"(?=[ \t|]+\S)",
    # Redis; squid; auditd; dmesg; JVM unified logging; logcat.
    rb"\d+:[MSCX] [0-3]\d " + _MONTH + rb" (?:\d{4} )?" + _CLOCK + rb" ",
    rb"\d{10}\.\d{3} +\d+ \S+ [A-Z_]+/\d{3} ",
    rb"(?:node=\S+ )?type=[\w\[\]]+ msg=audit\(\d+\.\d+:\d+\): ",
    rb"\[ *\d{1,9}\.\d{6}\] ",
    rb"\[\d+\.\d{3}s\]\[",
    rb"\d\d-\d\d " + _CLOCK + rb" +\d+ +\d+ [VDIWEF] ",
    # logfmt: a time, and a level or more behind it.
    rb"(?:(?:level|lvl|severity|logger|caller)=\S+ ){0,3}(?:ts|time|timestamp|t|at|datetime)=\"?"
    rb"(?:" + _ISO + rb"|\d{10}(?:\.?\d{1,9})?)\"? \w[\w.-]*=",
    # LTSV; CEF and LEEF.
    rb"(?:time|ts|host):[^\t\n]*\t[\w.-]+:[^\t\n]*\t[\w.-]+:",
    rb"(?:CEF|LEEF):\d(?:\.\d)?\|[^|\n]*\|[^|\n]*\|",
    # AWS Lambda; Route 53 queries; VPC flow records without their header.
    rb"(?:START|END|REPORT|INIT_START|INIT_REPORT) (?:RequestId: " + _UUID + rb"|Runtime Version)",
    rb"\d\.\d \d{4}-\d\d-\d\dT" + _CLOCK + rb"Z [A-Z0-9]+ ",
    rb"[2-9] (?:\d{12}|unknown) eni-[0-9a-f]{8,17} ",
)  # fmt: skip
# Only a line that follows another may have it: it says too little for a first one.
_NEVER_FIRST = frozenset({_LEVEL + rb": \S"})
_FORMS = _STRUCTURED + _FREE
_CONTINUATION = (
    rb"[ \t\r]|(?=\n|\Z)|Caused by: |Suppressed: |\.\.\. \d+ more|Traceback \(most recent"
    rb"|(?:[A-Za-z_$][\w$]*\.)*[A-Za-z_$][\w$]*(?:Error|Exception|Warning|Interrupt|Exit|Throwable)"
    rb"(?:: |\r?(?=\n|\Z))|During handling of the above|The above exception was the direct"
    rb"|goroutine \d+ \[|panic: |\S+\(.*\)\r?(?=\n\t)|created by \S"
)
# A quote behind one of these opens a field to those who read fields.
_DELIMITERS = (b",", b";", b"\t", b"|")
_ESCAPED = re.compile(rb"\\.", re.DOTALL)


# The catalogue takes 80 ms to compile, of a start that takes 300: nobody waits who meets no log.


@cache
def _first() -> re.Pattern[bytes]:
    forms = (rb"(?!)" if form in _NEVER_FIRST else form for form in _FORMS)
    return re.compile(b"|".join(b"(%s)" % form for form in forms))


@cache
def _all(form: int) -> re.Pattern[bytes]:
    return re.compile(rb"(?:\n(?:%s).*+)*+\Z" % _FORMS[form])


@cache
def _any() -> re.Pattern[bytes]:
    return re.compile(b"\n(?:" + b"|".join(_FORMS) + b")")


@cache
def _known() -> re.Pattern[bytes]:
    return re.compile(b"\n(?:" + b"|".join((*_FORMS, _CONTINUATION)) + b")")


def form_of(head: bytes) -> int | None:
    """Which form of the catalogue the first line has, given ASCII; None for no log's."""
    first = _first().match(head)
    return None if first is None else (first.lastindex or 1) - 1


def is_structured(form: int) -> bool:
    """Whether lines of this form are known by their structure, whatever bytes are in them."""
    return form < len(_STRUCTURED)


def refuse_other_lines(head: bytes, tail: bytes, form: int, *, complete: bool) -> None:
    """Raise UnreadableSource for text that is not certainly the lines of a log.

    Args:
        head: first bytes, or all; ASCII.
        tail: the end of the source where it is known and not in the head, else empty; from
            anywhere on.
        form: that of the first line.
        complete: ``head`` is the whole source.

    Raises:
        UnreadableSource: UNKNOWN_FORMAT.
    """
    if complete and not tail and _have_one_form(head, form):
        return
    text = _sample(head, tail, complete=complete)
    if _all(form).match(text):
        return
    lines = text.count(b"\n")
    if len(_known().findall(text)) < lines:
        seen = "a line of it is not known as a line of a log, nor goes on from one"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, _odd_line(text) or head)
    matched = len(_any().findall(text))
    if matched < _LEAST_SHARE * lines:
        seen = f"only {matched:,} of {lines:,} lines begin as lines of a log do"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, head)


def _have_one_form(head: bytes, form: int) -> bool:
    """Whether all lines of a sample have the form of the first, as is seen without a copy of them.

    False where it takes a closer look.
    """
    lines, size = _all(form), len(head)
    end = size - head.endswith(b"\n")
    if size <= _SAMPLED_WHOLE:
        start = head.find(b"\n")
        return not 0 <= start < end or lines.match(head, start, end) is not None
    first = head.rfind(b"\n", 0, _END_BYTES)
    middle = size // 2
    behind = middle + _MIDDLE_BYTES
    stretches = (
        (head.find(b"\n"), first),
        (head.find(b"\n", middle, behind), head.rfind(b"\n", middle, behind)),
        (head.find(b"\n", size - _END_BYTES), end),
    )
    for start, stop in stretches:
        # From the newline before a line on; where there is none, no line is looked at.
        if 0 <= start < stop and lines.match(head, start, stop) is None:
            return False
    return first > 0


def _sample(head: bytes, tail: bytes, *, complete: bool) -> bytes:
    """Whole lines, each with a newline before it."""
    if not complete:
        head = head[: head.rfind(b"\n") + 1] or head
    if len(head) <= _SAMPLED_WHOLE:
        sample = b"\n" + head
    else:
        middle = len(head) // 2
        first = head.rfind(b"\n", 0, _END_BYTES)
        start = head[: first if first > 0 else _END_BYTES]
        within = _from_line(head[middle : middle + _MIDDLE_BYTES], cut=True)
        end = _from_line(head[-_END_BYTES:], cut=False)
        sample = b"".join((b"\n", start, within, end))
    if tail:
        sample = sample.rstrip(b"\r\n") + _from_line(tail, cut=False)
    return sample.rstrip(b"\r\n")


def _from_line(piece: bytes, *, cut: bool) -> bytes:
    start = piece.find(b"\n")
    end = piece.rfind(b"\n") if cut else len(piece)
    return piece[start:end] if 0 <= start < end else b""


def _odd_line(text: bytes) -> bytes:
    at = 0
    while at >= 0:
        if not _known().match(text, at):
            return text[at + 1 : at + 100]
        at = text.find(b"\n", at + 1)
    return b""


def refuse_open_quote(content: bytes, *, structured: bool) -> None:
    """Raise UnreadableSource (OPEN_QUOTE) where a field in quotes is open at the end.

    Args:
        content: the whole source, or its end from the start of a line on.
        structured: its fields are delimited by blanks, and read line by line.
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
