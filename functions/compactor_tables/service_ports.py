"""Ports to the AWS services that maintenance uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from compactor.settings.tables import TableAddress
from compactor_tables.touched_partitions import Touched


class Catalog(Protocol):
    """The part of an Iceberg catalog that is needed outside of an engine."""

    def metadata_uri(self, table: TableAddress) -> str:
        """Return the URI of a table's current metadata file.

        Raises:
            InvalidInput: there is no such table, it is not an Iceberg table, or it may not be read.
            TransientStoreError: the catalog did not answer.
        """
        ...


class Writes(Protocol):
    """The partitions that snapshots of an Iceberg table wrote, by its manifests."""

    def touched(self, metadata_uri: str, snapshot_id: str) -> Sequence[Touched]:
        """Return the partitions that a snapshot added files to or removed files from.

        Args:
            metadata_uri: of a metadata file that names the snapshot.
            snapshot_id: of the snapshot.

        Raises:
            IntegrityError: the table's metadata contradicts itself.
            TransientStoreError: the snapshot has expired since, or the store did not answer.
        """
        ...


class Queries(Protocol):
    """Results of queries."""

    def rows(self, query_id: str) -> Sequence[Sequence[str]]:
        """Return the first rows of a result, at most 999, without the header.

        Raises:
            InvalidInput: there is no such result, or it may not be read.
            TransientStoreError: the service did not answer.
        """
        ...


class Optimizers(Protocol):
    """The optimizers that Glue runs for tables, by table and type.

    Documents have the form of Glue's API. Every method may raise TransientStoreError, and
    InvalidInput if access is denied.
    """

    def look(self, table: TableAddress, kind: str) -> Mapping[str, Any] | None:
        """Return one optimizer (``TableOptimizer``), or None if it does not exist."""
        ...

    def create(self, table: TableAddress, kind: str, configuration: Mapping[str, Any]) -> None:
        """Create an optimizer. Raises AlreadyExists."""
        ...

    def update(self, table: TableAddress, kind: str, configuration: Mapping[str, Any]) -> None:
        """Replace an optimizer's configuration. Raises ObjectMissing."""
        ...

    def runs(self, table: TableAddress, kind: str, most: int) -> Sequence[Mapping[str, Any]]:
        """Return at most ``most`` runs of an optimizer (``TableOptimizerRun``), newest first."""
        ...
