"""Iceberg tables in Glue's catalog: the location of their metadata, and their optimizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from botocore.exceptions import ClientError

from compactor.aws.services import Thing, answers_of, service_client
from compactor.errors import AlreadyExists, InvalidInput, ObjectMissing, TransientStoreError
from compactor.s3.translate import refusal_of
from compactor.settings.tables import TableAddress

_MISSING, _TAKEN, _RACE = (
    "EntityNotFoundException",
    "AlreadyExistsException",
    "ConcurrentModificationException",
)
_PAGE = 100


class GlueTables:
    """Implements ``Catalog`` and ``Optimizers`` of :mod:`compactor_tables.service_ports`.

    Args:
        client: of Glue.
        account: id of the catalog, which requests for optimizers name; by default the caller's
            account, looked up once if needed.
        identity: STS client for that look-up.
    """

    def __init__(self, client: Any = None, account: str = "", identity: Any = None) -> None:
        self._client = client or service_client("glue")
        self._account_id = account
        self._identity = identity

    def metadata_uri(self, table: TableAddress) -> str:
        """See the port."""
        database, name = table.name
        with self._answers("get table", table):
            try:
                answer = self._client.get_table(DatabaseName=database, Name=name)
            except ClientError as error:
                if refusal_of(error).code != _MISSING:
                    raise
                advice = "check its name, and that region and account are those of the table"
                message = f"there is no table {table.text} in Glue's catalog: {advice}"
                raise InvalidInput("table", table.text, advice, message=message) from None
        parameters = answer["Table"].get("Parameters", {})
        if "metadata_location" not in parameters:
            advice = "name an Iceberg table"
            message = f"{table.text} is no Iceberg table, as Glue's catalog has no metadata of it"
            raise InvalidInput("table", table.text, advice, message=f"{message}: {advice}")
        return str(parameters["metadata_location"])

    def look(self, table: TableAddress, kind: str) -> Mapping[str, Any] | None:
        """See the port."""
        with self._answers(f"get the optimizer {kind}", table):
            try:
                answer = self._client.get_table_optimizer(**self._named(table, kind))
            except ClientError as error:
                if refusal_of(error).code != _MISSING:
                    raise
                return None
        found: Mapping[str, Any] = answer["TableOptimizer"]
        return found

    def create(self, table: TableAddress, kind: str, configuration: Mapping[str, Any]) -> None:
        """See the port."""
        with self._answers(f"create the optimizer {kind}", table):
            try:
                self._client.create_table_optimizer(
                    **self._named(table, kind), TableOptimizerConfiguration=configuration
                )
            except ClientError as error:
                if refusal_of(error).code != _TAKEN:
                    raise
                raise AlreadyExists(f"{table.text} has an optimizer {kind}") from None

    def update(self, table: TableAddress, kind: str, configuration: Mapping[str, Any]) -> None:
        """See the port."""
        with self._answers(f"update the optimizer {kind}", table):
            try:
                self._client.update_table_optimizer(
                    **self._named(table, kind), TableOptimizerConfiguration=configuration
                )
            except ClientError as error:
                code = refusal_of(error).code
                if code == _MISSING:
                    raise ObjectMissing(f"{table.text} has no optimizer {kind}") from None
                if code == _RACE:
                    raise TransientStoreError(f"{table.text}: {refusal_of(error)}") from error
                raise

    def runs(self, table: TableAddress, kind: str, most: int) -> Sequence[Mapping[str, Any]]:
        """See the port."""
        found: list[Mapping[str, Any]] = []
        asked = {**self._named(table, kind), "MaxResults": min(most, _PAGE)}
        while len(found) < most:
            with self._answers(f"list the runs of the optimizer {kind}", table):
                try:
                    answer = self._client.list_table_optimizer_runs(**asked)
                except ClientError as error:
                    if refusal_of(error).code != _MISSING:
                        raise
                    return []
            found += answer.get("TableOptimizerRuns", [])
            if not answer.get("NextToken"):
                break
            asked["NextToken"] = answer["NextToken"]
        return found[:most]

    def _named(self, table: TableAddress, kind: str) -> dict[str, Any]:
        database, name = table.name
        return {
            "CatalogId": self._account(),
            "DatabaseName": database,
            "TableName": name,
            "Type": kind,
        }

    def _account(self) -> str:
        if not self._account_id:
            thing = Thing("credentials", "", "AWS credentials")
            with answers_of("get caller identity", thing):
                identity = self._identity or service_client("sts")
                self._account_id = identity.get_caller_identity()["Account"]
        return self._account_id

    def _answers(self, what: str, table: TableAddress) -> AbstractContextManager[None]:
        thing = Thing("table", table.text, "a table in Glue's catalog")
        return answers_of(f"{what} of {table.text}", thing)
