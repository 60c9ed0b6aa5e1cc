"""Records of fields as rows: of CSV and TSV, and of AWS logs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from compactor.formats.columns import fields_of, unquoted
from compactor.rows.json_rows import Converted
from compactor.rows.json_values import Misfit
from compactor.rows.log_records import fields_of_line, is_log
from compactor.rows.records import Kind
from compactor.rows.schema import near, simple
from compactor.rows.values import Convert, csv_value

_SHOWN_CHARACTERS = 40


class CsvRows:
    """Converts records under one header to rows of one schema.

    Args:
        kind: of the records.
        schema: columns of the output.
        exact: whether the columns were inferred (see :mod:`compactor.rows.values`).
    """

    def __init__(self, kind: Kind, schema: pa.Schema, *, exact: bool = False) -> None:
        self._kind = kind
        self._schema = schema
        named = {one.name: one.type for one in schema}
        self._fault, self._unknown = _header_fault(kind.header, named)
        self._converts: list[tuple[str, Convert]] = []
        if not self._fault:
            self._converts = [
                (name, csv_value(named[name], name, exact=exact)) for name in kind.header
            ]
        self._texts = {name for name, one in named.items() if pa.types.is_string(one)}

    def convert(self, records: Sequence[bytes]) -> Converted:
        """Return the rows of these records, and why the others do not fit."""
        found = Converted(self._schema.empty_table())
        columns: dict[str, list[Any]] = {one.name: [] for one in self._schema}
        count = 0
        for index, record in enumerate(records):
            try:
                row = self._row(record)
            except Misfit as misfit:
                found.misfits[index] = misfit.reason
                if misfit.unknown:
                    found.unknown.append(index)
                continue
            count += 1
            for (name, _), value in zip(self._converts, row, strict=True):
                columns[name].append(value)
        arrays = [
            pa.array(columns[one.name], type=one.type)
            if columns[one.name] or not count
            else pa.nulls(count, one.type)
            for one in self._schema
        ]
        found.table = pa.table(arrays, schema=self._schema)
        return found

    def _row(self, record: bytes) -> list[Any]:
        fields = split(record, self._kind)
        if self._fault:
            raise Misfit(self._fault, unknown=self._unknown)
        if len(fields) != len(self._converts):
            raise Misfit(
                f"fields: {len(fields)}, names in its header: {len(self._converts)}"
                if fields
                else f"its fields are not those of {self._kind.kind}"
            )
        row = []
        for (name, convert), text in zip(self._converts, fields, strict=True):
            try:
                empty = text if name in self._texts else None
                row.append(convert(text) if text else empty)
            except Misfit as misfit:
                reason = misfit.reason or self._reason(name, text or "")
                raise Misfit(reason) from None
        return row

    def _reason(self, name: str, text: str) -> str:
        kind = simple(self._schema.field(name).type)
        return f"column {name} is {kind}, and does not take {json.dumps(text)[:_SHOWN_CHARACTERS]}"


def split(record: bytes, kind: Kind) -> list[str | None]:
    """Return the fields of a record; None for one without a value; none of another form.

    Raises:
        Misfit: it is not UTF-8.
    """
    dialect = kind.dialect
    try:
        if is_log(kind.kind):
            return fields_of_line(record.decode(), kind.kind)
        if (not dialect.quotes or b'"' not in record) and not dialect.backslash:
            return [text or None for text in record.decode().split(dialect.delimiter.decode())]
        fields = fields_of(record, dialect)
        return [unquoted(field, dialect) if field else None for field in fields]
    except UnicodeDecodeError as error:
        raise Misfit(f"not UTF-8 at byte {error.start}") from None


def _header_fault(header: Sequence[str], named: dict[str, pa.DataType]) -> tuple[str, bool]:
    """Return why the values of a header's columns cannot be rows, and whether one is unknown."""
    faults = []
    unknown = False
    for name in header:
        kind = named.get(name)
        if kind is None:
            unknown = True
            faults.append(f"column {near(name, named)} of its header is not in the schema")
        elif pa.types.is_nested(kind):
            faults.append(f"column {name} is {simple(kind)}, which no CSV field holds")
    return (min(faults), unknown) if faults else ("", False)
