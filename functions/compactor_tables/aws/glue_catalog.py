"""Lists databases and Iceberg tables of the Glue Data Catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from compactor.aws.services import Thing, answers_of, service_client

_ICEBERG = "ICEBERG"


class GlueCatalog:
    """Implements :class:`compactor_tables.table_discovery.IcebergTables`.

    Args:
        client: of Glue; by default one is made at the first request.
    """

    def __init__(self, client: Any = None) -> None:
        self._given = client

    @property
    def _client(self) -> Any:
        if self._given is None:
            self._given = service_client("glue")
        return self._given

    def databases(self) -> Iterator[str]:
        for page in self._pages("get_databases", "databases"):
            for one in page["DatabaseList"]:
                yield str(one["Name"])

    def tables(self, database: str) -> Iterator[str]:
        for page in self._pages("get_tables", database, DatabaseName=database):
            for one in page["TableList"]:
                # The parameter that every engine sets on an Iceberg table in Glue.
                kind = str((one.get("Parameters") or {}).get("table_type", ""))
                if kind.upper() == _ICEBERG:
                    yield str(one["Name"])

    def _pages(self, call: str, what: str, **given: str) -> Iterator[dict[str, Any]]:
        following: dict[str, str] = {}
        while True:
            with self._answers(f"{call} of {what}", what):
                page = getattr(self._client, call)(**given, **following)
            yield page
            if not page.get("NextToken"):
                return
            following = {"NextToken": page["NextToken"]}

    def _answers(self, what: str, name: str) -> AbstractContextManager[None]:
        return answers_of(what, Thing("glue_tables", name, "a database that is in Glue's catalog"))
