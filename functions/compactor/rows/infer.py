"""Infers the columns of records without a schema.

JSON has types, which are those of Spark's reader, but that numbers which no type holds exactly are
text. So are objects without a fixed shape, such as the parameters of any request: each as its JSON.
CSV has no types: a column becomes a number only if every value in it is written exactly as
that number would be, so that 007 remains text. Nothing becomes a date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from compactor.rows.csv_rows import split
from compactor.rows.json_rows import decoded
from compactor.rows.json_values import Misfit, Number
from compactor.rows.records import JSON, Block, Kind
from compactor.rows.schema import SchemaClash, leaves, near, widened
from compactor.rows.values import Convert, csv_value, is_equal

_LONG = 1 << 63
_MOST_DIGITS = 38
# Levels of structs and arrays in a column. Readers of Parquet end at some hundred.
_DEEPEST = 50
# Objects are text if an object that is not empty has at most half of so many members on average, or
# if a struct would have more leaves.
_MANY_MEMBERS = 4
_MOST_LEAVES = 200
# A long has up to 19 digits.
_DIGITS_OF_LONG = 20
# Types of CSV columns other than text.
_CSV_TYPES = tuple(
    (type_, csv_value(type_, "", exact=True)) for type_ in (pa.int64(), pa.float64(), pa.bool_())
)


@dataclass(slots=True)
class _Seen:
    """The values at one place of JSON records.

    Attributes:
        count: values that are not null.
        kinds: ``bool``, ``long``, ``decimal``, ``double`` and ``string``.
        fits_double: whether a double holds all of its whole numbers.
        digits: of the longest whole number that is no long.
        members: of the objects, by name.
        objects: number of objects that are not empty.
        present: number of members, null or not, of all objects.
        element: of the arrays.
    """

    count: int = 0
    kinds: set[str] = field(default_factory=set)
    fits_double: bool = True
    digits: int = 0
    members: dict[str, _Seen] | None = None
    objects: int = 0
    present: int = 0
    element: _Seen | None = None

    def add(self, value: Any, levels: int = _DEEPEST) -> None:
        """Take a value; what is more than ``levels`` deep in it becomes text."""
        if value is None:
            return
        self.count += 1
        if not isinstance(value, dict | list):
            self._add_scalar(value)
        elif not levels:
            self.kinds.add("string")
        elif isinstance(value, dict):
            self._add_members(value, levels - 1)
        else:
            self.element = self.element or _Seen()
            for one in value:
                self.element.add(one, levels - 1)

    def _add_members(self, value: dict[str, Any], levels: int) -> None:
        if self.members is None:
            self.members = {}
        self.objects += bool(value)
        self.present += len(value)
        for name, one in value.items():
            member = self.members.get(name)
            if member is None:
                member = self.members[name] = _Seen()
            member.add(one, levels)

    def _add_scalar(self, value: bool | int | str) -> None:
        if isinstance(value, bool):
            self.kinds.add("bool")
        elif isinstance(value, int):
            self._add_whole(value)
        else:
            is_double = isinstance(value, Number) and is_equal(value, float(value))
            self.kinds.add("double" if is_double else "string")

    def _add_whole(self, value: int) -> None:
        self.fits_double = self.fits_double and _fits_double(value)
        if -_LONG <= value < _LONG:
            self.kinds.add("long")
            return
        digits = len(str(abs(value)))
        self.kinds.add("decimal" if digits <= _MOST_DIGITS else "double")
        self.digits = max(self.digits, digits)

    def type(self) -> pa.DataType:
        """Return the type that holds all values; null if there were none."""
        shapes = (self.members is not None) + (self.element is not None) + bool(self.kinds)
        if shapes != 1:
            return pa.string() if shapes else pa.null()
        if self.element is not None:
            return pa.list_(pa.field("element", self.element.type()))
        if self.members is not None:
            return self._struct(self.members)
        return self._scalar()

    def _struct(self, members: dict[str, _Seen]) -> pa.DataType:
        if len(members) >= _MANY_MEMBERS and 2 * self.present <= len(members) * self.objects:
            return pa.string()
        fields = usual(members)
        # No file holds a struct without members.
        kind = pa.struct(fields) if fields else pa.null()
        return kind if leaves(kind) <= _MOST_LEAVES else pa.string()

    def _scalar(self) -> pa.DataType:
        if self.kinds == {"bool"}:
            return pa.bool_()
        if self.kinds & {"bool", "string"}:
            return pa.string()
        if "double" in self.kinds:
            return pa.float64() if self.fits_double else pa.string()
        if "decimal" not in self.kinds:
            return pa.int64()
        digits = max(self.digits, _DIGITS_OF_LONG if "long" in self.kinds else 0)
        return pa.decimal128(digits, 0)


def _fits_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def usual(members: dict[str, _Seen]) -> list[pa.Field]:
    """Return the fields of objects; of names that differ only in case, the one that most have."""
    alike: dict[str, list[str]] = {}
    for name in sorted(members):
        alike.setdefault(name.lower(), []).append(name)
    chosen = [max(names, key=lambda name: members[name].count) for names in alike.values()]
    return [pa.field(name, members[name].type()) for name in sorted(chosen)]


class Inferred:
    """Gathers the types of records, block by block."""

    def __init__(self) -> None:
        self._json = _Seen()
        # How many values of a CSV column are not empty, and which shapes all of them have.
        self._csv: dict[Kind, list[set[int] | None]] = {}

    def add(self, block: Block) -> None:
        """Take the records of a block; those that are damaged are passed over."""
        for record in block.records:
            try:
                if block.kind.kind == JSON:
                    self._json.add(decoded(record))
                else:
                    self._add_fields(block.kind, split(record, block.kind))
            except Misfit:
                continue

    def _add_fields(self, kind: Kind, fields: Sequence[str | None]) -> None:
        shapes = self._csv.setdefault(kind, [None] * len(kind.header))
        if len(fields) != len(shapes):
            return
        for number, text in enumerate(fields):
            if text is None:
                continue
            possible = range(len(_CSV_TYPES)) if (known := shapes[number]) is None else known
            shapes[number] = {one for one in possible if _takes(_CSV_TYPES[one][1], text)}

    def columns(self, known: pa.Schema) -> pa.Schema:
        """Return the known columns, followed by other columns of the records.

        If no type holds the values of two kinds of records without loss, their column is text.

        Args:
            known: empty if no columns are known. Otherwise a field without any value adds no
                column, as its type is unknown, nor does a name that differs from a known one only
                in case.
        """
        found = {one.name: one.type for one in usual(self._json.members or {})}
        for kind, shapes in self._csv.items():
            for name, left in zip(kind.header, shapes, strict=True):
                type_ = _CSV_TYPES[min(left)][0] if left else pa.string()
                if near(name, found) == name:
                    found[name] = _common(found[name], type_, name) if name in found else type_
        if len(known):
            named = {name.lower() for name in known.names}
            found = {
                name: kind
                for name, kind in found.items()
                if name.lower() not in named and not _is_unknown(kind)
            }
        added = [pa.field(name, _settled(kind)) for name, kind in found.items()]
        return pa.schema([*known, *added])


def _takes(convert: Convert, text: str) -> bool:
    try:
        convert(text)
    except Misfit:
        return False
    return True


def _common(known: pa.DataType, other: pa.DataType, name: str) -> pa.DataType:
    try:
        return widened(known, other, name)
    except SchemaClash:
        return pa.string()


def _is_unknown(kind: pa.DataType) -> bool:
    """Return whether no value settled a type, as of an empty array."""
    if pa.types.is_list(kind):
        return _is_unknown(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_unknown(one.type) for one in _fields(kind))
    return bool(pa.types.is_null(kind))


def _settled(kind: pa.DataType) -> pa.DataType:
    """Return a type with text wherever no value settled one."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _settled(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _settled(one.type)) for one in _fields(kind)])
    return pa.string() if pa.types.is_null(kind) else kind


def _fields(kind: pa.StructType) -> Iterable[pa.Field]:
    return (kind.field(number) for number in range(kind.num_fields))
