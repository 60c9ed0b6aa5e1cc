"""JSON as its readers parse it: one value, consecutive values, or records in an array."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator

import msgspec

from compactor.second_reading.deep_json import end_of_value

_BLANK = re.compile(r"[ \t\r\n]*")
_ONE_VALUE = msgspec.json.Decoder(msgspec.Raw)
_RAW_DECODE = json.JSONDecoder().raw_decode
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BLANKS_OUTSIDE_STRINGS = re.compile(rb"(%b)|[ \t\r\n]+" % _STRING.pattern, re.DOTALL)
_WITHOUT_SUCH_BLANKS = re.compile(rb'(?:[^" \t\r\n]++|%b)*+' % _STRING.pattern, re.DOTALL)


class NotJson(Exception):
    """The text is not the expected kind of JSON; the argument says why, in words."""


class _Records(msgspec.Struct, forbid_unknown_fields=True):
    Records: list[msgspec.Raw]


_RECORDS = msgspec.json.Decoder(_Records)


def is_value(text: bytes) -> bool:
    """Return True for exactly one JSON value, with optional whitespace around it."""
    try:
        _ONE_VALUE.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _is_lax_value(text)
    return True


def _is_lax_value(text: bytes) -> bool:
    """Decide as Python's own decoder does, which accepts lone surrogates and NaN."""
    try:
        only = Text((text,))
        only.value()
    except NotJson:
        return False
    return not only.next_character()


def is_records_alone(text: bytes) -> bool:
    """Return True for ``{"Records":[…]}`` without another member."""
    try:
        _RECORDS.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _are_lax_records(text)
    return True


def _are_lax_records(text: bytes) -> bool:
    try:
        for _ in elements((text,), records=True):
            continue
    except NotJson:
        return False
    return True


def are_elements_objects(text: bytes) -> bool:
    """Return True for an array in which every element is an object; also for an empty one."""
    try:
        return all(one.startswith(b"{") for one in elements((text,), records=False))
    except NotJson:
        return False


def looks_open(text: bytes) -> bool:
    """Return True if a string, an object or an array begins and does not end."""
    bare = _STRING.sub(b"", text)
    opened = bare.count(b"{") + bare.count(b"[")
    return b'"' in bare or opened > bare.count(b"}") + bare.count(b"]")


def squeezed(record: bytes) -> bytes:
    """Return a record without insignificant whitespace; every other byte is kept."""
    # Most records have none, and one match costs a tenth of substituting string by string.
    if _WITHOUT_SUCH_BLANKS.fullmatch(record):
        return record
    return _BLANKS_OUTSIDE_STRINGS.sub(rb"\1", record)


class Text:
    """JSON text that arrives in pieces, read value by value; one value is held at a time."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._text = ""
        self._at = 0
        self._ended = False

    def next_character(self) -> str:
        """Return the next non-blank character without consuming it; empty at the end."""
        while True:
            found = _BLANK.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(1):
                return ""

    def take(self, character: str) -> None:
        """Consume this character.

        Raises:
            NotJson: another one comes next.
        """
        found = self.next_character()
        if found != character:
            raise NotJson(f"{found!r} where {character!r} should be" if found else "it ends early")
        self._at += 1

    def value(self) -> bytes:
        """Consume one value and return its text.

        Raises:
            NotJson: no value comes next, or it does not end.
        """
        self.next_character()
        wanted = 1
        while True:
            try:
                end = _end_of_value(self._text, self._at)
            except ValueError as error:
                # Each attempt parses twice as much, so that a long value costs twice its length.
                wanted = 2 * max(wanted, len(self._text) - self._at)
                if not self._more(wanted):
                    raise NotJson("an invalid value, or one that does not end") from error
                continue
            # A number may continue in the next piece.
            if end < len(self._text) or not self._more(len(self._text) - self._at + 1):
                break
        raw = self._text[self._at : end]
        self._at = end
        return raw.encode("utf-8", "surrogateescape")

    def rest(self) -> Iterator[bytes]:
        """Yield everything that was not consumed."""
        yield self._text[self._at :].encode("utf-8", "surrogateescape")
        yield from self._pieces

    def _more(self, wanted: int) -> bool:
        """Hold this many unconsumed characters, or all there are; return False if none arrived."""
        held = [self._text[self._at :]]
        size, before = len(held[0]), len(held[0])
        self._at = 0
        while size < wanted and not self._ended:
            piece = next(self._pieces, None)
            self._ended = piece is None
            held.append(self._decode(piece or b"", self._ended))
            size += len(held[-1])
        self._text = "".join(held)
        return size > before


def _end_of_value(text: str, at: int) -> int:
    try:
        return _RAW_DECODE(text, at)[1]
    except RecursionError:
        return end_of_value(text, at)


def values(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text of consecutive values, with or without whitespace between them.

    Raises:
        NotJson: while iterating, if no value follows.
    """
    text = Text(pieces)
    while text.next_character():
        yield text.value()


def several_values(line: bytes) -> bool:
    """Return True for a line of several JSON objects or arrays, and nothing else."""
    if line.lstrip()[:1] not in (b"{", b"[") or is_value(line):
        return False
    try:
        return sum(1 for _ in values((line,))) > 1
    except NotJson:
        return False


def elements(pieces: Iterable[bytes], *, records: bool) -> Iterator[bytes]:
    """Yield the text of each element of one array that is the whole document.

    Args:
        pieces: the document.
        records: the array is the ``Records`` of an object without another member.

    Raises:
        NotJson: while iterating, if the document is a different one, or something follows it.
    """
    text = Text(pieces)
    if records:
        text.take("{")
        if text.value() != b'"Records"':
            raise NotJson("another member than Records")
        text.take(":")
    yield from _array(text)
    if records:
        text.take("}")
    if text.next_character():
        raise NotJson("something follows the document")


def _array(text: Text) -> Iterator[bytes]:
    text.take("[")
    if text.next_character() == "]":
        text.take("]")
        return
    yield text.value()
    while text.next_character() == ",":
        text.take(",")
        yield text.value()
    text.take("]")


# Names of record lists in documents that software writes with other fields next to the list.
_LISTS = frozenset(
    (b'"configurationItems"', b'"Records"', b'"logEvents"', b'"Findings"', b'"findings"')
)


def members(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the members of a document that is one object: lists by element, other members whole.

    Yields:
        An empty name and an element's text; or a member's name and its value's text.

    Raises:
        NotJson: while iterating, if the document is a different one, or something follows it.
    """
    text = Text(pieces)
    text.take("{")
    more = text.next_character() != "}"
    while more:
        name = text.value()
        text.take(":")
        if name in _LISTS and text.next_character() == "[":
            yield name, b"[]"
            yield from ((b"", one) for one in _array(text))
        else:
            yield name, text.value()
        more = text.next_character() == ","
        if more:
            text.take(",")
    text.take("}")
    if text.next_character():
        raise NotJson("something follows the document")


def is_listed(text: bytes) -> bool:
    """Return True for an object with exactly one known record list, which holds only objects."""
    lists = 0
    try:
        for name, value in members((text,)):
            lists += name in _LISTS and value == b"[]"
            if not name and not value.startswith(b"{"):
                return False
    except NotJson:
        return False
    return lists == 1


def starts_with_value(text: bytes) -> bool:
    """Return True if the text starts with a JSON value, whatever follows it."""
    try:
        Text((text,)).value()
    except NotJson:
        return False
    return True
