"""DuckDB over outputs: every option pinned, rows compared with the commits, nothing on disk."""

# ruff: noqa: S608 - statements are made of options of this module and of quoted names
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import duckdb
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from compactor.errors import InvalidInput
from compactor.log.entries import Output
from compactor.model import Format
from compactor.ports import ObjectStore
from compactor_cli.commands.failures import Failure

_READ_BYTES, _RECORD_BYTES = 8 << 20, 64 << 20
# The records of a document are in one of these lists.
_LISTS = ("Records", "configurationItems", "logEvents", "Findings", "findings")


def ask(statement: str, outputs: Sequence[Output], store: ObjectStore) -> tuple[list[str], Any]:
    """Return the columns and rows of a statement over these outputs, as ``records``.

    Raises:
        Failure: DuckDB cannot read an output, or reads other rows than its commit says.
        InvalidInput: DuckDB rejects the statement.
    """
    with duckdb.connect() as connection:
        try:
            statements = connection.extract_statements(statement)
        except duckdb.Error as error:
            raise _rejected(statement, _line(error)) from None
        if len(statements) != 1:
            raise _rejected(statement, "exactly one")
        connection.register_filesystem(_Files(outputs, store))
        try:
            _create_view(connection, outputs)
        except duckdb.Error as error:
            raise _failure(connection, outputs, error) from None
        try:
            answer = connection.execute(statement)
            return [str(name[0]) for name in answer.description or ()], answer.fetchall()
        except duckdb.Error as error:
            raise _rejected(statement, _line(error)) from None


def _rejected(statement: str, why: str) -> InvalidInput:
    return InvalidInput("SQL", statement, f"a DuckDB statement over records ({why})")


def _create_view(connection: Any, outputs: Sequence[Output]) -> None:
    """Create the view ``records``, and compare its rows with the commits."""
    groups = [list(group) for _, group in groupby(sorted(outputs, key=_kind), _kind)]
    described = [connection.execute(f"DESCRIBE FROM {_reader(one)})").fetchall() for one in groups]
    types = [{name: kind for name, kind, *_ in columns} for columns in described]
    column = "_object"
    while any(column in names for names in types):
        column += "_"
    selects = [_select(group, names, column) for group, names in zip(groups, types, strict=True)]
    connection.execute(f"CREATE OR REPLACE VIEW records AS {' UNION ALL BY NAME '.join(selects)}")
    # The hash has every value read.
    counted = f"SELECT {column}, count(hash(records)) FROM records GROUP BY 1"
    rows = dict(connection.execute(counted).fetchall())
    for output in outputs:
        read = rows.get(_uri(output), 0)
        if output.records not in (None, read):
            counts = f"DuckDB reads {read:,} rows of its {output.records:,} records"
            raise Failure(f"{_uri(output)} cannot be queried: {counts}")


def _kind(output: Output) -> tuple[str, ...]:
    return str(output.format), output.compression.value, str(output.table)


def _select(outputs: Sequence[Output], types: Mapping[str, str], column: str) -> str:
    """Return the statement of the records, with the URI of their output as a column."""
    reader = f"{_reader(outputs)}, filename={_text(column)}, hive_partitioning=false"
    if reader.startswith("read_json"):
        pairs = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in types.items())
        reader += f", columns={{{pairs}}}"
    if outputs[0].format in (Format.CLOUDTRAIL, Format.JSON_LIST):
        records = next((name for name in _LISTS if name in types), _LISTS[0])
        return f"SELECT unnest({records}, max_depth := 2), {column} FROM {reader})"
    comments = " WHERE line NOT LIKE '#%'" if outputs[0].format is Format.CLOUDFRONT else ""
    return f"SELECT * FROM {reader}){comments}"


def _reader(outputs: Sequence[Output]) -> str:
    """Return the table function of outputs of one kind, up to where more options may follow."""
    output = outputs[0]
    read = f"([{', '.join(_text(_uri(output)) for output in outputs)}], union_by_name=true"
    if output.format is Format.PARQUET:
        return f"read_parquet{read}"
    read += f", compression={_text(output.compression)}"
    text = f"read_csv{read}, comment='', skip=0, strict_mode=false, max_line_size={_RECORD_BYTES}"
    match output.format:
        case Format.CSV | Format.TSV:
            delimiter = "," if output.format is Format.CSV else "\t"
            if output.table is not None:
                delimiter = output.table.delimiter
            header = output.table is None or output.table.header
            quotes = output.table is None or output.table.quotes
            backslash = output.table is not None and output.table.backslash
            quote, escape = '"' * quotes, "\\" if backslash else '"' * quotes
            dialect = f"delim={_text(delimiter)}, quote='{quote}', escape='{escape}', nullstr=''"
            return f"{text}, all_varchar=true, header={header}, {dialect}"
        case Format.VPC_FLOW:
            dialect = "delim=' ', quote='', escape='', nullstr='-'"
            return f"{text}, all_varchar=true, header=true, {dialect}"
        case None | Format.TEXT | Format.CLOUDFRONT:
            # What would divide a line into columns is in no text; its ends are LF, CRLF, or both.
            dialect = "delim='\x1f\x1e\x1d\x1c', quote='', escape='', new_line='\\r\\n'"
            column = "columns={'line': 'VARCHAR'}, nullstr='', force_not_null=['line']"
            return f"{text}, auto_detect=false, header=false, {dialect}, {column}"
    forms = {Format.JSON_LINES: "newline_delimited", Format.JSON_ARRAY: "array"}
    # DuckDB reserves twice this for each file.
    longest = max(1 << 20, *(output.plain_bytes or _RECORD_BYTES for output in outputs))
    limits = f"sample_size=-1, maximum_object_size={min(longest, _RECORD_BYTES)}"
    return f"read_json{read}, format={_text(forms.get(output.format, 'unstructured'))}, {limits}"


def _failure(connection: Any, outputs: Sequence[Output], error: Exception) -> Failure:
    """Return the failure of the output that DuckDB cannot read, or of all of them together."""
    for output in outputs:
        try:
            _create_view(connection, [output])
        except duckdb.Error as own:
            return Failure(f"{_uri(output)} cannot be queried: {_line(own)}")
    return Failure(f"these outputs cannot be queried together: {_line(error)}")


def _uri(output: Output) -> str:
    return f"s3://{output.bucket}/{output.key}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


class _Files(AbstractFileSystem):
    """The outputs as files, by their URIs; no character of a key is a wildcard."""

    protocol, cachable = "s3", False

    def __init__(self, outputs: Sequence[Output], store: ObjectStore) -> None:
        super().__init__()
        self.store, self.outputs = store, {_uri(output): output for output in outputs}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def glob(self, path: str, **_: Any) -> list[str]:
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {"name": path, "size": self.outputs[path].size, "type": "file"}

    def modified(self, _: str) -> datetime:
        return datetime.fromtimestamp(0, UTC)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> _File:
        return _File(self, path, mode, block_size=_READ_BYTES)


class _File(AbstractBufferedFile):
    def _fetch_range(self, start: int, end: int) -> bytes:
        output = self.fs.outputs[self.path]
        return bytes(self.fs.store.get_range(output.bucket, output.key, start, end - start))
