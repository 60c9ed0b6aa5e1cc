"""Other people's readers: Python's csv and json, pandas and DuckDB, given how records are written.

Each returns the records below the header, in order, with nothing for NULL. DuckDB reads many
objects in one statement, which takes a tenth of the time.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import duckdb
import pandas

from tests.foreign.data_sets import BOM, Form, Record, Row, python_rows

Records = list[Record]
_CSV = (
    "select * from read_csv(?, header = ?, delim = ?, columns = ?, quote = ?, escape = ?,"
    " new_line = ?, auto_detect = false, all_varchar = true, parallel = false,"
    " filename = 'source_file')"
)
_JSON = (
    "select value, filename from read_json(?, format = ?, records = false, filename = true,"
    " columns = {'value': 'json'})"
)
_LINES = "select unnest(string_split(content, chr(10))), filename from read_text(?)"

csv.field_size_limit(1 << 30)


def by_python(body: bytes, form: Form) -> tuple[Row | None, Records]:
    """The header, if there is one, and the records.

    Raises:
        ValueError, csv.Error: it cannot be read.
    """
    if form.format == "csv":
        rows = python_rows(body, form)
        return (rows[0], [*rows[1:]]) if form.header and rows else (None, [*rows])
    text = body.removeprefix(BOM).decode(form.encoding)
    if form.format == "text":
        return None, [*text.removesuffix("\n").split("\n")] if text else []
    return None, [*_values(text, form)]


def _values(text: str, form: Form) -> list[str]:
    if form.format == "json":
        # One on each line, which is what is promised of outputs.
        values = [json.loads(line) for line in text.split("\n") if line.strip()]
    else:
        values = json.loads(text) if text else []
        values = values["Records"] if isinstance(values, dict) else values
    return [json.dumps(value, sort_keys=True) for value in values]


def by_pandas(body: bytes, form: Form, width: int) -> Records | str:
    """The rows of CSV as pandas reads them, or what it says against them."""
    if not body.removeprefix(BOM).strip(b"\r\n"):
        return []
    try:
        frame = pandas.read_csv(
            io.BytesIO(body),
            sep=form.delimiter,
            header=0 if form.header else None,
            names=[f"c{number}" for number in range(width)],
            index_col=False,
            dtype=str,
            na_filter=False,
            quoting=csv.QUOTE_MINIMAL if form.quotes else csv.QUOTE_NONE,
            doublequote=not form.backslash,
            escapechar="\\" if form.backslash else None,
            encoding="utf-8-sig" if form.encoding == "utf-8" else form.encoding,
        )
    except ValueError as error:
        return str(error)
    return [tuple(map(str, row)) for row in frame.to_numpy().tolist()]


class DuckDb:
    """One connection of DuckDB, and a directory for what it reads."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="foreign-")

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        return connection

    def read(self, objects: Mapping[str, tuple[bytes, Form, int]]) -> dict[str, Records | str]:
        """The records of each object by its name, or what DuckDB says against it.

        Args:
            objects: bytes, how they are written, and the number of columns.
        """
        # It refuses some objects without a byte, and finds a row in others.
        records: dict[str, Records | str] = {
            name: [] for name, (body, *_) in objects.items() if not body.removeprefix(BOM)
        }
        alike: dict[tuple[Form, int], dict[str, bytes]] = defaultdict(dict)
        for name, (body, form, width) in objects.items():
            if name in records:
                continue
            alike[form, width][name] = body.decode(form.encoding, "replace").encode()
        for (form, width), bodies in alike.items():
            try:
                records.update(self._read(bodies, form, width))
            except duckdb.Error:
                for name, body in bodies.items():
                    records[name] = self._alone(body, form, width)
        return records

    def _alone(self, body: bytes, form: Form, width: int) -> Records | str:
        try:
            return self._read({"it": body}, form, width)["it"]
        except duckdb.Error as error:
            return f"DuckDB: {error}"

    def _read(self, bodies: Mapping[str, bytes], form: Form, width: int) -> dict[str, Records]:
        names: dict[str, str] = {}
        for number, (name, body) in enumerate(bodies.items()):
            path = Path(self._home.name) / f"{number:05}"
            path.write_bytes(body)
            names[str(path)] = name
        records: dict[str, Records] = {name: [] for name in bodies}
        for *fields, file in self._rows(list(names), form, width):
            records[names[file]].append(
                tuple(field or "" for field in fields) if form.format == "csv" else fields[0]
            )
        if form.format == "text":
            for name, body in bodies.items():
                # What is split at its last line end ends with nothing.
                records[name] = records[name][: -1 if body.endswith(b"\n") else None]
        elif form.format != "csv":
            records = {name: _canonical(values) for name, values in records.items()}
        return records

    def _rows(self, paths: list[str], form: Form, width: int) -> list[tuple[str, ...]]:
        if form.format == "text":
            return self._connection.execute(_LINES, [paths]).fetchall()
        if form.format != "csv":
            named = {"json": "newline_delimited", "array": "array", "trail": "unstructured"}
            return self._connection.execute(_JSON, [paths, named[form.format]]).fetchall()
        columns = {f"c{number}": "varchar" for number in range(width)}
        escape = "\\" if form.backslash else '"' if form.quotes else ""
        end = form.end.replace("\r", "\\r").replace("\n", "\\n")
        given = [paths, form.header, form.delimiter, columns, '"' * form.quotes, escape, end]
        return self._connection.execute(_CSV, given).fetchall()


def _canonical(values: Records) -> Records:
    objects = [json.loads(str(value)) for value in values]
    if len(objects) == 1 and isinstance(objects[0], dict) and [*objects[0]] == ["Records"]:
        objects = objects[0]["Records"]
    return [json.dumps(value, sort_keys=True) for value in objects]
