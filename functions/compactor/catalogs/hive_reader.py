"""The readers' table in a Hive metastore.

``alter_partitions`` is one transaction of the metastore's database: a query sees each partition as
it was or as it is. It has no condition, and neither has Glue's UpdatePartition: who asked for it
last wins, and what makes that harmless is the same (readers/refresh.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hive_metastore.ttypes import (
    AddPartitionsRequest,
    AlreadyExistsException,
    EnvironmentContext,
    GetTableRequest,
    InvalidObjectException,
    NoSuchObjectException,
    Partition,
)

from compactor.catalogs.hive_client import REFUSALS, Metastore, told
from compactor.catalogs.hive_documents import (
    added,
    entry_of,
    is_made,
    partition_name,
    switched,
    table_document,
    table_of,
)
from compactor.errors import AlreadyExists, InvalidInput
from compactor.readers.port import CatalogChange, CatalogEntry, Values, in_batches
from compactor.settings.tables import TableAddress

_AT_ONCE = 100
# Else the metastore lists what a partition shows, to count its objects.
_WITHOUT_COUNTING = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})
# What the metastore says of what is not there, and of a table that it does not make.
_NONE = (NoSuchObjectException,)
_NOT_MADE = (AlreadyExistsException, InvalidObjectException, NoSuchObjectException)
_T = TypeVar("_T")


class HiveReader:
    """Implements :class:`compactor.readers.port.ReaderCatalog`.

    Args:
        address: of the table.
        metastore: that has it; by default the one that the address names.
    """

    def __init__(self, address: TableAddress, metastore: Metastore | None = None) -> None:
        self._address = address
        self._database, self._name = address.name
        self._metastore = metastore or Metastore(address)

    def table(self) -> Mapping[str, Any] | None:
        return self._table(self._database, self._name)

    def columns_of(self, database: str, table: str) -> Sequence[Mapping[str, str]]:
        found = self._table(database, table)
        if found is None:
            other = TableAddress(self._address.kind, self._address.uri, (database, table))
            raise InvalidInput("reader_columns", other.text, "a table in the metastore")
        columns = found["StorageDescriptor"]["Columns"]
        return [{"name": one["Name"], "type": one["Type"]} for one in columns]

    def create_table(self, document: Mapping[str, Any]) -> None:
        made = table_of(document, self._database)
        try:
            self._asked("create table", lambda client: client.create_table(made), _NOT_MADE)
        except AlreadyExistsException:
            raise AlreadyExists(f"{self._address.text} is there") from None
        except _NOT_MADE as error:
            accepted = f"a table that the metastore takes, in a database of it: {told(error)}"
            raise InvalidInput("reader_table", self._address.text, accepted) from None

    def entries(self, wanted: Sequence[Values]) -> Mapping[Values, CatalogEntry]:
        """See the port; none of a table that is not there."""
        return {values: entry_of(one) for values, one in self._partitions(wanted).items()}

    def change(self, changes: Sequence[CatalogChange]) -> Mapping[Values, str]:
        refused: dict[Values, str] = {}
        for some in in_batches([one for one in changes if one.new], _AT_ONCE):
            refused |= self._each(some, self._add)
        for some in in_batches([one for one in changes if not one.new], _AT_ONCE):
            refused |= self._each(some, self._switch)
        return refused

    def _each(
        self,
        changes: Sequence[CatalogChange],
        does: Callable[[Sequence[CatalogChange]], dict[Values, str]],
    ) -> dict[Values, str]:
        """In one transaction; where the metastore refuses that, each in one of its own."""
        try:
            return does(changes)
        except REFUSALS as error:
            if len(changes) == 1:
                return {changes[0].values: told(error)}
        refused: dict[Values, str] = {}
        for one in changes:
            refused |= self._each([one], does)
        return refused

    def _add(self, changes: Sequence[CatalogChange]) -> dict[Values, str]:
        request = AddPartitionsRequest(
            dbName=self._database,
            tblName=self._name,
            parts=[added(one, (self._database, self._name)) for one in changes],
            ifNotExists=True,
            needResult=True,
        )
        answer = self._metastore.ask(
            "add partitions", lambda client: client.add_partitions_req(request)
        )
        made = {tuple(one.values) for one in answer.partitions or []}
        others = [one for one in changes if one.values not in made]
        # Ours, where the answer to an earlier try was lost.
        there = self.entries([one.values for one in others]) if others else {}
        return {
            one.values: "AlreadyExistsException: somebody else has added it"
            for one in others
            if not is_made(there.get(one.values), one)
        }

    def _switch(self, changes: Sequence[CatalogChange]) -> dict[Values, str]:
        known = self._partitions([one.values for one in changes])
        partitions = [switched(known[one.values], one) for one in changes if one.values in known]
        if partitions:
            self._metastore.ask(
                "switch partitions",
                lambda client: client.alter_partitions_with_environment_context(
                    self._database, self._name, partitions, _WITHOUT_COUNTING
                ),
            )
        return {
            one.values: "NoSuchObjectException: the metastore does not know it"
            for one in changes
            if one.values not in known
        }

    def _partitions(self, wanted: Sequence[Values]) -> dict[Values, Partition]:
        table = self.table() if wanted else None
        if table is None:
            return {}
        keys = [one["Name"] for one in table["PartitionKeys"]]
        found: dict[Values, Partition] = {}
        for some in in_batches([one for one in wanted if len(one) == len(keys)], _AT_ONCE):
            names = [partition_name(keys, values) for values in some]
            try:
                answer = self._asked("get partitions", _getting(self._address.name, names))
            except NoSuchObjectException:
                # The table is gone by now.
                return {}
            found |= {tuple(one.values): one for one in answer}
        return found

    def _table(self, database: str, name: str) -> Mapping[str, Any] | None:
        request = GetTableRequest(dbName=database, tblName=name)
        what = f"get table {database}.{name}"
        try:
            answer = self._asked(what, lambda client: client.get_table_req(request))
        except NoSuchObjectException:
            return None
        return table_document(answer.table)

    def _asked(self, what: str, call: Callable[[Any], _T], passes: tuple[Any, ...] = _NONE) -> _T:
        """An answer about the table; refusals of the kinds that pass are the caller's."""
        try:
            return self._metastore.ask(what, call)
        except REFUSALS as error:
            if isinstance(error, passes):
                raise
            raise self._metastore.judged(what, error) from error


def _getting(name: tuple[str, ...], names: Sequence[str]) -> Callable[[Any], Any]:
    return lambda client: client.get_partitions_by_names(*name, names)
