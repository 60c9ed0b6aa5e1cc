"""The columns of a Parquet object as Hive types, from the schema in its footer.

The meaning of an element is defined in ``LogicalTypes.md`` of the Apache Parquet format, which also
covers lists and maps of older writers. Types are mapped as in Spark's catalog.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compactor.encoding.thrift_compact import BYTE, STRUCT, TRUE, CompactReader, Fields
from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason

_DEEPEST = 64
_MOST_ELEMENTS = 100_000
_REPEATED = 2
# Physical types, by their numbers.
_PHYSICAL = {
    0: "boolean", 1: "int", 2: "bigint", 3: "timestamp", 4: "float", 5: "double", 6: "binary",
    7: "binary",
}  # fmt: skip
# Converted types, which every writer sets in addition to logical ones, or instead of them.
_MAP, _OLD_MAP, _LIST, _DECIMAL = 1, 2, 3, 5
_CONVERTED = {
    0: "string", 4: "string", 6: "date", 9: "timestamp", 10: "timestamp", 15: "tinyint",
    16: "smallint", 17: "int", 18: "bigint", 19: "string", 20: "binary",
}  # fmt: skip
_NO_COUNTERPART = {
    7: "a time of day", 8: "a time of day", 11: "a whole number without sign",
    12: "a whole number without sign", 13: "a whole number without sign",
    14: "a whole number without sign", 21: "an interval",
}  # fmt: skip
# Logical types without a converted type, and those whose converted type may be missing.
_LOGICAL = {1: "string", 4: "string", 6: "date", 8: "timestamp", 12: "string", 13: "binary"}
_LOGICAL_WITHOUT = {7: "a time of day", 11: "null in every row", 15: "a number of two bytes"}
_LOGICAL_MAP, _LOGICAL_LIST, _LOGICAL_DECIMAL, _LOGICAL_INTEGER = 2, 3, 5, 10
_SIGNED = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}
_PLAIN = re.compile(r"\w+")


class NoHiveType(ValueError):
    """A column has a type that Hive lacks; the message names both."""


@dataclass(slots=True)
class _Element:
    """A SchemaElement and its members; -1 stands for a missing value."""

    name: str = ""
    physical: int = -1
    repetition: int = -1
    children: int = 0
    converted: int = -1
    logical: int = -1
    scale: int = 0
    precision: int = 0
    bits: int = 0
    signed: bool = False
    inside: Sequence[_Element] = ()

    @property
    def is_list(self) -> bool:
        return self.converted == _LIST or self.logical == _LOGICAL_LIST

    @property
    def is_map(self) -> bool:
        return self.converted in (_MAP, _OLD_MAP) or self.logical == _LOGICAL_MAP


def hive_columns(schema: bytes) -> Mapping[str, str]:
    """Return column names, in lower case as in catalogs, with their Hive types.

    Args:
        schema: see :class:`compactor.encoding.parquet_footer.ParquetFooter`.

    Raises:
        NoHiveType: a column has no Hive type, or two columns have the same name.
        UnreadableSource: CORRUPT, it is not a schema.
    """
    try:
        elements = _SchemaReader(schema).elements()
        root = _tree(iter(elements), 0)
    except (IndexError, ValueError, StopIteration) as error:
        detail = f"its Parquet schema cannot be read: {type(error).__name__}"
        raise UnreadableSource(QuarantineReason.CORRUPT, detail) from error
    return _members(root)


def _tree(elements: Iterator[_Element], depth: int) -> _Element:
    """Return the next element with all elements below it, which follow it."""
    if depth > _DEEPEST:
        raise ValueError("nested too deep")
    one = next(elements)
    one.inside = [_tree(elements, depth + 1) for _ in range(one.children)]
    return one


def _members(group: _Element) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in group.inside:
        name = one.name.lower()
        if name in found:
            raise NoHiveType(f"two of them are named {name}, but for upper and lower case")
        found[name] = _hive(one)
    return found


def _hive(one: _Element) -> str:
    if one.repetition == _REPEATED:
        # A writer that does not use LIST; it is a list all the same.
        return f"array<{_single(one)}>"
    return _single(one)


def _single(one: _Element) -> str:
    """Return the type of a single value of an element."""
    if one.is_list and len(one.inside) == 1:
        return f"array<{_item(one)}>"
    if one.is_map and len(one.inside) == 1 and len(one.inside[0].inside) == 2:
        key, value = one.inside[0].inside
        return f"map<{_hive(key)},{_hive(value)}>"
    if one.children:
        members = _members(one)
        for name in members:
            if not _PLAIN.fullmatch(name):
                raise NoHiveType(f"{one.name} has a member named {name!r}, which no type can name")
        return f"struct<{','.join(f'{name}:{kind}' for name, kind in members.items())}>"
    return _scalar(one)


def _item(one: _Element) -> str:
    """Return a list's item type. The repeated group is the item only with old writers."""
    repeated = one.inside[0]
    old = repeated.name in ("array", f"{one.name}_tuple")
    if len(repeated.inside) != 1 or old or repeated.inside[0].repetition == _REPEATED:
        return _single(repeated)
    return _hive(repeated.inside[0])


def _scalar(one: _Element) -> str:
    if one.converted == _DECIMAL or one.logical == _LOGICAL_DECIMAL:
        return f"decimal({one.precision},{one.scale})"
    without = _NO_COUNTERPART.get(one.converted) or _LOGICAL_WITHOUT.get(one.logical)
    if one.logical == _LOGICAL_INTEGER:
        if one.signed and one.bits in _SIGNED:
            return _SIGNED[one.bits]
        without = "a whole number without sign"
    if without:
        raise NoHiveType(f"{one.name} is {without}")
    known = _CONVERTED.get(one.converted) or _LOGICAL.get(one.logical)
    if known or one.physical in _PHYSICAL:
        return known or _PHYSICAL[one.physical]
    raise NoHiveType(f"{one.name} is of a type that nothing is known of")


class _SchemaReader(CompactReader):
    """Reads a list of SchemaElement."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._one = _Element()

    def elements(self) -> list[_Element]:
        """Return all elements, each group before its members."""
        size, kind = self.list_header()
        self.require(kind, STRUCT)
        if size > _MOST_ELEMENTS:
            raise ValueError("too many elements")
        found = []
        for _ in range(size):
            self._one = one = _Element()
            self.struct(
                {
                    1: self._into("physical"),
                    3: self._into("repetition"),
                    4: self._name,
                    5: self._into("children"),
                    6: self._into("converted"),
                    7: self._into("scale"),
                    8: self._into("precision"),
                    10: self._logical,
                }
            )
            found.append(one)
        return found

    def _into(self, attribute: str) -> Callable[[int], None]:
        return lambda kind: setattr(self._one, attribute, self.number(kind))

    def _name(self, kind: int) -> None:
        self._one.name = self.binary(kind).decode()

    def _logical(self, kind: int) -> None:
        """Read a union: its one field is the type, with the type's parameters."""
        self.require(kind, STRUCT)
        known = (*_LOGICAL, *_LOGICAL_WITHOUT, _LOGICAL_MAP, _LOGICAL_LIST)
        self.struct(
            {
                **{number: self._which(number, {}) for number in known},
                _LOGICAL_DECIMAL: self._which(
                    _LOGICAL_DECIMAL, {1: self._into("scale"), 2: self._into("precision")}
                ),
                _LOGICAL_INTEGER: self._which(_LOGICAL_INTEGER, {1: self._bits, 2: self._sign}),
            }
        )

    def _which(self, number: int, fields: Fields) -> Callable[[int], None]:
        def read(kind: int) -> None:
            self.require(kind, STRUCT)
            self._one.logical = number
            self.struct(fields)

        return read

    def _bits(self, kind: int) -> None:
        self.require(kind, BYTE)
        self._one.bits = self.byte()

    def _sign(self, kind: int) -> None:
        # A boolean's value is its kind.
        self._one.signed = kind == TRUE
