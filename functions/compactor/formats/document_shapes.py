r"""Recognises documents, and tables below a header, which are never joined by default.

Lines of text may be spread over any number of objects. A document may not: it begins and ends
once. And a table begins with names. Both are recognised by how they begin: by the first line that
is not blank, or by what the first lines have in common.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

_LOOKED_AT_BYTES = 64 << 10
_LOOKED_AT_LINES = 200
_TABLE_LINES = 20
_TABLE_BYTES = 4 << 10
_MESSAGE_WORDS = 3
_HEADING_LINES = 3

# How each begins; ``$`` is the end of a line.
_BEGINNINGS = {
    "a key, a certificate or another PEM block": rb"---(?:--)?- ?BEGIN |(?:ssh|ecdsa|sk)-\S+ AAAA",
    "a difference of files":
     rb"diff |Index: |--- \S|\*\*\* \S+\t|\d+(?:,\d+)?[acd]\d+(?:,\d+)?$",
    "a YAML document": rb"---|%YAML|\.\.\.$",
    # A syslog priority is not a tag.
    "XML, HTML or other markup": rb"<(?!\d{1,3}>)",
    "a comment, a heading or a directive": rb"#|//|/\*|--(?!>)|;|%|!|\(\*|'(?:\s|$)|(?i:rem )",
    "a list or a quotation": rb"[-*+>] |-[a-z] ",
    "a listing or a snapshot of a program":
     rb"total \d+\n[-bcdlps][-rwxsStT]{9}|top - \d\d:\d\d:\d\d up ",
    "a tune": rb"X: ?\d+\n[A-Z]:",
    "a problem or a matrix below its size":
     rb"p (?:w?cnf|edge|col|sp|max|min|asn) \d+|\d{1,6}[ \t]+\d{1,6}\n[A-Za-z]",
    "genomic data":
     rb"[>@]\S|(?:track|browser) |chr\w+\t\d+\t\d+|LOCUS {2}|ID {3}\S"
     rb"|(?:[^\t\n]+\t){3}\d+\t\d+\t[^\t\n]+\t[+.?-]\t"
     rb"|[^\t\n]+\t\d+\t[^\t\n]+\t\d+\t\d+\t(?:\*|(?:\d+[MIDNSHPX=])+)\t",
    "the model of a molecule or of a body":
     rb"solid\b[^\n]*\n\s*facet |v[nt]? -?[\d.]+ -?[\d.]+(?: |$)|mtllib "
     rb"|(?:HEADER|TITLE|REMARK|CRYST1|ATOM|HETATM|COMPND) {2}|data_\S+$",
    "TeX or a manual page": rb"\\|\.(?:[A-Z]{2}|\\\")(?: |$)",
    "text in quotes": rb"\"\"\"|'''|\"[^\"\n]*\"$",
    "a calendar, a card or an encoded file": rb"BEGIN:[A-Z]|begin(?:-base64)? [0-7]{3} ",
    "subtitles": rb"WEBVTT|\d+\n\d\d:\d\d:\d\d[,.]\d{3} -->",
    "a mail":
     rb"From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) |(?i:return-path|received|delivered-to|from"
     rb"|mime-version|message-id|subject|date|content-type|x-[\w-]+): ",
    "an HTTP message, a web archive or rules for robots":
     rb"(?i:user-agent|sitemap|disallow):|(?:HTTP|WARC|SIP|RTSP)/\d"
     rb"|[A-Z]+ \S+ HTTP/\d\.\d\n[\w-]+:",
    "a section of settings": rb"\[[^\[\]\n]*\]$|[\w.-]+ ?= ?[^\n]*\n+\[[^\]\n]*\]+$",
    "a dump in hexadecimal":
     rb"[0-9a-fA-F]{7,8}:? +(?:[0-9a-fA-F]{2}){1,2} (?:[0-9a-fA-F]{2}){1,2} "
     rb"|:[0-9A-F]{10,}$|S\d[0-9A-F]{8,}$",
    "SQL or another query":
     rb"(?i:(?:create|drop|alter) (?:table|database|schema|index|view|or replace|temp|unique)\b"
     rb"|insert into |delete from |update \S+ set |select\b[^\n]*\bfrom |grant [^\n]* on |pragma "
     rb"|begin(?: transaction)?;|start transaction;|with \S+ as \(|copy \S+ \(|use \S+;"
     rb"|set \S+ ?= ?|set names |(?:create|match|merge) \(|(?:query|mutation|fragment)\b[^\n]*\{)",
    "source code":
     rb"(?:import|package|using|use|from) (?:\w+[.:/][\w.:*/{}]+;?$|[\w.:*]+;|[\"'({]|\S+ import )"
     rb"|import \w+\n+(?:import|from|def|class|@|#|\w+ = )|(?:const|let|var|local) \w+ ?="
     rb"|require[( ][\"']|library\(|include [\"<]|extern |def \w+(?:\([^\n]*\))?$"
     rb"|(?:def|class|fn|func|function|public|private|protected|static|export|async|struct|enum"
     rb"|interface|trait|namespace|fun|sub|proc|program|void|int) [^\n]*(?:[:;]|\bis)$",
    "a specification": rb"Feature: [^\n]*\n+[ \t]+[A-Z]",
    "a script":
     rb"export \w+=|cd \S+(?:$| &&)|set -\w|if \[ ",
    "a build file":
     rb"FROM \S+(?: AS \S+)?$|ARG \w+(?:=\S*)?$|cmake_minimum_required"
     rb"|[\w./%$() -]+::?(?: [^\n]*)?\n\t(?!at |\.\.\.)\S",
    "a schedule of jobs":
     rb"(?:[A-Z]+=[^\n]*\n)*(?=[^\n]*\*)(?:[\d*/,-]+[ \t]+){4}[\d*/,A-Za-z-]+[ \t]+\S",
    "an exchange of data":
     rb"ISA\*|UNA[:+]|UN[BH]\+|(?:MSH|FHS|BHS)\||8=FIX|:20:|\$GP|!AIVDM",
    "instructions of a machine": rb"(?:[GM]\d{1,3}|N\d+ G\d+)(?: [A-Z;(]|$)",
    "a stream of a protocol": rb"__CURSOR=|\*\d+\n\$\d+\n|\d+ <\d{1,3}>\d",
    "hosts, zones, mounts or locked versions":
     rb"(?:search[^\n]*\n|domain[^\n]*\n)?nameserver [\da-f.:]+$"
     rb"|(?:/dev/|UUID=|LABEL=)\S+[ \t]+\S+[ \t]+\w+[ \t]+\S+(?:[ \t]+\d){0,2}$"
     rb"|(?:127\.0\.0\.1|::1)[ \t]+localhost|\$(?:ORIGIN|TTL) |\S+ v\d+\.\d+\.\d+\S* h1:"
     rb"|\S+[ \t]+(?:\d+[ \t]+)?IN[ \t]+[A-Z]+[ \t]",
    "translations": rb"msg(?:id|ctxt) \"",
    "a serialised object": rb"[aOs]:\d+:[{\"]|\(dp\d|\(lp\d",
    "a history of changes or a ledger":
     rb"commit [0-9a-f]{4,40}$|\d{4}[-/]\d\d[-/]\d\d (?:[*!] | \S|[^\n]*\n[ \t]+[A-Z]\w*:)",
    "a stack trace alone":
     rb"Traceback \(most recent call last\):\n(?:[ \t][^\n]*(?:\n|\Z))++(?:[^\n]*(?:\n|\Z)){0,2}\Z"
     rb"|panic: [^\n]*\n+(?:\[signal [^\n]*\n+)?goroutine ",
    "a table that names its delimiter": rb"\"?(?i:sep)=[^\w\s]",
    "a document that opens a block": rb"[^\n]*[{(\[]$",
    "a line of signs alone": rb"[^\w?\n]+$",
    "a heading or a table above a rule": rb"[^\n]+\n[ +|:=~-]*(?:={3}|-{3}|~{3})[ +|:=~-]*$",
}  # fmt: skip
# One setting per line. Names of log levels begin messages, and several pairs on a line are logfmt.
_PAIR = re.compile(
    rb"(?:export )?[\"']?([A-Za-z_$@][\w.$@/-]*)[\"']?[ \t]*"
    rb"(?:([<>~!:]?==?)(?!.* [\w.]+=)|:(?=\s|\Z))[ \t]*(.*)"
)
_LEVELS = frozenset(
    b"trace debug info information notice warn warning error err fatal critical crit severe alert"
    b" emerg emergency panic fail failed ok success note verbose".split()
)
# A setting without a sign between its name and its value; an address with its names.
_DIRECTIVE = re.compile(rb"\s*[A-Z]\w*[ \t]+\S+(?:[ \t]+\S+)?\s*")
_CAMEL = re.compile(rb"[A-Z][a-z]+[A-Z]")
_HOST = re.compile(rb"\d{1,3}(?:\.\d{1,3}){3}(?:[ \t]+[A-Za-z][\w.-]*){1,2}\s*")
_BELOW_A_PAIR = (b" ", b"\t", b"- ", b"#", b";", b"!", b"}", b"]", b"---")
# Only words and punctuation; nothing that programs write.
_SENTENCE = re.compile(rb"[A-Z?][A-Za-z?,;'\"()-]*(?: +[A-Za-z?,;'\"()-]+){5,}[.!?:;,]")
_WRAPPED = re.compile(rb"[A-Za-z?,;:.'\" ()-]{50,}")
# In lines without a blank: shows more than a word, such as an address or a pair.
_EVIDENCE = re.compile(rb"[/=,;|]|\w:\w|\d{9}|\d\.\d")
_ONE_WORD = re.compile(rb"[A-Za-z0-9+/=_-]{24,}|[A-Za-z+/][A-Za-z0-9+/]*=*")
_DELIMITERS = (b",", b";", b"\t", b"|")
# A whole quoted field; its delimiters and line ends do not count.
_QUOTED = re.compile(rb'(?<![^,;\t|\n])"(?:[^"]|"")*+"(?![^,;\t|\r\n])')
_IN_QUOTES = bytes.maketrans(b",;\t|\n", b"_____")
_DIGITS = re.compile(rb"\d+")
_NAMES = re.compile(
    rb"[\"']?[A-Za-z_][\w .()/%-]*[\"']?(?:[,;\t|][\"']?[A-Za-z_][\w .()/%-]*[\"']?)+\s*"
)
# Names with a blank after the delimiter, which sentences may have, too.
_NAMES_APART = re.compile(rb"[\"']?[A-Za-z_]\w*[\"']?(?:[,;|] +[\"']?[A-Za-z_]\w*[\"']?){2,}\s*")
_IDENTIFIER = re.compile(rb"[A-Za-z]\w*(?:-\w+)*")
_FEWEST_JOINED_WORDS = 2
_ALIGNED_NAME = re.compile(rb"[A-Za-z_%#][\w%#/()-]*")
_NUMBER = re.compile(rb"[+-]?\d+(?:[.,]\d+)?%?")
_FEWEST_ALIGNED = 3
_FEWEST_ROWS = 2
_ODD_WORD_IN = 8
_WORD = re.compile(rb"[^ \t,;|]*[A-Za-z][^ \t,;|]*")
_NUMBERED = re.compile(rb"(?=[^0]*0).*[^0 .+-]")
# Beginnings that no name of a column has: a time in one of its forms, an address, an id.
_VALUE = re.compile(
    rb"[ \"'(\[]*(?:1\d{9}(?:\d{3}){0,3}(?!\d)|\d{4}-\d\d-\d\d[T ]\d|\d\d:\d\d:\d\d"
    rb"|\d{1,3}(?:\.\d{1,3}){3}(?!\d)|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}"
    rb"|https?://\S)"
)


@cache
def _beginning() -> re.Pattern[bytes]:
    # Compiled at the first text that needs it.
    return re.compile(
        rb"[ \t\n]*+(?:%s)" % b"|".join(b"(%s)" % one for one in _BEGINNINGS.values()), re.MULTILINE
    )


def document_in(text: bytes, *, complete: bool, named_log: bool) -> str:
    """Return what a text looks like, if it is more than its lines; otherwise empty.

    Args:
        text: the first bytes of a source, with ASCII in place of other characters.
        complete: whether they are the whole source.
        named_log: whether the source has the name of a log.
    """
    text = text[:_LOOKED_AT_BYTES]
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    found = _beginning().match(text)
    if found is not None:
        return list(_BEGINNINGS)[(found.lastindex or 1) - 1]
    if complete and b"\n" not in text.lstrip():
        return "one value without a line end"
    lines = text.strip(b"\n").split(b"\n", _LOOKED_AT_LINES)
    if len(lines) > 1 and (not complete or len(lines) > _LOOKED_AT_LINES):
        # The last line may be cut off.
        lines.pop()
    if _are_settings(lines, named_log=named_log) or (not named_log and _are_directives(lines)):
        return "settings, or other names with a value each"
    return next((kind for kind, holds in _IN_COMMON.items() if holds(lines)), "")


def is_one_of(line: bytes, below: Sequence[bytes]) -> bool:
    """Return whether a first line is like those below it, which a header never is."""
    if line in below:
        return True
    like, numbers = _DIGITS.subn(b"0", line)
    if numbers and _WORD.search(line) and any(_DIGITS.sub(b"0", one) == like for one in below):
        return True
    word = _WORD.match(line)
    if word is None:
        return False
    ends = word[0], line[word.end() : word.end() + 1]
    return sum(one.startswith(ends[0]) and one[word.end() :][:1] == ends[1] for one in below) > 1


def has_columns(text: bytes) -> bool:
    """Return whether the first lines have the same number of fields, two or more."""
    lines = [line for line in text[:_TABLE_BYTES].split(b"\n")[:-1] if line.strip()]
    sample = _with_plain_fields(lines[:_TABLE_LINES])
    return len(sample) > 1 and any(
        len({line.count(delimiter) for line in sample}) == 1 and delimiter in sample[0]
        for delimiter in _DELIMITERS
    )


def _with_plain_fields(lines: list[bytes]) -> list[bytes]:
    """Return the records in lines, with delimiters and line ends in quoted fields replaced."""
    if not any(b'"' in line for line in lines):
        return lines
    text = b"\n".join(lines)
    plain = _QUOTED.sub(lambda field: field[0].translate(_IN_QUOTES), text)
    return plain.split(b"\n")


def _are_settings(lines: Sequence[bytes], *, named_log: bool) -> bool:
    """Return whether each of the first lines has a name, and all names differ."""
    names: list[bytes] = []
    below = messages = 0
    for line in lines:
        pair = _PAIR.match(line)
        if not line.strip():
            break
        if pair is not None and (pair[2] or pair[1].lower() not in _LEVELS):
            names.append(pair[1])
            messages += pair[2] is None and len(pair[3].split()) >= _MESSAGE_WORDS
        elif names and line.startswith(_BELOW_A_PAIR):
            below += 1
        else:
            return False
    if len(set(names)) < len(names) or not names:
        return False
    if named_log:
        # Programs begin messages with a name, too, and write stanzas.
        if is_one_of(lines[0], lines[1:]):
            return False
        return len(names) + below > 1 and messages < len(names) / 2
    return True


def _are_directives(lines: Sequence[bytes]) -> bool:
    """Return whether each line is an address with its names, or all are different directives."""
    held = [line for line in lines if line.strip()]
    if all(map(_HOST.fullmatch, held)):
        return True
    names = [line.split(None, 1)[0] for line in held]
    if len(set(names)) < len(names) or len(names) == 1:
        return False
    marked = any(map(_CAMEL.match, names)) or held[1][:1] in b" \t"
    return marked and all(map(_DIRECTIVE.fullmatch, held))


def _has_heading(lines: Sequence[bytes]) -> bool:
    """Return whether a blank line soon follows the first line, which is unlike all others."""
    blank = [not line.strip() for line in lines]
    if not any(blank[1:_HEADING_LINES]) or all(blank[1::2]):
        return False
    return not is_one_of(lines[0], lines[1:])


def _is_prose(lines: Sequence[bytes]) -> bool:
    """Return whether most lines are sentences or parts of them, or each is one word."""
    if not any(b" " in line or b"\t" in line for line in lines):
        return not _EVIDENCE.search(lines[0]) or _ONE_WORD.fullmatch(lines[0]) is not None
    if not _reads_as_prose(lines[0], lines[1] if len(lines) > 1 else b""):
        return False
    followed = list(zip(lines, (*lines[1:], b""), strict=True))
    return 2 * sum(_reads_as_prose(*one) for one in followed) >= len(lines)


def _reads_as_prose(line: bytes, following: bytes) -> bool:
    if _SENTENCE.fullmatch(line):
        return True
    return _WRAPPED.fullmatch(line) is not None and following[:1].islower()


def _are_statements(lines: Sequence[bytes]) -> bool:
    ends = [line.rstrip()[-1:] for line in lines[:2] if line.strip()]
    return ends[:1] == [b";"] and ends[1:] in ([b";"], [b"{"])


def _are_partly_json(lines: Sequence[bytes]) -> bool:
    held = [line for line in lines[: 2 * _TABLE_LINES] if line.strip()]
    return 2 * sum(line.startswith(b'{"') for line in held) >= max(len(held), 2)


def _is_table(lines: Sequence[bytes]) -> bool:
    """Return whether the first line may be a header for fields that the lines below share."""
    sample = [line for line in lines[:_TABLE_LINES] if line.strip()]
    if _are_names(sample[0]) or _NAMES_APART.fullmatch(sample[0]) or _has_aligned_names(sample):
        return True
    if is_one_of(sample[0], sample[1:]):
        return False
    found, sample = False, _with_plain_fields(sample)
    for delimiter in _DELIMITERS:
        fields = sample[0].count(delimiter)
        if fields and len(sample) > 1 and all(line.count(delimiter) == fields for line in sample):
            found = True
            columns = zip(*(line.split(delimiter) for line in sample), strict=True)
            if any(_has_values(column) or _is_phrase(column) for column in columns):
                return False
    return found


def _has_aligned_names(lines: Sequence[bytes]) -> bool:
    """Return whether the first line has a word for each column, and one column is numbers."""
    names, *rows = (line.split() for line in lines)
    widths = {len(names), *map(len, rows)}
    if len(widths) > 1 or len(names) < _FEWEST_ALIGNED or len(rows) < _FEWEST_ROWS:
        return False
    if not all(map(_ALIGNED_NAME.fullmatch, names)) or names[0].lower() in _LEVELS:
        return False
    return any(all(map(_NUMBER.fullmatch, column)) for column in zip(*rows, strict=True))


def _is_phrase(fields: Sequence[bytes]) -> bool:
    """Return whether the supposed delimiter is punctuation, with a blank after it."""
    return all(field.startswith(b" ") for field in fields)


def _are_names(line: bytes) -> bool:
    """Return whether a line is names between delimiters, or between blanks if some are compound."""
    words = line.split()
    named = [word for word in words if _IDENTIFIER.fullmatch(word)]
    return _NAMES.fullmatch(line) is not None or (
        sum(b"_" in word or b"-" in word for word in named) >= _FEWEST_JOINED_WORDS
        and len(named) >= len(words) - len(words) // _ODD_WORD_IN
    )


def _has_values(fields: Sequence[bytes]) -> bool:
    """Return whether a column has values of one kind even in the first line, which has no name."""
    if all(map(_VALUE.match, fields)):
        return True
    like = {_DIGITS.sub(b"0", field) for field in fields}
    return len(like) == 1 and _NUMBERED.search(like.pop()) is not None


_IN_COMMON = {
    "a heading above paragraphs": _has_heading,
    "prose, or a list of words": _is_prose,
    "statements of a language": _are_statements,
    "JSON between other lines": _are_partly_json,
    "a table, whose first line may be a header": _is_table,
}
