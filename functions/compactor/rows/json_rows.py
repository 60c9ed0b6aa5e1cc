"""JSON records as rows.

One typed decoder reads the records of a block, and each column is built from the values of all of
them. A record that the decoder or a column refuses is converted by itself, by the rules of
:mod:`compactor.rows.values`, and the block is built without it. Both ways give the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from compactor.rows.json_values import (
    JSON_VALUES,
    TOO_DEEP,
    Misfit,
    Number,
    distinct_names,
    json_start,
    levels_of,
    plain_text,
    with_repeated,
)
from compactor.rows.schema import simple
from compactor.rows.values import Convert, json_value, members

_SHOWN_CHARACTERS = 40
_NOT_ONE_OBJECT = "not one JSON object"
# As pyarrow casts these, which is as values.py reads them.
_PLAIN_TIMESTAMP = r"^[12][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"
_MOST_CONTAINERS = 1_000_000
# White space between a name and its colon, which the texts of records hardly have.
_SPACED_ENDS = (b" :", b"\t:", b"\r:", b"\n:")
# Quotes before a colon that may begin a text, or end one that is no name.
_UNCLEAR = re.compile(rb'":(?:(?<=[\s:,\[{]":)|(?<=\\\\":))')


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
        self._columns = {column.name: column.type for column in schema}
        self._keeps_names = any(_keeps_names(column.type) for column in schema)
        self._record = _column(pa.struct(list(schema)), "", exact=exact)
        self._decode = msgspec.json.Decoder(self._record.type, float_hook=Number).decode

    def convert(self, records: Sequence[bytes]) -> Converted:
        """Return the rows of these records, and why the others do not fit."""
        objects: dict[int, Any] = {}
        for index, record in enumerate(records):
            try:
                _require_few(record)
                if not record.isascii():
                    record.decode()
                objects[index] = self._decode(record)
            except (Misfit, UnicodeDecodeError, msgspec.MsgspecError, RecursionError):
                continue
        # Terminates: each iteration leaves out another record.
        while True:
            block = _Block()
            table = self._table(objects, block)
            odd = block.odd or _with_repeated_names([records[n] for n in objects], block.names)
            if not odd:
                break
            objects = {n: row for at, (n, row) in enumerate(objects.items()) if at not in odd}
        return self._with_others(table, [*objects], records)

    def _table(self, objects: dict[int, Any], block: _Block) -> pa.Table:
        if not objects:
            return self._schema.empty_table()
        rows = self._record.build([*objects.values()], range(len(objects)), block)
        return pa.table(rows.flatten(), schema=self._schema)

    def _with_others(
        self, table: pa.Table, indexes: list[int], records: Sequence[bytes]
    ) -> Converted:
        """Return a table of the records at some indexes, with the rows of all others that fit."""
        converted = Converted(table)
        rows: dict[int, dict[str, Any]] = {}
        for index in sorted(set(range(len(records))).difference(indexes)):
            try:
                rows[index] = self._row(records[index])
            except Misfit as misfit:
                converted.misfits[index] = misfit.reason
                if misfit.unknown:
                    converted.unknown.append(index)
        if rows:
            columns = [
                pa.array(
                    (row.get(column.name) for row in rows.values()), column.type, size=len(rows)
                )
                for column in self._schema
            ]
            both = pa.concat_tables([table, pa.table(columns, schema=self._schema)])
            places = [*indexes, *rows]
            order = sorted(range(len(places)), key=places.__getitem__)
            converted.table = both.combine_chunks().take(pa.array(order, pa.int64()))
        return converted

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
        for name, member in value.items():
            kind = self._columns.get(name)
            if member is None or kind is None:
                continue
            try:
                json_value(kind, f"{name}.", exact=self._exact)(member)
            except Misfit:
                shown = json_start(member, _SHOWN_CHARACTERS)
                return f"column {name} is {simple(kind)}, and does not take {shown}"
        raise AssertionError("no value of the record is a misfit")


@dataclass(slots=True)
class _Block:
    """What is learned while the columns of a block are built.

    Attributes:
        odd: indexes of the objects with a value that a column does not take as it is.
        names: number of names in all objects, each counted once per object.
    """

    odd: set[int] = field(default_factory=set)
    names: int = 0


#: Builds an array of values, any of which may be None; the others are decoded, and come with the
#: index of the object that each belongs to.
_Build = Callable[[list[Any], Sequence[int], _Block], pa.Array]


class _Column(NamedTuple):
    """How the values of a column are decoded, and become an array."""

    type: Any
    build: _Build


def _column(kind: pa.DataType, path: str, *, exact: bool) -> _Column:
    if pa.types.is_struct(kind):
        column = _struct(kind, path, exact=exact)
        if column is not None:
            return column
    if pa.types.is_list(kind):
        return _list(kind, path, exact=exact)
    return _scalar(kind, path, exact=exact)


def _scalar(kind: pa.DataType, path: str, *, exact: bool) -> _Column:
    if pa.types.is_boolean(kind):
        return _Column(bool, partial(_plain, kind))
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        whole = Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
        return _Column(whole, partial(_plain, kind))
    if pa.types.is_string(kind):
        return _Column(Any, partial(_texts, partial(_by_value, kind, _text)))
    by_value = partial(_by_value, kind, json_value(kind, path, exact=exact))
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _Column(Any, partial(_times, kind, by_value))
    return _Column(Any, by_value)


def _struct(kind: pa.StructType, path: str, *, exact: bool) -> _Column | None:
    """Return the column of a struct; None if msgspec takes one of its names for none."""
    fields = list(kind)
    columns = [_column(member.type, f"{path}{member.name}.", exact=exact) for member in fields]
    names = {f"f{number}": member.name for number, member in enumerate(fields)}
    specs = [
        (alias, _or_null(column.type), msgspec.UNSET)
        for alias, column in zip(names, columns, strict=True)
    ]
    try:
        decoded_as = msgspec.defstruct(
            "Object", specs, rename=names, forbid_unknown_fields=True, gc=False
        )
    except ValueError:
        return None
    gets = [attrgetter(alias) for alias in names]

    def build(values: list[Any], owners: Sequence[int], block: _Block) -> pa.Array:
        places = [place for place, value in enumerate(values) if value is not None]
        if not places:
            return pa.nulls(len(values), kind)
        is_dense = len(places) == len(values)
        objects = values if is_dense else [values[place] for place in places]
        arrays = []
        for get, column in zip(gets, columns, strict=True):
            present = [
                (place, value)
                for place, value in zip(places, map(get, objects), strict=True)
                if value is not msgspec.UNSET
            ]
            block.names += len(present)
            if len(present) == len(values):
                whole = [value for _, value in present]
            else:
                whole = [None] * len(values)
                for place, value in present:
                    whole[place] = value
            arrays.append(column.build(whole, owners, block))
        mask = None if is_dense else _nulls(values)
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

    return _Column(decoded_as, build)


def _or_null(kind: Any) -> Any:
    return kind if kind is Any else kind | None | msgspec.UnsetType


def _list(kind: pa.ListType, path: str, *, exact: bool) -> _Column:
    element = _column(kind.value_type, path, exact=exact)

    def build(values: list[Any], owners: Sequence[int], block: _Block) -> pa.Array:
        lengths = [len(value) if value else 0 for value in values]
        elements = [*chain.from_iterable(filter(None, values))]
        theirs = [owner for owner, n in zip(owners, lengths, strict=True) for _ in range(n)]
        offsets = pa.array(accumulate(lengths, initial=0), pa.int32())
        array = element.build(elements, theirs, block)
        return pa.ListArray.from_arrays(offsets, array, type=kind, mask=_nulls(values))

    or_null = element.type if element.type is Any else element.type | None
    return _Column(GenericAlias(list, (or_null,)), build)


def _nulls(values: list[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _plain(kind: pa.DataType, values: list[Any], _: Sequence[int], __: _Block) -> pa.Array:
    return pa.array(values, kind)


def _texts(by_value: _Build, values: list[Any], owners: Sequence[int], block: _Block) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except pa.ArrowException:
        return by_value(values, owners, block)


def _text(value: Any) -> str:
    return value if type(value) is str else plain_text(value)


def _times(
    kind: pa.DataType, by_value: _Build, values: list[Any], owners: Sequence[int], block: _Block
) -> pa.Array:
    try:
        texts = pa.array(values, pa.string())
        if pc.all(pc.match_substring_regex(texts, _PLAIN_TIMESTAMP)).as_py() is not False:
            return texts.cast(kind)
    except pa.ArrowException:
        pass
    return by_value(values, owners, block)


def _by_value(
    kind: pa.DataType, convert: Convert, values: list[Any], owners: Sequence[int], block: _Block
) -> pa.Array:
    converted: list[Any] = [None] * len(values)
    for place, value in enumerate(values):
        if value is None:
            continue
        if isinstance(value, dict | list):
            block.names += _names_of(value)
        try:
            converted[place] = convert(value)
        except Misfit:
            block.odd.add(owners[place])
    return pa.array(converted, kind)


def _names_of(value: dict[str, Any] | list[Any]) -> int:
    return sum(
        len(container)
        for level in levels_of(value)
        for container in level
        if isinstance(container, dict)
    )


def _with_repeated_names(records: Sequence[bytes], names: int) -> set[int]:
    """Return the indexes of records with an object that has a name twice.

    Args:
        records: decoded, so that of each name one value is left.
        names: that are left.
    """
    data = b"\n".join(records)
    if _ends_of_names(data) == names and not _has_spaced(data):
        return set()
    counts = {n: distinct_names(one) for n, one in enumerate(records) if _is_unclear(one)}
    repeated = {n for n, count in counts.items() if count is None}
    if repeated:
        return repeated
    clear = b"\n".join(one for n, one in enumerate(records) if n not in counts)
    if _ends_of_names(clear) == names - sum(count or 0 for count in counts.values()):
        return set()
    return {n for n, one in enumerate(records) if distinct_names(one) is None}


def _has_spaced(data: bytes) -> bool:
    return any(end in data for end in _SPACED_ENDS)


def _is_unclear(record: bytes) -> bool:
    return _has_spaced(record) or _UNCLEAR.search(record) is not None


def _ends_of_names(data: bytes) -> int:
    """Return the number of quotes that end a name, if no name is unclear; never fewer."""
    escaped = 0
    if b"\\" in data:
        # An even number of backslashes escapes no quote.
        escaped = data.count(rb"\":") - data.count(rb'\\":')
    return data.count(b'":') - escaped


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
        record.decode()
        value: dict[str, Any] = JSON_VALUES.decode(record)
    except UnicodeDecodeError as error:
        raise Misfit(f"not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise Misfit(TOO_DEEP) from None
    except msgspec.MsgspecError as error:
        raise Misfit(f"{_NOT_ONE_OBJECT}: {error}") from None
    return value


def _keeps_names(kind: pa.DataType) -> bool:
    """Return whether names in the objects of a column are part of its values."""
    if pa.types.is_list(kind):
        return _keeps_names(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_keeps_names(member.type) for member in kind)
    return bool(pa.types.is_string(kind) or pa.types.is_map(kind))
