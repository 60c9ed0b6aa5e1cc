"""The maintenance that S3 Tables does by itself: what it is set to, and how it went."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from compactor.errors import InvalidInput
from compactor.stores.services import Thing, answers_of, service_client

COMPACTION, SNAPSHOTS = "icebergCompaction", "icebergSnapshotManagement"
UNREFERENCED = "icebergUnreferencedFileRemoval"


class S3Tables:
    """Tables of one table bucket.

    Args:
        bucket_arn: of the table bucket.
        client: of S3 Tables.
    """

    def __init__(self, bucket_arn: str, client: Any = None) -> None:
        self._bucket = bucket_arn
        self._client = client or service_client("s3tables")

    def of_table(self, namespace: str, name: str) -> dict[str, Any]:
        """What is done to a table, by type: ``status``, ``settings``, and how it went last."""
        named = {"tableBucketARN": self._bucket, "namespace": namespace, "name": name}
        with self._answers("get the maintenance of a table", f"{namespace}.{name}"):
            settings = self._client.get_table_maintenance_configuration(**named)
            jobs = self._client.get_table_maintenance_job_status(**named)
        return {
            kind: {**value, "last": jobs.get("status", {}).get(kind, {})}
            for kind, value in settings.get("configuration", {}).items()
        }

    def of_bucket(self) -> dict[str, Any]:
        """What is done to files of the bucket that no table names."""
        with self._answers("get the maintenance of a table bucket", self._bucket):
            answer = self._client.get_table_bucket_maintenance_configuration(
                tableBucketARN=self._bucket
            )
        found: dict[str, Any] = answer.get("configuration", {})
        return found

    def set_table(self, namespace: str, name: str, kind: str, value: Mapping[str, Any]) -> None:
        """Set one type of a table's maintenance.

        Args:
            namespace: of the table.
            name: of the table.
            kind: ``icebergCompaction`` or ``icebergSnapshotManagement``.
            value: ``status`` and ``settings``.

        Raises:
            InvalidInput: there is no such table, or the value is not accepted.
        """
        self._require(kind, (COMPACTION, SNAPSHOTS))
        with self._answers("set the maintenance of a table", f"{namespace}.{name}"):
            self._client.put_table_maintenance_configuration(
                tableBucketARN=self._bucket,
                namespace=namespace,
                name=name,
                type=kind,
                value=value,
            )

    def set_bucket(self, value: Mapping[str, Any]) -> None:
        """Set what becomes of files that no table names."""
        with self._answers("set the maintenance of a table bucket", self._bucket):
            self._client.put_table_bucket_maintenance_configuration(
                tableBucketARN=self._bucket, type=UNREFERENCED, value=value
            )

    @staticmethod
    def _require(kind: str, known: tuple[str, ...]) -> None:
        if kind not in known:
            raise InvalidInput("type", kind, " or ".join(known))

    def _answers(self, what: str, name: str) -> AbstractContextManager[None]:
        return answers_of(f"{what}: {name}", Thing("table", name, "one of this table bucket"))
