"""DuckDB over the outputs of a destination: reads them through the store, and checks their rows."""

# ruff: noqa: S608 - statements are made of options of this module and of quoted names
from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import duckdb
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from compactor.errors import InvalidInput
from compactor.log.entries import Output
from compactor.model import Format
from compactor.ports import ObjectStore
from compactor.sizes import plural
from compactor_cli.commands.failures import Failure

_READ_BYTES, _RECORD_BYTES = 8 << 20, 64 << 20
_TEXT = (
    f"strict_mode=false, comment='', skip=0, max_line_size={_RECORD_BYTES},"
    " compression={compression}, header={header}, delim={delim}, quote={quote}, escape={quote},"
    " nullstr={null}"
)
_CSV = f"read_csv({{files}}, all_varchar=true, union_by_name=true, {_TEXT}"
_LINES = f"read_csv({{files}}, auto_detect=false, columns={{{{'line': 'VARCHAR'}}}}, {_TEXT}"
_JSON = (
    "read_json({files}, format={form}, sample_size=-1, union_by_name=true,"
    " maximum_object_size={longest}, compression={compression}"
)
_PARQUET = "read_parquet({files}, union_by_name=true"
_JSON_FORMS: dict[Format | None, str] = {
    Format.JSON_LINES: "newline_delimited",
    Format.JSON_ARRAY: "array",
}
_OF_LINES = (None, Format.TEXT, Format.CLOUDFRONT)
# Delimiter, quote, null text. What would divide the columns of a line is in no text.
_TABLES: dict[Format | None, tuple[str, str, str]] = {
    Format.CSV: (",", '"', ""),
    Format.TSV: ("\t", '"', ""),
    Format.VPC_FLOW: (" ", "", "-"),
    **dict.fromkeys(_OF_LINES, ("\x1f\x1e\x1d\x1c", "", "\x1f\x1e")),
}
# The records of a document are in one of these lists.
_LISTS = ("Records", "configurationItems", "logEvents", "Findings", "findings")


def ask(statement: str, outputs: Sequence[Output], store: ObjectStore) -> tuple[list[str], Any]:
    """Return the columns and rows of a statement over these outputs, as ``records``.

    Raises:
        Failure: DuckDB cannot read an output, or reads other rows than its commit says.
        InvalidInput: DuckDB rejects the statement.
    """
    with duckdb.connect() as connection:
        connection.register_filesystem(_Outputs(outputs, store))
        alike = groupby(sorted(outputs, key=_kind), _kind)
        groups = [_Group(connection, list(some)) for _, some in alike]
        column = "_object"
        while any(column in group.types for group in groups):
            column += "_"
        for group in groups:
            group.require_all_rows(column)
        united = " UNION ALL BY NAME ".join(group.select(column) for group in groups)
        connection.execute(f"CREATE VIEW records AS {united}")
        try:
            answer = connection.execute(statement)
            return [str(name[0]) for name in answer.description or ()], answer.fetchall()
        except duckdb.Error as error:
            accepted = f"a DuckDB statement over records ({_line_of(error)})"
            raise InvalidInput("SQL", statement, accepted) from None


class _Group:
    """Outputs that one statement reads."""

    def __init__(self, connection: Any, outputs: list[Output]) -> None:
        self._connection, self._outputs = connection, outputs
        self._format = outputs[0].format
        self.types: dict[str, str] = {}
        described = self._run(lambda some: f"DESCRIBE FROM {self._reader(some)})")
        self.types = {str(row[0]): str(row[1]) for row in described}

    def select(self, column: str, outputs: Sequence[Output] = ()) -> str:
        """Return the statement of the records, with the URI of their output in ``column``."""
        name = _quoted(column)
        reader = self._reader(outputs or self._outputs)
        reader += f", filename={_text(column)}, hive_partitioning=false)"
        if self._format in (Format.CLOUDTRAIL, Format.JSON_LIST):
            records = next(one for one in _LISTS if one in self.types)
            listed = f"SELECT unnest({_quoted(records)}) AS record, {name} FROM {reader}"
            is_struct = self.types[records].startswith("STRUCT")
            return f"SELECT {'unnest(record)' if is_struct else 'record'}, {name} FROM ({listed})"
        comments = " WHERE line NOT LIKE '#%'" if self._format is Format.CLOUDFRONT else ""
        return f"SELECT * FROM {reader}{comments}"

    def require_all_rows(self, column: str) -> None:
        """Compare the rows of each output with its commit.

        Raises:
            Failure: an output has other rows, or cannot be read.
        """
        name, is_text = _quoted(column), self._format in (None, Format.TEXT)
        size = "sum(octet_length(line::BLOB))" if is_text else "0"
        # The hash has every value read.
        measure = f"SELECT {name}, count(hash(row_of_output)), {size}"
        counted = self._run(
            lambda some: f"{measure} FROM ({self.select(column, some)}) AS row_of_output GROUP BY 1"
        )
        by_uri = {uri: (rows, int(size)) for uri, rows, size in counted}
        for output in self._outputs:
            rows, plain_bytes = by_uri.get(_uri(output), (0, 0))
            if output.records in (None, rows):
                continue
            # Blank lines are no rows: where there are some, the bytes of all lines are compared.
            unread = (output.plain_bytes or 0) - plain_bytes - output.records
            if not is_text or not -1 <= unread <= output.records:
                raise Failure(
                    f"{_uri(output)} cannot be queried: DuckDB reads {rows:,} rows of its"
                    f" {output.records:,} records"
                )

    def _run(self, query: Callable[[Sequence[Output]], str]) -> list[Any]:
        """Run a query over the outputs; if it fails, find the output because of which it does."""
        try:
            return list(self._connection.execute(query(self._outputs)).fetchall())
        except duckdb.Error as error:
            for output in self._outputs:
                try:
                    self._connection.execute(query([output])).fetchall()
                except duckdb.Error as own:
                    message = f"{_uri(output)} cannot be queried: {_line_of(own)}"
                    raise Failure(message) from None
            together = f"{plural(len(self._outputs), 'output')} of {self._format}"
            raise Failure(f"{together} cannot be queried together: {_line_of(error)}") from None

    def _reader(self, outputs: Sequence[Output]) -> str:
        """Return the table function of some outputs, up to where more options may follow."""
        first = outputs[0]
        options = {
            "files": f"[{', '.join(_text(_uri(output)) for output in outputs)}]",
            "compression": _text(first.compression.value),
        }
        if self._format is Format.PARQUET:
            return _PARQUET.format(**options)
        if self._format not in _TABLES:
            form = _text(_JSON_FORMS.get(self._format, "unstructured"))
            types = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in self.types.items())
            columns = f", columns={{{types}}}" if types else ""
            sizes = [output.plain_bytes or _RECORD_BYTES for output in outputs]
            # DuckDB reserves twice this for each file.
            longest = min(max(1 << 20, *sizes), _RECORD_BYTES)
            return _JSON.format(form=form, longest=longest, **options) + columns
        delimiter, quote, null = _TABLES[self._format]
        if first.table is not None and first.table.delimiter:
            delimiter = first.table.delimiter
        has_header = self._format is Format.VPC_FLOW or (
            first.table is not None and first.table.header
        )
        return (_LINES if self._format in _OF_LINES else _CSV).format(
            header=str(has_header).lower(),
            delim=_text(delimiter),
            quote=_text(quote),
            null=_text(null),
            **options,
        )


class _Outputs(AbstractFileSystem):
    """The outputs as files for DuckDB, by their URIs."""

    protocol = "s3"
    cachable = False

    def __init__(self, outputs: Sequence[Output], store: ObjectStore) -> None:
        super().__init__()
        self.store = store
        self.outputs = {_uri(output): output for output in outputs}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the path itself: no character of a key is a wildcard."""
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the size that the commit names."""
        return {"name": path, "size": self.outputs[path].size, "type": "file"}

    def modified(self, path: str) -> datetime:
        """Outputs never change."""
        return datetime.fromtimestamp(0, UTC)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> _File:
        return _File(self, path, mode, block_size=_READ_BYTES)


class _File(AbstractBufferedFile):
    def _fetch_range(self, start: int, end: int) -> bytes:
        output = self.fs.outputs[self.path]
        content: bytes = self.fs.store.get_range(output.bucket, output.key, start, end - start)
        return content


def _kind(output: Output) -> tuple[str, ...]:
    table = output.table
    dialect = (table.delimiter, str(table.header)) if table is not None else ()
    return str(output.format), output.compression.value, *dialect


def _uri(output: Output) -> str:
    return f"s3://{output.bucket}/{output.key}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _line_of(error: Exception) -> str:
    return " ".join(str(error).split())
