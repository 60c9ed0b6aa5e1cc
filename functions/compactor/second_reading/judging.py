"""Chooses the reader for some bytes, by an independent judgement of the bytes and the name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from compactor.model import TableDialect
from compactor.second_reading.json_values import (
    are_elements_objects,
    is_listed,
    is_records_alone,
    is_value,
    starts_with_value,
)
from compactor.second_reading.kinds import Kind, Reading, names_flow_fields

BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_LOOKED_AT_BYTES = 64 << 10
_LOOKED_AT_FOR_CONTROLS = 4096
# Of every hundred characters; text has colours, form feeds and Hive's delimiters at most.
_CONTROLS = bytes({0, *range(4, 9), *range(14, 27), *range(28, 32), 127})
_MOST_CONTROLS = 1 / 50
_MOST_NOT_UTF8 = 3 / 10
_TABLE_NAME = re.compile(r"\.([ct]sv)(?:\.(?:gz|gzip|zst|zstd|bz2))?\Z", re.IGNORECASE)
_SEPARATOR_LINE = re.compile(rb'"?sep=([^\w"\r\n])"?\r?(?:\n|\Z)', re.IGNORECASE)
_QUOTED = re.compile(rb'"[^"]*"')
_DELIMITERS = (b",", b";", b"\t", b"|")
_DIRECTIVES = re.compile(rb"(?:#[^\n]*\n)*?#Fields:", re.IGNORECASE)
_MARKUP = re.compile(rb"<(?:[?!]|svg\b|html\b|([A-Za-z_][\w:.-]*)[\s/>])", re.IGNORECASE)
_SECTION = re.compile(rb"\[[^\[\]{}\"]+\]\s*\Z")
_ASSIGNMENT = re.compile(rb"(?:[\w.\- ]+\s*[=:].*|[;#].*|\[[^\]]+\]\s*|\s*)\Z", re.DOTALL)
_TRAIL_START = re.compile(rb'\{[ \t\r\n]*"Records"[ \t\r\n]*:[ \t\r\n]*\[')
_JSON_START = re.compile(rb'\{[ \t\r\n]*["}]|\[[ \t\r\n]*[\[{"\]]')
_ARRAY_START = re.compile(rb"\[[ \t\r\n]*\{")
# A document on many lines, with nothing but short fields before its list.
_LIST_START = re.compile(
    rb'\{[ \t\r]*\n[^{}]{,4096}?"(?:configurationItems|Records|logEvents|[Ff]indings)"'
    rb"[ \t\r\n]*:[ \t\r\n]*\["
)
_SPREAD_START = re.compile(rb"\{[ \t\r]*\n")
_FLOW_LINE = re.compile(rb"[a-z][a-z-]*(?: [a-z][a-z-]*)+")
_BEGINS_A_DOCUMENT = re.compile(
    rb"-----BEGIN |BEGIN:V|diff --git |%!PS|#!|From \S+@|(?:Return-Path|Received|MIME-Version): "
)
_YAML = re.compile(rb"%YAML|---[ \t]*\r?\n[\w\"'-]+:\s")

_DECLARED: Mapping[str, Kind] = {
    "json_lines": Kind.JSON_LINES,
    "text": Kind.TEXT,
    "csv": Kind.TABLE,
    "tsv": Kind.TABLE,
    "vpc_flow": Kind.FLOW,
    "cloudfront": Kind.W3C,
    "cloudtrail": Kind.TRAIL,
    "undelimited_json": Kind.JSON_STREAM,
    "json_array": Kind.ARRAY,
    "json_list": Kind.LIST,
}


@dataclass(frozen=True, slots=True)
class Declared:
    """What the settings of a run declare about its sources and outputs; nothing by default.

    Attributes:
        format: of all sources, or ``auto``.
        csv_header: ``present``, ``absent`` or ``auto``.
        table: the table dialect, if one was decided for all sources of an output.
        single_byte: text may use a single-byte encoding.
        nul_bytes: text may contain NUL bytes.
        document_lines: as for :meth:`Reading.as_output`.
    """

    format: str = "auto"
    csv_header: str = "auto"
    table: TableDialect | None = None
    single_byte: bool = False
    nul_bytes: bool = False
    document_lines: bool = False

    @property
    def has_header(self) -> bool:
        """True if the first row of a table names its columns."""
        return self.csv_header == "present" if self.table is None else self.table.header


def judge(content: bytes, name: str, declared: Declared, *, complete: bool = True) -> Reading:
    """Return the reader that fits a source.

    Args:
        content: its plain bytes; the first megabyte is enough.
        name: the source's name. Only a ``.csv`` or ``.tsv`` ending has a meaning.
        declared: what the settings declare.
        complete: ``content`` is the whole source.
    """
    content = content.removeprefix(BOM)
    if declared.format != "auto":
        kind = _DECLARED.get(declared.format, Kind.BINARY)
        return Reading(kind, _delimiter(content, name, declared))
    if is_binary(content, declared):
        return Reading(Kind.BINARY)
    kind = _json_kind(content, complete=complete) or _text_kind(content, name)
    return Reading(kind, _delimiter(content, name, declared) if kind is Kind.TABLE else ",")


def separator_line(content: bytes) -> int:
    """Return the length of the ``sep=`` line that instructs a spreadsheet, or 0."""
    found = _SEPARATOR_LINE.match(content)
    return found.end() if found else 0


def is_binary(content: bytes, declared: Declared) -> bool:
    """Return True for content that no text reader treats as text."""
    head = content[:_LOOKED_AT_FOR_CONTROLS]
    if declared.nul_bytes:
        head = head.replace(b"\0", b"")
    if not head or b"\0" in head:
        return bool(head)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > _MOST_CONTROLS * len(head):
        return True
    if declared.single_byte or head.isascii():
        return False
    strange = len(head) - len(head.decode("utf-8", "ignore").encode())
    # The cut may split a character.
    many = strange > 3 and strange > _MOST_NOT_UTF8 * len(head)
    return many or _starts_oddly(head)


def _starts_oddly(head: bytes) -> bool:
    """Return True if the first bytes are no UTF-8 character, as in MessagePack maps and arrays."""
    try:
        head[:4].decode()
    except UnicodeDecodeError as error:
        return error.start == 0
    return False


def _json_kind(content: bytes, *, complete: bool) -> Kind | None:
    text = content.strip(_BLANKS)
    if text[:1] not in (b"{", b"["):
        return None
    if complete and is_value(text):
        return _document_kind(text)
    line = text.partition(b"\n")[0]
    if is_value(line):
        return Kind.JSON_LINES
    if _JSON_START.match(text) and starts_with_value(text):
        return Kind.JSON_STREAM
    return _unfinished_kind(text, complete=complete)


def _document_kind(text: bytes) -> Kind:
    """Return the kind of one JSON value that is the whole content."""
    if text.startswith(b"{"):
        if is_records_alone(text):
            return Kind.TRAIL
        if (b"\n" in text or _TRAIL_START.match(text)) and is_listed(text):
            return Kind.LIST
        if b"\n" not in text:
            return Kind.JSON_LINES
    elif are_elements_objects(text):
        return Kind.ARRAY
    return Kind.JSON_DOCUMENT


def _unfinished_kind(text: bytes, *, complete: bool) -> Kind | None:
    """Return the kind of JSON cut off, broken or longer than the head; None for other text."""
    if _TRAIL_START.match(text):
        return Kind.TRAIL
    if not complete and _LIST_START.match(text):
        return Kind.LIST
    if not _JSON_START.match(text):
        return None
    if not complete and _ARRAY_START.match(text):
        return Kind.ARRAY
    if text.startswith(b"[") or _SPREAD_START.match(text):
        return Kind.JSON_DOCUMENT
    return Kind.JSON_LINES if complete else Kind.JSON_STREAM


def _text_kind(content: bytes, name: str) -> Kind:
    head = content[:_LOOKED_AT_BYTES]
    if _DIRECTIVES.match(head):
        return Kind.W3C
    if _names_flow_fields(head, name):
        return Kind.FLOW
    if _TABLE_NAME.search(name):
        return Kind.TABLE
    begins = _BEGINS_A_DOCUMENT.match(head) or _YAML.match(head) or _is_sections(head)
    if begins or _is_markup(content.strip(_BLANKS)):
        return Kind.DOCUMENT
    return Kind.CR_TEXT if b"\r" in head.rstrip() and b"\n" not in head else Kind.TEXT


def _names_flow_fields(head: bytes, name: str) -> bool:
    first, _, rest = head.partition(b"\n")
    names = first.decode("utf-8", "replace").split()
    if names_flow_fields(names):
        return True
    # A custom format may have none of the documented names; then the object's name decides.
    second = rest.partition(b"\n")[0].split()
    alike = len(second) == len(names) > 1 and re.search(rb"\d", rest[:4096]) is not None
    return "_vpcflowlogs_" in name and alike and _FLOW_LINE.fullmatch(first.strip()) is not None


def _is_markup(text: bytes) -> bool:
    """Return True for one markup document; one element per line, as in some event logs, is text."""
    found = _MARKUP.match(text)
    if found is None or found[1] is None:
        return found is not None
    if not text.endswith(b">"):
        # Some logs begin their lines with a level in angle brackets.
        return False
    first, _, rest = text.partition(b"\n")
    end = first.rstrip()
    closed = end.endswith((b"/>", b"</" + found[1] + b">"))
    return not (closed and rest.lstrip(_BLANKS).startswith(b"<" + found[1]))


def _is_sections(head: bytes) -> bool:
    """Return True for an INI file: a section with only settings below it."""
    lines = [line for line in head.split(b"\n")[:20] if line.strip() and line[:1] not in b";#"]
    if len(lines) < 2 or not _SECTION.match(lines[0]):
        return False
    return all(_ASSIGNMENT.match(line) for line in lines[:-1])


def _delimiter(content: bytes, name: str, declared: Declared) -> str:
    """Return the delimiter of a table's cells: as decided, or as its first lines show."""
    if declared.table is not None and declared.table.delimiter:
        return declared.table.delimiter
    found = _SEPARATOR_LINE.match(content)
    if found:
        return found[1].decode("latin-1")
    named = _TABLE_NAME.search(name)
    if declared.format == "tsv" or (
        declared.format == "auto" and named and named[1].lower() == "tsv"
    ):
        return "\t"
    bare = _QUOTED.sub(b"", content[:_LOOKED_AT_BYTES])
    lines = [line for line in bare.splitlines()[:10] if line.strip()]
    counts = {one: [line.count(one) for line in lines] for one in _DELIMITERS}
    if not lines:
        return ","
    always = [one for one in _DELIMITERS if all(counts[one])]
    # Ties go to the comma; if lines are ragged, the first line decides.
    return max(always or _DELIMITERS, key=lambda one: counts[one][0]).decode()
