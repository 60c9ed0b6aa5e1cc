"""What maintenance asks of AWS's services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from compactor.settings.tables import TableAddress
from compactor_tables.touched_partitions import Touched


class Catalog(Protocol):
    """The catalog of Iceberg tables, as far as is needed outside of an engine."""

    def metadata_uri(self, table: TableAddress) -> str:
        """Where a table's metadata file lies.

        Raises:
            InvalidInput: there is no such table, it is not an Iceberg table, or it may not be read.
            TransientStoreError: the catalog did not answer.
        """
        ...


class Writes(Protocol):
    """What the snapshots of an Iceberg table wrote, by its manifests."""

    def touched(self, metadata_uri: str, snapshot_id: str) -> Sequence[Touched]:
        """The partitions that a snapshot added files to, or took files from.

        Args:
            metadata_uri: a metadata file of the table that has the snapshot.
            snapshot_id: of the snapshot.

        Raises:
            IntegrityError: the table's metadata contradicts itself.
            TransientStoreError: the snapshot has expired since, or the store did not answer.
        """
        ...


class Queries(Protocol):
    """What queries answered."""

    def rows(self, query_id: str) -> Sequence[Sequence[str]]:
        """The first rows of a result, without the names of columns; at most 999.

        Raises:
            InvalidInput: there is no such result, or it may not be read.
            TransientStoreError: the service did not answer.
        """
        ...


class Optimizers(Protocol):
    """The optimizers that Glue runs for tables, by table and type.

    Documents are those of Glue's API. Every method may raise TransientStoreError, and InvalidInput
    for what may not be asked.
    """

    def look(self, table: TableAddress, kind: str) -> Mapping[str, Any] | None:
        """One optimizer (``TableOptimizer``); None where there is none."""
        ...

    def create(self, table: TableAddress, kind: str, configuration: Mapping[str, Any]) -> None:
        """Make one. Raises AlreadyExists."""
        ...

    def update(self, table: TableAddress, kind: str, configuration: Mapping[str, Any]) -> None:
        """Give one another configuration. Raises ObjectMissing."""
        ...

    def runs(self, table: TableAddress, kind: str, most: int) -> Sequence[Mapping[str, Any]]:
        """The newest runs of an optimizer (``TableOptimizerRun``), newest first."""
        ...
