"""Whether Glue itself maintains a table."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from botocore.exceptions import ClientError

from compactor.aws.services import Thing, answers_of, service_client
from compactor.s3.translate import refusal_of
from compactor.settings.tables import TableAddress

_MISSING = "EntityNotFoundException"
_OPTIMIZERS = ("compaction", "retention", "orphan_file_deletion")


class GlueTables:
    """Glue's optimizers of tables.

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

    def optimizers_on(self, table: TableAddress) -> list[str]:
        """Return the types of the table's optimizers that are enabled.

        Raises:
            InvalidInput: they may not be read.
            TransientStoreError: Glue did not answer.
        """
        return [kind for kind in _OPTIMIZERS if self._is_on(table, kind)]

    def _is_on(self, table: TableAddress, kind: str) -> bool:
        database, name = table.name
        with self._answers(f"get the optimizer {kind}", table):
            try:
                answer = self._client.get_table_optimizer(
                    CatalogId=self._account(), DatabaseName=database, TableName=name, Type=kind
                )
            except ClientError as error:
                if refusal_of(error).code != _MISSING:
                    raise
                return False
        return bool(answer["TableOptimizer"].get("configuration", {}).get("enabled", True))

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
