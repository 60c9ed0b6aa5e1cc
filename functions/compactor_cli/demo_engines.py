"""The query engine of the demonstration: DuckDB."""

# ruff: noqa: S608 - statements are built from quoted paths that this module made
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compactor_cli.machine.extras import require
from compactor_cli.queried import JSON, LINES, Staged

_QUESTION = (
    "SELECT partition, count(*) AS records, sum(hash(record))::VARCHAR AS checksum"
    " FROM records GROUP BY partition ORDER BY partition"
)
PARQUET = "parquet"
_LONGEST_JSON = 64 << 20
_MOST_WORDS = 200

#: Partition, number of records, checksum.
Row = tuple[str, int, str]


class Unread(Exception):
    """The engine cannot read the files; the message says why."""


class DuckDb:
    """DuckDB in this process: counts records and sums their checksums.

    Raises:
        ExtraMissing: DuckDB is not installed.
    """

    name = "DuckDB"

    def __init__(self) -> None:
        require("query", "a query over sources and outputs")
        import duckdb  # noqa: PLC0415 - an extra

        self._duckdb: Any = duckdb
        self.version, self.question = str(duckdb.__version__), _QUESTION

    def answer(self, staged: Sequence[Staged], headers: Sequence[tuple[str, str]]) -> list[Row]:
        """Return one row per partition.

        Args:
            staged: files.
            headers: partition and line of header lines, which are not counted.

        Raises:
            Unread: DuckDB cannot read them.
        """
        try:
            with self._duckdb.connect() as connection:
                return _answer(connection, staged, headers)
        except self._duckdb.Error as error:
            # DuckDB's message contains the record at fault, which may be long.
            raise Unread(" ".join(str(error).split())[:_MOST_WORDS]) from None


def _answer(
    connection: Any, staged: Sequence[Staged], headers: Sequence[tuple[str, str]]
) -> list[Row]:
    if not staged:
        return []
    connection.execute("CREATE TABLE places (filename VARCHAR, partition VARCHAR)")
    connection.execute("CREATE TABLE headers (partition VARCHAR, line VARCHAR)")
    _fill(connection, "places", [(str(one.file), one.path) for one in staged])
    _fill(connection, "headers", headers)
    views = []
    for kind in sorted({one.kind for one in staged}):
        files = ", ".join(f"'{one.file}'" for one in staged if one.kind == kind)
        views.append(f"SELECT partition, record FROM ({_VIEWS[kind].format(files=files)})")
    connection.execute(f"CREATE VIEW records AS {' UNION ALL '.join(views)}")
    rows = connection.execute(_QUESTION).fetchall()
    return [(str(path), int(records), str(checksum)) for path, records, checksum in rows]


def _fill(connection: Any, table: str, rows: Sequence[tuple[str, str]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], []]
    both = "unnest($1::VARCHAR[]), unnest($2::VARCHAR[])"
    connection.execute(f"INSERT INTO {table} SELECT {both}", columns)


_VIEWS = {
    # An array counts as its elements, a CloudTrail document as its records.
    JSON: (
        "SELECT partition, unnest(CASE"
        " WHEN json_type(json) = 'ARRAY' THEN from_json(json, '[\"JSON\"]')"
        " WHEN json_type(json, '$.Records') = 'ARRAY' AND len(json_keys(json)) = 1"
        " THEN from_json(json -> '$.Records', '[\"JSON\"]') ELSE [json] END)::VARCHAR AS record"
        " FROM read_json_objects([{files}], format = 'unstructured', filename = true,"
        f" maximum_object_size = {_LONGEST_JSON}) JOIN places USING (filename)"
    ),
    LINES: (
        "SELECT partition, record FROM (SELECT partition, rtrim(line, chr(13)) AS record"
        " FROM read_csv([{files}],"
        " columns = {{'line': 'VARCHAR'}}, auto_detect = false, header = false, delim = '\x01',"
        " quote = '', escape = '', null_padding = true, strict_mode = false, filename = true)"
        " JOIN places USING (filename)) AS lines ANTI JOIN headers"
        " ON headers.partition = lines.partition AND headers.line = lines.record"
        " WHERE record <> ''"
    ),
    PARQUET: (
        "SELECT partition, to_json(r)::VARCHAR AS record FROM (FROM read_parquet([{files}],"
        " union_by_name = true, filename = true)) r JOIN places USING (filename)"
    ),
}
