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

_ID, _READING = "id", "reading"
_COUNT = f"SELECT count(*), count(DISTINCT {_ID}), sum({_READING}) FROM events"  # noqa: S608 - names alone


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
    """

    def __init__(self, server: EmbeddedS3, database: str, table: str) -> None:
        access = {
            "endpoint": server.endpoint_url,
            "region": REGION,
            "access-key-id": server.environment["AWS_ACCESS_KEY_ID"],
            "secret-access-key": server.environment["AWS_SECRET_ACCESS_KEY"],
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

    def ids(self) -> set[int]:
        """Return the ids of all rows."""
        rows = self._rows(_ID)
        return set() if rows is None else set(rows.column(_ID).to_pylist())

    def counted(self) -> Counted:
        """Count rows, files and snapshots."""
        events = self._rows(_ID, _READING)
        if events is None:
            return Counted()
        table = self._catalog.load_table(self._name)
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

    def _rows(self, *columns: str) -> Any:
        try:
            table = self._catalog.load_table(self._name)
        except NoSuchTableError:
            return None
        return table.scan(selected_fields=columns).to_arrow()
