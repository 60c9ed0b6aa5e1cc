"""Reads the demonstration's table with other software than wrote it: pyiceberg, Arrow, DuckDB."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import duckdb
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.exceptions import NoSuchTableError

from compactor_local.definition import REGION
from compactor_local.embedded import EmbeddedS3

_COUNT = "SELECT count(*), count(DISTINCT one.column0), sum(one.column1) FROM events AS one"


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of the table by DuckDB, and from its metadata."""

    rows: int = 0
    distinct: int = 0
    total: float = 0.0
    data_files: int = 0
    snapshots: int = 0


class TableReader:
    """A reader of a table in the embedded Glue.

    Args:
        server: with catalog services; the database is created here.
        database: of the table.
        table: its name; it need not exist yet.
        columns: one that identifies rows, and one to sum.
    """

    def __init__(
        self, server: EmbeddedS3, database: str, table: str, columns: tuple[str, str]
    ) -> None:
        self._columns = columns
        given = server.environment
        access = {
            "endpoint": server.endpoint_url,
            "region": REGION,
            "access-key-id": given["AWS_ACCESS_KEY_ID"],
            "secret-access-key": given["AWS_SECRET_ACCESS_KEY"],
        }
        glue = server.client("glue")
        with suppress(glue.exceptions.AlreadyExistsException):
            glue.create_database(DatabaseInput={"Name": database})
        self._name = f"{database}.{table}"
        options = {
            f"{service}.{name}": value
            for service in ("s3", "glue")
            for name, value in access.items()
        }
        self._catalog = GlueCatalog(
            "reader", **options, **{"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
        )

    @property
    def catalog(self) -> GlueCatalog:
        """The catalog as pyiceberg opens it."""
        return self._catalog

    def ids(self) -> set[int]:
        """Return the ids of all rows."""
        rows = self._rows(self._columns[:1])
        return set() if rows is None else set(rows.column(self._columns[0]).to_pylist())

    def counted(self) -> Counted:
        """Count rows, files and snapshots."""
        found = self._rows(self._columns)
        if found is None:
            return Counted()
        table = self._catalog.load_table(self._name)
        events = found.select(self._columns).rename_columns(["column0", "column1"])
        with duckdb.connect() as connection:
            connection.register("events", events)
            rows, distinct, total = connection.execute(_COUNT).fetchone() or (0, 0, 0.0)
        return Counted(
            rows,
            distinct,
            total or 0.0,
            data_files=len(list(table.scan().plan_files())),
            snapshots=len(table.snapshots()),
        )

    def _rows(self, columns: tuple[str, ...]) -> Any:
        try:
            table = self._catalog.load_table(self._name)
        except NoSuchTableError:
            return None
        return table.scan(selected_fields=columns).to_arrow()
