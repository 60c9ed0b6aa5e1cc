"""Ports to the AWS services that maintenance uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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


class Scans(Protocol):
    """How long queries of a table took."""

    def last(self, count: int, since: float) -> list[float]:
        """Return the seconds of the last queries, newest first, without the time in a queue.

        Args:
            count: number of queries at most.
            since: queries that began earlier do not count, UNIX seconds.

        Raises:
            TransientStoreError: the service did not answer.
            InvalidInput: there is no such workgroup, or access to it is denied.
        """
        ...
