"""The state of a table whose rows have a key, for callers without Spark.

An entry is in the table once it is in both of its tables, that of rows and that of keys. Spark
merges the rows first. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from compactor.errors import IntegrityError, InvalidInput
from compactor.sinks.table_catalog import (
    Holdings,
    TableCatalog,
    TableContents,
    TableFile,
    TableState,
)
from compactor.sinks.upserts import KEYS_OF, fault_between


class KeyedCatalog:
    """Implements :class:`compactor.sinks.table_catalog.TableCatalog`, except for writing.

    Args:
        rows: the table of rows, which readers query.
        keys: the table of keys, which has the rank of each key's winner.
    """

    def __init__(self, rows: TableCatalog, keys: TableCatalog) -> None:
        self._rows = rows
        self._keys = keys

    @property
    def address(self) -> str:
        """See the port."""
        return self._rows.address

    def load(self, log_id: str) -> TableState | None:
        """See the port."""
        # Keys first: if a merge happens between both reads, keys appear to lag, which is safe.
        keys = self._keys.load(log_id)
        rows = self._rows.load(log_id)
        if keys is None and rows is not None and rows.last:
            # The table's first merge may have happened in between.
            keys = self._keys.load(log_id)
            rows = self._rows.load(log_id)
        if rows is None:
            return None
        last = None if keys is None else keys.last
        of = "" if keys is None else keys.properties.get(KEYS_OF, "")
        fault = fault_between(rows.last, last, of, rows.uuid) or rows.fault
        return replace(
            rows,
            last=last or 0,
            fault=fault or (keys.fault if keys is not None else ""),
            # Spark writes these tables, and checks them itself.
            refusal="",
            handle=None,
        )

    def contents(self, table: TableState) -> TableContents:
        """See the port. Raises: the table's files are the result of merges."""
        raise IntegrityError(
            f"{self.address} has one row of each key, so no file of it proves an output"
        )

    def create(self, files: Sequence[TableFile]) -> None:
        """Not supported: Spark writes such a table."""
        self._refuse()

    def unfit(
        self, table: TableState | None, files: Sequence[TableFile], *, evolve: bool
    ) -> Mapping[TableFile, str]:
        """Not supported: Spark writes such a table."""
        self._refuse()

    def append(
        self, table: TableState, files: Sequence[TableFile], number: int, *, evolve: bool
    ) -> str:
        """Not supported: Spark writes such a table."""
        self._refuse()

    def holdings(self, table: TableState, outputs: Collection[str]) -> Holdings:
        """Not supported: Spark writes such a table."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        accepted = "a table without upsert_key, or the Spark job of a run, which merges its records"
        raise InvalidInput("table", self.address, accepted)
