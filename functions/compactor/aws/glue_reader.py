"""The readers' table in the Glue Data Catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from compactor.aws.services import Thing, answers_of, service_client
from compactor.errors import AlreadyExists, TransientStoreError
from compactor.readers.reader_catalog import CatalogChange, CatalogEntry, Values, in_batches
from compactor.s3.translate import one_line, refusal_of
from compactor.settings.tables import TableAddress

_MISSING, _TAKEN = "EntityNotFoundException", "AlreadyExistsException"
# Limits of BatchGetPartition, and of BatchCreatePartition and BatchUpdatePartition.
_MOST_ASKED, _MOST_CHANGED = 1000, 100
# Maximum number of requests for the keys that Glue leaves unprocessed.
_ROUNDS = 10
_T = TypeVar("_T")


class GlueReader:
    """Implements :class:`compactor.readers.reader_catalog.ReaderCatalog`.

    Args:
        address: address of the table.
        client: Glue client; by default, one is made on first use.
    """

    def __init__(self, address: TableAddress, client: Any = None) -> None:
        self._text = address.text
        self._database, self._name = address.name
        self._given = client

    def table(self) -> Mapping[str, Any] | None:
        """See the port."""
        with self._answers("get table"):
            return self._table(self._database, self._name)

    def create_table(self, document: Mapping[str, Any]) -> None:
        """See the port."""
        with self._answers("create table"):
            try:
                self._client.create_table(DatabaseName=self._database, TableInput=document)
            except ClientError as error:
                if refusal_of(error).code != _TAKEN:
                    raise
                raise AlreadyExists(f"{self._text} is there") from None

    def entries(self, wanted: Sequence[Values]) -> Mapping[Values, CatalogEntry]:
        """See the port; empty if the table does not exist."""
        found: dict[Values, CatalogEntry] = {}
        for some in in_batches(wanted, _MOST_ASKED):
            asked = [{"Values": list(values)} for values in some]
            for _ in range(_ROUNDS):
                answer = self._got(asked)
                found |= {one.values: one for one in map(_entry, answer["Partitions"])}
                asked = answer.get("UnprocessedKeys") or []
                if not asked:
                    break
            else:
                raise TransientStoreError(f"{self._text}: {len(asked)} partitions stay untold")
        return found

    def change(self, changes: Sequence[CatalogChange]) -> Mapping[Values, str]:
        """See the port."""
        refused: dict[Values, str] = {}
        for some in in_batches([one for one in changes if one.new], _MOST_CHANGED):
            with self._answers("add partitions"):
                answer = self._client.batch_create_partition(
                    **self._where(), PartitionInputList=[_input(one) for one in some]
                )
            for one in answer.get("Errors") or []:
                refused[tuple(one["PartitionValues"])] = _error_text(one)
        for some in in_batches([one for one in changes if not one.new], _MOST_CHANGED):
            with self._answers("switch partitions"):
                answer = self._client.batch_update_partition(
                    **self._where(),
                    Entries=[
                        {"PartitionValueList": list(one.values), "PartitionInput": _input(one)}
                        for one in some
                    ],
                )
            for one in answer.get("Errors") or []:
                refused[tuple(one["PartitionValueList"])] = _error_text(one)
        return refused

    def _got(self, asked: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        with self._answers("get partitions"):
            try:
                answer: Mapping[str, Any] = self._client.batch_get_partition(
                    **self._where(), PartitionsToGet=asked
                )
            except ClientError as error:
                if refusal_of(error).code != _MISSING:
                    raise
                # There is no such table.
                return {"Partitions": []}
        return answer

    @property
    def _client(self) -> Any:
        if self._given is None:
            self._given = service_client("glue")
        return self._given

    def _where(self) -> dict[str, str]:
        return {"DatabaseName": self._database, "TableName": self._name}

    def _table(self, database: str, name: str) -> Mapping[str, Any] | None:
        try:
            answer = self._client.get_table(DatabaseName=database, Name=name)
        except ClientError as error:
            if refusal_of(error).code != _MISSING:
                raise
            return None
        found: Mapping[str, Any] = answer["Table"]
        return found

    def _answers(self, what: str) -> AbstractContextManager[None]:
        thing = Thing("reader_table", self._text, "a table in a database of Glue's catalog")
        return answers_of(f"{what} of {self._text}", thing)


def _entry(document: Mapping[str, Any]) -> CatalogEntry:
    descriptor = document.get("StorageDescriptor") or {}
    return CatalogEntry(
        tuple(document["Values"]),
        descriptor.get("Location", ""),
        descriptor.get("InputFormat", ""),
        document.get("Parameters") or {},
        descriptor,
    )


def _input(change: CatalogChange) -> dict[str, Any]:
    return {
        "Values": list(change.values),
        "StorageDescriptor": dict(change.descriptor),
        "Parameters": dict(change.parameters),
    }


def _error_text(error: Mapping[str, Any]) -> str:
    detail = error.get("ErrorDetail") or {}
    code, message = detail.get("ErrorCode", "unknown"), detail.get("ErrorMessage", "")
    return one_line(f"{code}: {message}")
