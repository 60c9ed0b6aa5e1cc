"""JSON records as rows: as a block where all of them fit, else one by one.

pyarrow's reader takes a block of records only as a whole. A block that it refuses, and one whose
numbers a column may have rounded, is cut up, and what is left of it is converted record by record,
by the rules of :mod:`compactor.rows.values`. Both ways give the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from compactor.rows.json_values import (
    JSON_VALUES,
    TOO_DEEP,
    Misfit,
    json_start,
    with_repeated,
)
from compactor.rows.schema import simple
from compactor.rows.values import is_equal, json_value, members

_SHOWN_CHARACTERS = 40
_NOT_ONE_OBJECT = "not one JSON object"
# As pyarrow casts these, which is as values.py reads them.
_PLAIN_TIMESTAMP = r"^[12][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"
# Whole numbers below this are held exactly by a double.
_EXACT = float(1 << 53)
# The bits of -0.0 as an integer.
_NEGATIVE_ZERO = -(1 << 63)
# A block that does not fit as a whole is cut into so many pieces, down to so few records.
_PIECES = 16
_FEW = 64
# Some room for pyarrow, which refuses a block that is as long as its limit.
_MORE_BYTES = 64
_MOST_CONTAINERS = 1_000_000
# In texts in which each digit and point is a 0: what the numbers have that a double may not hold.
_DIGITS = bytes.maketrans(b".123456789E", b"0000000000e")
_LONG_OR_SMALL = (b"0" * 16, b"0e-000")
# The start of a number before these; may be in a string, too, which only costs time.
_START = re.compile(rb"[:,\[ \t\r\n](-?0{0,15}(?:e[-+]?)?)\Z")
_LONGEST_START = 19
_FRACTION = re.compile(rb"-?[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)")


class _Object(msgspec.Struct, gc=False):
    """Any JSON object; its content is checked and discarded."""


_objects = msgspec.json.Decoder(_Object)


@dataclass(slots=True)
class Converted:
    """The rows of some records.

    Attributes:
        table: the rows of all records that fit.
        misfits: why the others do not, by their index among the records.
        unknown: indexes of those with a field that no column has.
    """

    table: pa.Table
    misfits: dict[int, str] = field(default_factory=dict)
    unknown: list[int] = field(default_factory=list)


class JsonRows:
    """Converts JSON records to rows of one schema.

    Args:
        schema: columns of the output.
        exact: whether the columns were inferred (see :mod:`compactor.rows.values`).
    """

    def __init__(self, schema: pa.Schema, *, exact: bool = False) -> None:
        self._schema = schema
        self._exact = exact
        self._members = members(schema, "", exact=exact)
        self._columns = {one.name: one.type for one in schema}
        self._keeps_names = any(_keeps_names(one.type) for one in schema)
        self._rounds = exact and any(
            True for one in schema for _ in _doubles(pa.nulls(0, one.type))
        )
        quick = [_quick(one.type) for one in schema]
        self._options = None
        if None not in quick:
            asked = pa.schema(
                [pa.field(one.name, kind) for one, kind in zip(schema, quick, strict=True)]
            )
            self._options = pa.json.ParseOptions(
                explicit_schema=asked, unexpected_field_behavior="error"
            )

    def convert(self, records: Sequence[bytes]) -> Converted:
        """Return the rows of these records, and why the others do not fit."""
        table = self._as_block(records)
        if table is not None:
            return Converted(table)
        if self._options is None or len(records) <= _FEW:
            return self._one_by_one(records)
        # Record by record takes fifteen times as long, and most of them may fit.
        size = -(-len(records) // _PIECES)
        starts = range(0, len(records), size)
        return _joined([(at, self.convert(records[at : at + size])) for at in starts])

    def _as_block(self, records: Sequence[bytes]) -> pa.Table | None:
        """Return the rows of all records; None unless every one of them certainly fits."""
        if self._options is None:
            return None
        data = b"\n".join(records)
        try:
            if not data.isascii():
                data.decode()
            if self._rounds and not _has_only_doubles(data):
                return None
            for record in records:
                _require_few(record)
                _objects.decode(record)
            reading = pa.json.ReadOptions(use_threads=False, block_size=len(data) + _MORE_BYTES)
            table = pa.json.read_json(pa.BufferReader(data), reading, self._options)
        except (
            Misfit,
            UnicodeDecodeError,
            msgspec.MsgspecError,
            RecursionError,
            pa.ArrowException,
        ):
            return None
        if table.num_rows != len(records):
            return None
        columns = [
            _finished(column, one.type)
            for column, one in zip(table.columns, self._schema, strict=True)
        ]
        if any(column is None for column in columns):
            return None
        return pa.table(columns, schema=self._schema)

    def _one_by_one(self, records: Sequence[bytes]) -> Converted:
        rows: list[dict[str, Any]] = []
        found = Converted(self._schema.empty_table())
        for index, record in enumerate(records):
            try:
                rows.append(self._row(record))
            except Misfit as misfit:
                found.misfits[index] = misfit.reason
                if misfit.unknown:
                    found.unknown.append(index)
        found.table = pa.table(
            [
                pa.array((row.get(one.name) for row in rows), type=one.type, size=len(rows))
                for one in self._schema
            ],
            schema=self._schema,
        )
        return found

    def _row(self, record: bytes) -> dict[str, Any]:
        value = decoded(record)
        if self._exact or (self._keeps_names and record.count(b"{") > 1):
            value = with_repeated(record)
        try:
            return self._members(value)
        except Misfit as misfit:
            reason, unknown = misfit.reason, misfit.unknown
        # Out of reach of the traceback, which holds what was converted so far.
        raise Misfit(reason or self._reason(value), unknown=unknown)

    def _reason(self, value: dict[str, Any]) -> str:
        """Return a reason that names the first column whose value does not fit."""
        for name, one in value.items():
            kind = self._columns.get(name)
            if one is None or kind is None:
                continue
            try:
                json_value(kind, f"{name}.", exact=self._exact)(one)
            except Misfit:
                shown = json_start(one, _SHOWN_CHARACTERS)
                return f"column {name} is {simple(kind)}, and does not take {shown}"
        raise AssertionError("no value of the record is a misfit")


def _joined(pieces: Sequence[tuple[int, Converted]]) -> Converted:
    """Return the rows of consecutive records, given by the index of the first of each piece."""
    whole = Converted(pa.concat_tables([one.table for _, one in pieces]))
    for at, one in pieces:
        whole.misfits.update({at + index: reason for index, reason in one.misfits.items()})
        whole.unknown += [at + index for index in one.unknown]
    return whole


def _has_only_doubles(data: bytes) -> bool:
    """Return whether doubles certainly hold all fractions in JSON texts without rounding them.

    A double holds every fraction of up to 15 digits, unless it is extremely small.
    """
    digits = data.translate(_DIGITS)
    for part in _LONG_OR_SMALL:
        at = digits.find(part)
        while at >= 0:
            start = _START.search(digits, max(0, at - _LONGEST_START), at)
            number = start and _FRACTION.match(data, start.start(1))
            if number and not is_equal(number[0].decode(), float(number[0])):
                return False
            at = digits.find(part, at + len(part))
    return True


def _require_few(record: bytes) -> None:
    # As a value of Python, {} has fifty times its length.
    if (
        len(record) > _MOST_CONTAINERS
        and record.count(b"{") + record.count(b"[") > _MOST_CONTAINERS
    ):
        raise Misfit(f"it has more than {_MOST_CONTAINERS:,} objects and arrays")


def decoded(record: bytes) -> dict[str, Any]:
    """Return a record as a dictionary, without rounding any number.

    Raises:
        Misfit: it is not one JSON object, or not UTF-8, or has too many values.
    """
    _require_few(record)
    try:
        # Checked as a whole first, as the decoder stops at the first character that is not UTF-8.
        _objects.decode(record)
    except RecursionError:
        raise Misfit(TOO_DEEP) from None
    except msgspec.MsgspecError as error:
        raise Misfit(f"{_NOT_ONE_OBJECT}: {error}") from None
    try:
        record.decode()
    except UnicodeDecodeError as error:
        raise Misfit(f"not UTF-8 at byte {error.start}") from None
    try:
        found: dict[str, Any] = JSON_VALUES.decode(record)
    except RecursionError:
        raise Misfit(TOO_DEEP) from None
    except msgspec.MsgspecError as error:
        raise Misfit(f"{_NOT_ONE_OBJECT}: {error}") from None
    return found


def _keeps_names(kind: pa.DataType) -> bool:
    """Return whether names in the objects of a column are part of its values."""
    if pa.types.is_list(kind):
        return _keeps_names(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_keeps_names(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_string(kind) or pa.types.is_map(kind))


def _quick(kind: pa.DataType) -> pa.DataType | None:
    """Return the type as which pyarrow reads a column; None if only record by record."""
    if pa.types.is_timestamp(kind):
        return pa.string() if kind.tz is not None else None
    return kind if _is_json(kind) else None


def _is_json(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return _is_json(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_json(kind.field(number).type) for number in range(kind.num_fields))
    # pyarrow rounds to a float by way of a double, and reads smaller integers no faster.
    return kind in (pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string())


def _finished(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return a column as read by pyarrow in its own type; None unless each value is certain."""
    if pa.types.is_timestamp(kind):
        plain = pc.all(pc.match_substring_regex(column, _PLAIN_TIMESTAMP)).as_py()
        if plain is False:
            return None
        try:
            return column.cast(kind)
        except pa.ArrowException:
            return None
    for chunk in column.chunks:
        for numbers in _doubles(chunk):
            largest = pc.max(pc.abs(numbers)).as_py()
            if largest is not None and not largest < _EXACT:
                return None
            # pyarrow reads the whole number -0 as this, too, while it is the integer 0.
            if pc.min(numbers.view(pa.int64())).as_py() == _NEGATIVE_ZERO:
                return None
    # pyarrow names the elements of a list otherwise.
    return column if column.type == kind else column.cast(kind)


def _doubles(array: pa.Array) -> Iterator[pa.Array]:
    """Yield all floating-point numbers in an array, at any depth."""
    if pa.types.is_float64(array.type):
        yield array
    elif pa.types.is_list(array.type):
        yield from _doubles(array.flatten())
    elif pa.types.is_struct(array.type):
        for member in array.flatten():
            yield from _doubles(member)
