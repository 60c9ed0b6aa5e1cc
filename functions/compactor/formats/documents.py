r"""What looks like a document, or like a table below a header, and so is joined by no default.

Lines of text may follow each other in any number of objects. A document may not: it begins and
ends once. And what stands first in a table are names. Both are known by how they begin: by the
first line that is not blank, or by what the first lines have in common.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

_LOOKED_AT_BYTES = 64 << 10
_LOOKED_AT_LINES = 200
_TABLE_LINES = 20
_MESSAGE_WORDS = 3

# What begins so; ``$`` is the end of a line.
_BEGINNINGS = (
    ("a key, a certificate or another PEM block", rb"-----BEGIN |---- BEGIN "),
    ("a difference of files",
     rb"diff |Index: |--- \S|\*\*\* \S+\t|\d+(?:,\d+)?[acd]\d+(?:,\d+)?$"),
    ("a YAML document", rb"---|%YAML|\.\.\.$"),
    # A priority of syslog is no tag.
    ("XML, HTML or other markup", rb"<(?!\d{1,3}>)"),
    ("a comment, a heading or a directive", rb"#|//|/\*|--|;|%|!|\(\*|'(?:\s|$)|(?i:rem )"),
    ("a list or a quotation", rb"[-*+>] "),
    ("genomic data",
     rb"[>@]\S|(?:track|browser) |chr\w+\t\d+\t\d+|LOCUS {2}|ID {3}\S"
     rb"|(?:[^\t\n]+\t){3}\d+\t\d+\t[^\t\n]+\t[+.?-]\t"
     rb"|[^\t\n]+\t\d+\t[^\t\n]+\t\d+\t\d+\t(?:\*|(?:\d+[MIDNSHPX=])+)\t"),
    ("the model of a molecule",
     rb"(?:HEADER|TITLE|REMARK|CRYST1|ATOM|HETATM|COMPND) {2}|data_\S+$"),
    ("TeX, RTF or a manual page", rb"\\|\{\\rtf|\.(?:[A-Z]{2}|\\\")(?: |$)"),
    ("text in quotes", rb"\"\"\"|'''|\"[^\"\n]*\"$"),
    ("a calendar, a card or an encoded file", rb"BEGIN:[A-Z]|begin(?:-base64)? [0-7]{3} "),
    ("subtitles", rb"WEBVTT|\d+\n\d\d:\d\d:\d\d[,.]\d{3} -->|\{\d+\}\{\d+\}"),
    ("a mail",
     rb"From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) |(?i:return-path|received|delivered-to|from"
     rb"|mime-version|message-id|subject|date|content-type|x-[\w-]+): "),
    ("an HTTP message or a web archive",
     rb"(?:HTTP|WARC|SIP|RTSP)/\d|[A-Z]+ \S+ HTTP/\d\.\d\n[\w-]+:"),
    ("a section of settings", rb"\[[^\[\]\n]*\]$|[\w.-]+ ?= ?[^\n]*\n+\[[^\]\n]*\]+$"),
    ("a dump in hexadecimal",
     rb"[0-9a-fA-F]{7,8}:? +(?:[0-9a-fA-F]{2}){1,2} (?:[0-9a-fA-F]{2}){1,2} "
     rb"|:[0-9A-F]{10,}$|S\d[0-9A-F]{8,}$"),
    ("SQL or another query",
     rb"(?i:(?:create|drop|alter) (?:table|database|schema|index|view|role|user|temp|or|unique"
     rb"|function|type)\b|insert into |delete from |update \S+ set |select\b[^\n]*\bfrom |grant "
     rb"|begin(?: transaction)?;|start transaction;|with \S+ as \(|copy \S+ \(|pragma |use \S+;"
     rb"|set \S+ ?(?:=|to) ?|(?:create|match|merge) \(|(?:query|mutation|fragment)\b[^\n]*\{)"),
    ("source code",
     rb"(?:import|package|using|use|module|from) [\w.:{}*, /\"'-]+;?$|from \S+ import |<\?"
     rb"|(?:const|let|var|local) \w+ ?=|(?:require|library|include|source)[( ][\"'\w]|extern "
     rb"|(?:def|class|fn|func|function|public|private|protected|static|export|async|struct|enum"
     rb"|interface|trait|namespace|fun|sub|proc|program|void|int) [^\n]*(?:[{(:;)]|\bis)$"),
    ("a build file",
     rb"FROM \S+(?: AS \S+)?$|[\w./%$() -]+::?(?: [^\n]*)?\n\t\S|cmake_minimum_required"),
    ("a schedule of jobs", rb"(?=[^\n]*\*)(?:[\d*/,-]+[ \t]+){4}[\d*/,A-Za-z-]+[ \t]+\S"),
    ("an exchange of data",
     rb"ISA\*|UNA[:+]|UNB\+|(?:MSH|FHS|BHS)\||8=FIX|\{1:F|:20:|\$GP|!AIVDM"),
    ("instructions of a machine", rb"[GMNT]\d{1,5}(?:\.\d)?(?: [A-Z;(]|$)"),
    ("a stream of a protocol", rb"\*\d+\n\$\d+\n|\d+ <\d{1,3}>\d"),
    ("a serialised object", rb"[aOs]:\d+:[{\"]|\(dp\d|\(lp\d"),
    ("a history of changes", rb"commit [0-9a-f]{4,40}$|\d{4}-\d\d-\d\d(?: [*!] |  \S)"),
    ("a stack trace alone",
     rb"Traceback \(most recent call last\):\n(?:[ \t][^\n]*(?:\n|\Z))+(?:[\w.]+(?::[^\n]*)?\n?)?\Z"
     rb"|panic: [^\n]*\n+(?:\[signal [^\n]*\n+)?goroutine "),
    ("a table that names its delimiter", rb"\"?(?i:sep)=[^\w\s]"),
    ("a document that opens a block", rb"[^\n]*[{(\[]$"),
    ("a heading or a table above a rule", rb"[^\n]+\n[ +|:=~-]*(?:={3}|-{3}|~{3})[ +|:=~-]*$"),
)  # fmt: skip
# One setting a line. Names of levels begin messages, and pairs side by side are logfmt.
_PAIR = re.compile(
    rb"(?:export )?[\"']?([A-Za-z_$@][\w.$@/-]*)[\"']?[ \t]*(?:([<>~!:]?==?)(?![^\n]* [\w.]+=)|:(?=\s|\Z))"
    rb"[ \t]*(.*)"
)
_LEVELS = frozenset(
    b"trace debug info information notice warn warning error err fatal critical crit severe alert"
    b" emerg emergency panic fail failed ok success note verbose".split()
)
_BELOW_A_PAIR = (b" ", b"\t", b"- ", b"#", b";", b"!", b"}", b"]", b"---")
# Words and what stands between them; nothing that programs write.
_SENTENCE = re.compile(rb"[A-Z?][A-Za-z?]* [A-Za-z?,;'\" ()-]{8,}[.!?:;,]")
_WRAPPED = re.compile(rb"[A-Za-z?,;:.'\" ()-]{50,}")
_ONE_WORD = re.compile(rb"[A-Za-z]+|[A-Za-z0-9+/=_-]{24,}|[A-Za-z0-9+/]+=*")
_STATEMENT = re.compile(rb"[^\n]*;\s*\Z")
_DELIMITERS = (b",", b";", b"\t", b"|")
_DIGITS = re.compile(rb"\d+")
_NUMBERED = re.compile(rb"(?=[^0]*0).*[^0 .+-]")
# How no name of a column begins: a time in one of its forms, an address, an id.
_VALUE = re.compile(
    rb"[ \"'(\[]*(?:1\d{9}(?:\d{3}){0,3}(?!\d)|\d{4}-\d\d-\d\d[T ]\d|\d\d:\d\d:\d\d"
    rb"|\d{1,3}(?:\.\d{1,3}){3}(?!\d)|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|https?://\S)"
)


@cache
def _beginning() -> re.Pattern[bytes]:
    # Compiled at the first text that needs it.
    return re.compile(
        rb"[ \t\n]*+(?:%s)" % b"|".join(b"(%s)" % one for _, one in _BEGINNINGS), re.MULTILINE
    )


def document_in(text: bytes, *, complete: bool, named_log: bool) -> str:
    """What a text looks like that is more than its lines; empty where nothing shows.

    Args:
        text: first bytes of a source, ASCII or what stands for other characters.
        complete: they are all of it.
        named_log: the name of the source is that of a log.
    """
    text = text[:_LOOKED_AT_BYTES]
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    found = _beginning().match(text)
    if found is not None:
        return _BEGINNINGS[(found.lastindex or 1) - 1][0]
    lines = text.strip(b"\n").split(b"\n", _LOOKED_AT_LINES)
    if len(lines) > 1 and (not complete or len(lines) > _LOOKED_AT_LINES):
        # It may be cut off.
        lines.pop()
    if not named_log and complete and b"\n" not in text:
        return "one value without a line end"
    if _are_settings(lines, named_log=named_log):
        return "settings, or other names with a value each"
    if _is_prose(lines):
        return "prose, or a list of words"
    if len(lines) > 1 and all(map(_STATEMENT.match, lines[:2])):
        return "statements of a language"
    return "a table, whose first line may be a header" if _is_table(lines) else ""


def _are_settings(lines: Sequence[bytes], *, named_log: bool) -> bool:
    """Whether the first lines have a name each, another one each time."""
    names: list[bytes] = []
    below = messages = 0
    for line in lines:
        pair = _PAIR.match(line)
        if not line.strip():
            break
        if pair is not None and pair[1].lower() not in _LEVELS:
            names.append(pair[1])
            messages += pair[2] is None and len(pair[3].split()) >= _MESSAGE_WORDS
        elif names and line.startswith(_BELOW_A_PAIR):
            below += 1
        else:
            return False
    if len(set(names)) < len(names) or not names:
        return False
    if named_log:
        # Programs begin messages with a name, too.
        return len(names) + below > 1 and messages < len(names) / 2
    return True


def _is_prose(lines: Sequence[bytes]) -> bool:
    """Whether most lines are sentences, or parts of them, or each is one word."""
    if all(_ONE_WORD.fullmatch(line) for line in lines if line.strip()):
        return True
    if not _reads_as_prose(lines[0], lines[1] if len(lines) > 1 else b""):
        return False
    followed = list(zip(lines, (*lines[1:], b""), strict=True))
    return 2 * sum(_reads_as_prose(*one) for one in followed) >= len(lines)


def _reads_as_prose(line: bytes, following: bytes) -> bool:
    if _SENTENCE.fullmatch(line):
        return True
    return _WRAPPED.fullmatch(line) is not None and following[:1].islower()


def _is_table(lines: Sequence[bytes]) -> bool:
    """Whether lines have the same fields throughout, and the first is not certainly one of them."""
    sample = [line for line in lines[:_TABLE_LINES] if line.strip()]
    found = False
    for delimiter in _DELIMITERS if len(sample) > 1 else ():
        fields = sample[0].count(delimiter)
        if fields and all(line.count(delimiter) == fields for line in sample[1:]):
            found = True
            if _is_row([line.split(delimiter) for line in sample]):
                return False
    return found


def _is_row(rows: Sequence[Sequence[bytes]]) -> bool:
    """Whether the first row has a value that names no column, above others of its kind."""
    return rows[0] in rows[1:] or any(map(_is_column, zip(*rows, strict=True)))


def _is_column(fields: Sequence[bytes]) -> bool:
    if all(map(_VALUE.match, fields)):
        return True
    like = {_DIGITS.sub(b"0", field) for field in fields}
    return len(like) == 1 and _NUMBERED.search(like.pop()) is not None
