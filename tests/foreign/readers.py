"""Other people's readers of CSV, given what is true: header, delimiter and line end.

Each gives the rows below the header, as wide as the widest of them, nothing for NULL. DuckDB reads
many objects in one statement, which is a tenth of the time.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pandas

from tests.foreign.tables import Row

if TYPE_CHECKING:
    from collections.abc import Iterable

BOM = b"\xef\xbb\xbf"
Rows = list[Row]
_STATEMENT = (
    "select * from read_csv(?, header = ?, delim = ?, columns = ?, quote = ?, escape = ?,"
    " auto_detect = false, all_varchar = true, null_padding = true, parallel = false,"
    " filename = 'source_file')"
)

csv.field_size_limit(1 << 30)
_JSON_STATEMENT = (
    "select * from read_json(?, format = ?, records = false, columns = {'value': 'json'})"
)


@dataclass(frozen=True)
class Told:
    """What a reader is told of an object.

    Attributes:
        header: the first record names the columns.
        delimiter: one character.
        end: of lines; empty where there are several.
        width: fields of the widest row.
        quotes: fields may be quoted.
    """

    header: bool
    delimiter: str
    end: str
    width: int
    quotes: bool = True


def padded(rows: Iterable[Sequence[str]], width: int) -> Rows:
    """Rows of one width, as readers with a schema see them; what is wider stays."""
    return [(*row, *[""] * (width - len(row))) for row in rows if row]


def by_python(body: bytes, told: Told) -> tuple[Row, Rows]:
    """The header, or nothing, and the rows, as Python's csv module reads them."""
    text = body.removeprefix(BOM).decode()
    records = csv.reader(io.StringIO(text, newline=""), delimiter=told.delimiter, strict=True)
    rows = [tuple(row) for row in records if row]
    return (rows[0], rows[1:]) if told.header and rows else ((), rows)


def by_pandas(body: bytes, told: Told) -> Rows:
    """As pandas reads them."""
    if not body.removeprefix(BOM).strip(b"\r\n"):
        return []
    frame = pandas.read_csv(
        io.BytesIO(body),
        sep=told.delimiter,
        header=0 if told.header else None,
        names=[f"c{n}" for n in range(told.width)],
        index_col=False,
        dtype=str,
        na_filter=False,
        encoding="utf-8-sig",
    )
    return [tuple(str(field) for field in row) for row in frame.to_numpy().tolist()]


class DuckDb:
    """One connection of DuckDB, and a directory for what it reads."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="foreign-")

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect()
        connection.execute("set threads = 1")
        return connection

    def rows(self, objects: Mapping[str, tuple[bytes, Told]]) -> dict[str, Rows | str]:
        """The rows of each object by its name, or what DuckDB says against it."""
        alike: dict[Told, list[str]] = defaultdict(list)
        for name, (_, told) in objects.items():
            alike[told].append(name)
        found: dict[str, Rows | str] = {}
        for told, names in alike.items():
            bodies = {name: objects[name][0] for name in names}
            try:
                found.update(self._read(bodies, told))
            except duckdb.Error:
                found.update({name: self._alone(name, body, told) for name, body in bodies.items()})
        return found

    def one(self, body: bytes, told: Told) -> Rows | str:
        """The rows of one object, or what DuckDB says against it."""
        return self._alone("it", body, told)

    def json(self, body: bytes, form: str) -> list[str] | None:
        """The values of one object as JSON; None where DuckDB refuses them.

        Args:
            form: DuckDB's name of how they stand behind each other.
        """
        path = Path(self._home.name) / "values.json"
        path.write_bytes(body)
        try:
            found = self._connection.execute(_JSON_STATEMENT, [str(path), form]).fetchall()
        except duckdb.Error:
            return None
        return [str(value) for (value,) in found]

    def _alone(self, name: str, body: bytes, told: Told) -> Rows | str:
        try:
            return self._read({name: body}, told)[name]
        except duckdb.Error as error:
            return f"DuckDB: {error}"

    def _read(self, bodies: Mapping[str, bytes], told: Told) -> dict[str, Rows | str]:
        paths = {}
        for number, (name, body) in enumerate(bodies.items()):
            path = Path(self._home.name) / f"{number:05}.csv"
            path.write_bytes(body)
            paths[str(path)] = name
        columns = {f"c{n}": "varchar" for n in range(told.width)}
        given = [
            list(paths),
            told.header,
            told.delimiter,
            columns,
            *['"' if told.quotes else ""] * 2,
        ]
        statement = _STATEMENT
        if told.end:
            statement = statement.removesuffix(")") + ", new_line = ?)"
            given.append(told.end.replace("\r", "\\r").replace("\n", "\\n"))
        found: dict[str, Rows | str] = {name: [] for name in bodies}
        for *fields, path in self._connection.execute(statement, given).fetchall():
            rows = found[paths[path]]
            if isinstance(rows, list):
                rows.append(tuple(field or "" for field in fields))
        return found
