"""Parses columns given as Spark DDL, such as ``id BIGINT, tags ARRAY<STRING>``.

The grammar is that of Spark's ``StructType.fromDDL``, for the types that outputs can have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from compactor.rows.schema import MOST_DIGITS, TIMESTAMP, TIMESTAMP_NTZ, field, list_of

_TYPES = {
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
    "BINARY": pa.binary(),
    "VOID": pa.null(),
}
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
# Lengths are not enforced: outputs store text of any length.
_TEXTS = frozenset({"VARCHAR", "CHAR", "CHARACTER"})
_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<text>r?'(?:[^'\\]|\\.|'')*'|r?\"(?:[^\"\\]|\\.|\"\")*\")"
    r"|`(?P<quoted>(?:[^`]|``)*)`"
    r"|(?P<word>[A-Za-z0-9_]+)"
    r"|(?P<sign>[<>(),:])",
    re.DOTALL | re.IGNORECASE,
)
# A word of this form is a number, and cannot name a column without quotes.
_NUMBER = re.compile(r"[0-9]+(?:e[0-9]+)?(?:l|s|y|f|d|bd)?", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_DEEPEST = 64
_T = TypeVar("_T")


def parse_ddl(text: str) -> pa.Schema:
    """Return the columns that a DDL string describes; ``NOT NULL`` has no effect.

    A single type stands for its fields if it is a struct, otherwise for a column named ``value``.

    Raises:
        ValueError: it is not a valid schema; the message is a short reason.
    """
    tokens = _tokens(text)
    try:
        return pa.schema(_distinct(_Parser(tokens).columns()))
    except ValueError:
        try:
            kind = _Parser(tokens).whole_type()
        except ValueError:
            kind = None
        if kind is None:
            raise
    return pa.schema(list(kind) if pa.types.is_struct(kind) else [field("value", kind)])


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return the tokens, each with its type: word, quoted, text or sign."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"unexpected {text[at : at + 10]!r}")
        at = match.end()
        name = match.lastgroup or ""
        if name != "space":
            found.append((name, match[name]))
    return found


class _Parser:
    """Reads one list of tokens from left to right."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = self._depth = 0

    def columns(self) -> list[pa.Field]:
        """Read a list of columns to the end of the text."""
        found = [] if not self._tokens else self._list_of(self._column)
        self._require_end()
        return found

    def whole_type(self) -> pa.DataType:
        """Read one type to the end of the text."""
        kind = self._type()
        self._require_end()
        return kind

    def _column(self) -> pa.Field:
        name = self._name()
        self._takes(":")
        kind = self._type()
        if self._takes("NOT"):
            self._require("NULL")
        comment = self._text() if self._takes("COMMENT") else None
        return field(name, kind, comment)

    def _type(self) -> pa.DataType:
        name = self._word()
        if name in _TYPES:
            return _TYPES[name]
        if name in _DECIMALS:
            return self._decimal()
        if name in _TEXTS:
            (length,) = self._numbers(1)
            if length < 1:
                raise ValueError(f"{name} needs a length of at least 1")
            return pa.string()
        return self._nested(name)

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self._peek() == ("sign", "("):
            precision, scale = (*self._numbers(2), 0)[:2]
        if not 1 <= precision <= MOST_DIGITS or scale > precision:
            raise ValueError(f"DECIMAL({precision},{scale}) is beyond DECIMAL({MOST_DIGITS},s)")
        return pa.decimal128(precision, scale)

    def _nested(self, name: str) -> pa.DataType:
        read = {"ARRAY": self._array, "MAP": self._map, "STRUCT": self._struct}.get(name)
        if read is None:
            raise ValueError(f"{name} is not a type")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"types are nested deeper than {_DEEPEST}")
        self._require("<")
        kind = read()
        self._require(">")
        self._depth -= 1
        return kind

    def _array(self) -> pa.DataType:
        return list_of(self._type())

    def _map(self) -> pa.DataType:
        key = self._type()
        self._require(",")
        return pa.map_(key, self._type())

    def _struct(self) -> pa.DataType:
        return pa.struct(_distinct(self._list_of(self._column)))

    def _numbers(self, most: int) -> list[int]:
        """Read up to so many numbers in parentheses."""
        self._require("(")
        found = self._list_of(self._number)
        self._require(")")
        if len(found) > most:
            raise ValueError("too many numbers for a type")
        return found

    def _number(self) -> int:
        word = self._word()
        if not word.isdecimal():
            raise ValueError(f"{word} is not a number")
        return int(word)

    def _list_of(self, read: Callable[[], _T]) -> list[_T]:
        found = [read()]
        while self._takes(","):
            found.append(read())
        return found

    def _name(self) -> str:
        kind, value = self._next()
        if kind == "quoted":
            return value.replace("``", "`")
        if kind != "word" or _NUMBER.fullmatch(value):
            raise ValueError(f"{value!r} is not a name")
        return value

    def _text(self) -> str:
        """Read a comment: adjacent literals are one."""
        found = []
        while self._peek()[0] == "text":
            found.append(_unescaped(self._next()[1]))
        if not found:
            raise ValueError("COMMENT needs a text in quotes")
        return "".join(found)

    def _word(self) -> str:
        kind, value = self._next()
        if kind != "word":
            raise ValueError(f"unexpected {value!r}")
        return value.upper()

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        if not token[0]:
            raise ValueError("it ends too early")
        self._at += 1
        return token

    def _takes(self, wanted: str) -> bool:
        kind, value = self._peek()
        if kind not in {"sign", "word"} or value.upper() != wanted:
            return False
        self._at += 1
        return True

    def _require(self, wanted: str) -> None:
        if not self._takes(wanted):
            found = self._peek()[1]
            before = f"before {found!r}" if found else "at the end"
            raise ValueError(f"{wanted!r} is missing {before}")

    def _require_end(self) -> None:
        if self._at < len(self._tokens):
            raise ValueError(f"unexpected {self._peek()[1]!r}")


def _distinct(fields: list[pa.Field]) -> list[pa.Field]:
    names = [one.name for one in fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two columns are named {twice}")
    return fields


def _unescaped(literal: str) -> str:
    if literal[0] in "rR":
        return literal[2:-1]
    quote = literal[0]
    return _ESCAPE.sub(_escaped, literal[1:-1].replace(quote * 2, quote))


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    if len(code) == len("000"):
        return chr(int(code, 8))
    if code in {"%", "_"}:
        return match[0]
    return _ESCAPES.get(code, code)
