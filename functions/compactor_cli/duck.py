"""DuckDB over local files: one view of all records, with columns from their paths."""

# ruff: noqa: S608 - names are quoted, values are parameters or paths that this module made
from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor.errors import InvalidInput
from compactor_cli.queried import COMMENTED, FLOW, JSON, LINES, Staged

#: The view that a query reads from.
VIEW = "records"
_PLACES = "__objects"
_PARTITION, _SOURCE_KEY = "partition", "source_key"
_DELIMITERS = {"tsv": ", delim='\\t'", FLOW: ", delim=' ', header=true, nullstr='-'"}
# DuckDB reserves twice the maximum size of a JSON value, for each file.
_LONGEST_JSON, _SHORTEST_JSON = 64 << 20, 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a statement.

    Attributes:
        columns: their names.
        rows: Python values.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the rows as JSON objects."""
        return [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]


def require_sql(statement: str) -> None:
    """Check that DuckDB can parse a statement.

    Raises:
        InvalidInput: it cannot, or there is no statement.
    """
    import duckdb  # noqa: PLC0415 - an extra

    try:
        found = duckdb.extract_statements(statement)
    except duckdb.Error as error:
        raise _not_taken(statement, " ".join(str(error).split())) from None
    if not found:
        raise _not_taken(statement, "it contains no statement")


def _not_taken(statement: str, said: str) -> InvalidInput:
    return InvalidInput("SQL", statement, f"a DuckDB statement over {VIEW} ({said})")


def ask(statement: str, staged: Sequence[Staged]) -> Found:
    """Run a statement over these objects, as ``records``.

    Args:
        statement: DuckDB SQL.
        staged: at least one object.

    Raises:
        InvalidInput: DuckDB rejects the statement, or cannot read the records.
    """
    import duckdb  # noqa: PLC0415 - an extra

    with duckdb.connect() as connection:
        try:
            _make_views(connection, staged)
            answer = connection.execute(statement)
            columns = [str(one[0]) for one in answer.description or ()]
            return Found(columns, answer.fetchall())
        except duckdb.Error as error:
            said = " ".join(str(error).split())
            for one in staged:
                if one.file.name in said:
                    said = said.replace(str(one.file), one.source_key or f"an output of {one.path}")
            raise _not_taken(statement, said) from None


def _make_views(connection: Any, staged: Sequence[Staged]) -> None:
    hive = sorted({name for one in staged for name in one.columns})
    with_keys = any(one.source_key is not None for one in staged)
    names = [_PARTITION, *([_SOURCE_KEY] if with_keys else []), *hive]
    columns = ", ".join(f"{_quoted(name)} VARCHAR" for name in ("filename", *names))
    connection.execute(f"CREATE TABLE {_PLACES} ({columns})")
    marks = ", ".join("?" * (1 + len(names)))
    rows = [
        [
            str(one.file),
            one.path,
            *([one.source_key] if with_keys else []),
            *(one.columns.get(name) for name in hive),
        ]
        for one in staged
    ]
    connection.executemany(f"INSERT INTO {_PLACES} VALUES ({marks})", rows)
    views = []
    for kind in sorted({one.kind for one in staged}):
        files = [str(one.file) for one in staged if one.kind == kind]
        views.append(_view(connection, kind, files, names))
    united = " UNION ALL BY NAME ".join(f"SELECT * FROM {view}" for view in views)
    connection.execute(f"CREATE VIEW {VIEW} AS {united}")


def _view(connection: Any, kind: str, files: Sequence[str], names: Sequence[str]) -> str:
    reader = _reader(kind, files)
    described = connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    own = {str(row[0]).lower() for row in described} - {"filename"}
    # Columns of the records take precedence over columns from their paths.
    extra = "".join(f", p.{_quoted(name)}" for name in names if name.lower() not in own)
    view = f"{VIEW}_{kind}"
    connection.execute(
        f"CREATE VIEW {view} AS SELECT r.* EXCLUDE (filename){extra} FROM {reader} r"
        f" JOIN {_PLACES} p ON p.filename = r.filename"
    )
    return view


def _reader(kind: str, files: Sequence[str]) -> str:
    listed = "[" + ", ".join(_text(file) for file in files) + "]"
    usual = "filename=true, hive_partitioning=false"
    # Infer types from all records: a later one of another type would fail the query.
    whole = f"{usual}, union_by_name=true, sample_size=-1"
    if kind == "parquet":
        return f"read_parquet({listed}, union_by_name=true, {usual})"
    if kind == JSON:
        return f"read_json({listed}, {whole}, maximum_object_size={_longest_json(files)})"
    if kind in (LINES, COMMENTED):
        one = "columns={'line': 'VARCHAR'}, auto_detect=false, header=false, delim='\\x01'"
        lines = f"read_csv({listed}, {usual}, {one}, quote='', escape='', null_padding=true)"
        # DuckDB's option for comments also cuts off what follows a # within a line.
        return lines if kind == LINES else f"(FROM {lines} WHERE line NOT LIKE '#%')"
    return f"read_csv({listed}, {whole}{_DELIMITERS.get(kind, '')})"


def _longest_json(files: Sequence[str]) -> int:
    """Bytes that one JSON value of these files may take: no more than its file, if uncompressed."""
    if any(file.endswith((".gz", ".zst")) for file in files):
        return _LONGEST_JSON
    longest = max(Path(file).stat().st_size for file in files)
    return min(max(longest, _SHORTEST_JSON), _LONGEST_JSON)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain(value: Any) -> Any:
    """Return a value for JSON; types that JSON lacks become text."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    texts = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID, bytes)
    return str(value) if isinstance(value, texts) else value
