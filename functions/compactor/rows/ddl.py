"""Parses columns given as Spark DDL, such as ``id BIGINT, tags ARRAY<STRING>``."""

from __future__ import annotations

import re

import pyarrow as pa

from compactor.rows.schema import MOST_DIGITS, TYPES_BY_NAME, list_of

# The numbers of a type belong to its token. A character of no other token is one by itself.
_TOKEN = re.compile(
    r"`(?:[^`]|``)+`|[A-Za-z0-9_]+(?:\s*\(\s*[0-9]{1,9}\s*(?:,\s*[0-9]{1,9}\s*)?\))?|\S"
)
_NAME = re.compile(r"`(.+)`|[A-Za-z_][A-Za-z0-9_]*", re.DOTALL)
_DECIMAL = re.compile(r"decimal(?:\(([0-9]+)(?:,([0-9]+))?\))?")
_DEEPEST = 64


def parse_ddl(text: str) -> pa.Schema:
    """Return the columns that a DDL string describes; names of types are in any case.

    Raises:
        ValueError: it is not a valid schema; the message is a short reason in one line.
    """
    return pa.schema(_Parser(text).columns())


class _Parser:
    def __init__(self, text: str) -> None:
        # The next token is the last; the empty token is the end of the text.
        self._tokens = ["", *reversed(_TOKEN.findall(text))]

    def columns(self, path: str = "", end: str = "", depth: int = 0) -> list[pa.Field]:
        """Read columns, or the fields of a struct at a path such as ``a.``, up to a token."""
        columns: dict[str, pa.Field] = {}
        separator = ","
        while separator == ",":
            token = self._tokens.pop()
            match = _NAME.fullmatch(token)
            if match is None:
                raise ValueError(f"the name of a column is expected instead of {token!r}")
            name = token if match[1] is None else match[1].replace("``", "`")
            if name in columns:
                raise ValueError(f"two columns are named {path + name!r}")
            if self._tokens[-1] == ":":
                self._tokens.pop()
            columns[name] = pa.field(name, self._type(path + name, depth))
            separator = self._tokens.pop()
            if separator not in {",", end}:
                raise ValueError(f"column {path + name!r} is followed by {separator!r}")
        return list(columns.values())

    def _type(self, column: str, depth: int) -> pa.DataType:
        token = self._tokens.pop()
        name = "".join(token.split()).lower()
        if name in TYPES_BY_NAME:
            return TYPES_BY_NAME[name]
        decimal = _DECIMAL.fullmatch(name)
        if decimal is not None:
            precision, scale = int(decimal[1] or 10), int(decimal[2] or 0)
            if max(scale, 1) <= precision <= MOST_DIGITS:
                return pa.decimal128(precision, scale)
        if decimal is not None or name not in {"array", "map", "struct"} or depth == _DEEPEST:
            raise ValueError(f"column {column!r} has the type {token!r}")
        self._require("<", column)
        if name == "struct":
            return pa.struct(self.columns(f"{column}.", ">", depth + 1))
        kind = self._type(column, depth + 1)
        if name == "map":
            self._require(",", column)
            kind = pa.map_(kind, self._type(column, depth + 1))
        self._require(">", column)
        return list_of(kind) if name == "array" else kind

    def _require(self, expected: str, column: str) -> None:
        token = self._tokens.pop()
        if token != expected:
            raise ValueError(f"the type of column {column!r} has {token!r} instead of {expected!r}")
