"""Reads the records of plain files by DuckDB, and stores a digest of each in a table."""

# ruff: noqa: S608 - statements are made of constants, and of quoted names of columns
from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

from compactor.model import Format, TableDialect
from compactor.sizes import MIB
from compactor_cli.plain_files import OUTPUT, PlainFiles

_SPLICED = (Format.CLOUDTRAIL, Format.JSON_LIST)
_JSON = (Format.UNDELIMITED_JSON, Format.JSON_ARRAY, *_SPLICED)
_LIST = re.compile(rb'"(?:Records|configurationItems|logEvents|Findings|findings)"\s*:\s*\[')
_ENVELOPE_BYTES, _RECORD_BYTES = 64 << 10, 64 * MIB
_TEXT = (
    "read_csv(?, auto_detect = false, header = ?, filename = 'path',"
    f" max_line_size = {_RECORD_BYTES},"
)
# No text has the delimiter. Lines end in LF, CRLF, or both.
_LINES = (
    f"{_TEXT} delim = '\x1f\x1e\x1d\x1c', quote = '', escape = '', new_line = '\\r\\n',"
    " columns = {'line': 'VARCHAR'}, nullstr = '', force_not_null = ['line'], strict_mode = false)"
)
_TABLE = (
    f"{_TEXT} delim = ?, quote = ?, escape = ?, columns = ?, null_padding = true, parallel = false)"
)
_VALUES = (
    "read_json(?, format = ?, maximum_object_size = ?, records = false,"
    " columns = {'value': 'JSON'}, filename = 'path')"
)
_ROWS = "read_parquet(?, union_by_name = true, filename = 'path')"
# json() ignores blanks, and makes numbers doubles; the text has every digit.
_VALUE = "json(value), regexp_replace(value::VARCHAR, '\\s+', '', 'g')"
# A copied output has no format.
_RECORDS = {
    None: _LINES,
    Format.TEXT: _LINES,
    Format.VPC_FLOW: _LINES,
    Format.JSON_LINES: f"{_LINES} WHERE trim(line, ' \t\r') <> ''",
    Format.CLOUDFRONT: f"{_LINES} WHERE line NOT LIKE '#%'",
}
_TABLES = """
    SET autoinstall_known_extensions = false;
    CREATE TABLE records (file INTEGER, digest UBIGINT);
    CREATE VIEW differing AS
        SELECT digest, count(*) FILTER (file >= 0) AS sources, count(*) FILTER (file < 0) AS outputs
        FROM records GROUP BY digest HAVING sources <> outputs;
"""
_CLOUDFRONT_FIELDS = f"SELECT DISTINCT line FROM {_LINES} WHERE line LIKE '#Fields%'"


class Unreadable(Exception):
    """DuckDB, or Python's csv module, cannot read the files; the message says why."""


class RecordDigests:
    """The table ``records`` of file and digest, with a row for each record read.

    The view ``differing`` has the digests that sources and output do not have equally often.

    Args:
        files: of one commit.
        connection: to a database without tables.
    """

    def __init__(self, files: PlainFiles, connection: duckdb.DuckDBPyConnection) -> None:
        self._files = files
        self._format = files.output.format
        self._connection = connection
        connection.execute(_TABLES)

    def read(self, numbers: Sequence[int]) -> set[str]:
        """Add the records of files; return their headers, and what JSON has beside its records.

        Raises:
            Unreadable: the files are not of the output's format.
        """
        read = self._read_lines
        if self._format in (Format.CSV, Format.TSV):
            read = self._read_tables
        elif self._format in _JSON:
            read = self.read_json
        elif self._format is Format.PARQUET:
            read = self._read_rows
        try:
            return read(numbers) if numbers else set()
        except csv.Error as error:
            raise Unreadable(str(error)) from error

    def query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement.

        Raises:
            Unreadable: DuckDB cannot read the files.
        """
        try:
            return self._connection.execute(statement, parameters).fetchall()
        except duckdb.Error as error:
            raise Unreadable(_line(error)) from error

    def read_json(self, numbers: Sequence[int]) -> set[str]:
        """Add the values of sequences of JSON, arrays, and documents with one list."""
        sequence = "newline_delimited" if OUTPUT in numbers else "unstructured"
        forms: dict[str, list[int]] = defaultdict(list)
        envelopes = set()
        for number in numbers:
            path = self._files.path(number)
            is_spliced = self._format in (*_SPLICED, Format.PARQUET)
            envelopes.add(envelope := _unwrap(path) if is_spliced else "")
            is_array = self._files.head(number, _ENVELOPE_BYTES).lstrip().startswith(b"[")
            forms["array" if is_array or envelope else sequence].append(number)
        for form, alike in forms.items():
            # DuckDB reserves twice this for each of its threads.
            longest = max(self._files.path(number).stat().st_size for number in alike)
            limit = min(max(longest, MIB), _RECORD_BYTES)
            self._add(_VALUE, _VALUES, alike, form, limit)
        # Records of CloudTrail on lines of their own have no envelope.
        return envelopes - {""} if self._format is Format.JSON_LIST else set()

    def count_rows(self) -> int:
        """Return the number of rows of a Parquet output."""
        ((rows,),) = self.query(f"SELECT count(*) FROM {_ROWS}", self._paths([OUTPUT]))
        return int(rows)

    def _read_lines(self, numbers: Sequence[int]) -> set[str]:
        is_headed = self._format is Format.VPC_FLOW
        self._add("line", _RECORDS[self._format], numbers, is_headed)
        if self._format is Format.CLOUDFRONT:
            fields = self.query(_CLOUDFRONT_FIELDS, self._paths(numbers), False)
            return {line for (line,) in fields}
        return (
            set(map(str, self._first_records(numbers, TableDialect(" ", header=True))))
            if is_headed
            else set()
        )

    def _read_tables(self, numbers: Sequence[int]) -> set[str]:
        usual = TableDialect("," if self._format is Format.CSV else "\t", header=False)
        dialect = self._files.output.table or usual
        first = self._first_records(numbers, dialect)
        columns = {f"c{n}": "VARCHAR" for n in range(max(map(len, first), default=1))}
        quote = '"' if dialect.quotes else ""
        escape = "\\" if dialect.backslash else quote
        options = dialect.header, dialect.delimiter, quote, escape, columns
        self._add(", ".join(columns), _TABLE, numbers, *options)
        return set(map(str, first)) if dialect.header else set()

    def _read_rows(self, numbers: Sequence[int]) -> set[str]:
        """Add rows, all with the columns of the sources in the types of the output."""
        types, columns = self._columns([OUTPUT]), self._columns(self._files.sources)
        if missing := columns.keys() - types.keys():
            raise Unreadable(f"the output has no columns {sorted(missing)}")
        quoted = {name: name.replace('"', '""') for name in columns}
        values = [f'CAST("{quoted[name]}" AS {types[name]})' for name in columns]
        self._add(", ".join(values), _ROWS, numbers)
        return set()

    def _columns(self, numbers: Sequence[int]) -> dict[str, str]:
        described = self.query(
            f"DESCRIBE SELECT * EXCLUDE (path) FROM {_ROWS}", self._paths(numbers)
        )
        return {name: kind for name, kind, *_ in described}

    def _add(self, values: str, records: str, numbers: Sequence[int], *parameters: object) -> None:
        file = "CAST(parse_filename(path) AS INTEGER)"
        statement = f"INSERT INTO records SELECT {file}, hash({values}) FROM {records}"
        self.query(statement, self._paths(numbers), *parameters)

    def _paths(self, numbers: Sequence[int]) -> list[str]:
        return [str(self._files.path(number)) for number in numbers]

    def _first_records(self, numbers: Sequence[int], dialect: TableDialect) -> list[list[str]]:
        options: dict[str, Any] = {"delimiter": dialect.delimiter}
        if not dialect.quotes:
            options["quoting"] = csv.QUOTE_NONE
        if dialect.backslash:
            options["escapechar"] = "\\"
        records = []
        for number in numbers:
            with self._files.path(number).open(encoding="utf-8", newline="") as file:
                record = next(csv.reader(file, **options), None)
            if record:
                records.append(record)
        return records


def _line(error: duckdb.Error) -> str:
    """Return what is wrong and in which file, without advice on options of DuckDB."""
    text, _, advice = str(error).partition("Possible fixes")
    file = re.search(r"file = (.*)", advice)
    return " ".join(text.split()) + (f" in {file[1]}" if file else "")


def _unwrap(path: Path) -> str:
    """Make a document with one list an array: overwrite all else by blanks, and return it.

    Returns:
        The document without its records; empty for any other content, which is not changed.
    """
    with path.open("r+b") as file:
        opening = _LIST.search(head := file.read(_ENVELOPE_BYTES))
        if opening is None or _object(head[: opening.end()] + b"]}") is None:
            return ""
        end = max(file.seek(0, 2) - _ENVELOPE_BYTES, opening.end())
        file.seek(end)
        tail = file.read()
        for bracket in re.finditer(rb"\]", tail):
            document = _object(head[: opening.end()] + tail[bracket.start() :])
            if document is not None:
                file.seek(0)
                file.write(b" " * (opening.end() - 1))
                file.seek(end + bracket.end())
                file.write(b" " * (len(tail) - bracket.end()))
                return json.dumps(document)
    return ""


def _object(text: bytes) -> dict[str, Any] | None:
    with suppress(ValueError):
        value = json.loads(text)
        return value if isinstance(value, dict) else None
    return None
