"""The work order for one table, which holds everything that its executor needs."""

from __future__ import annotations

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document, read_document
from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress, parse_table
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places

ORDER_VERSION = 1
# The steps in order of execution. Nothing expires before the rows of the rewrite were compared.
REWRITE = "rewrite"
DELETES = "deletes"
MANIFESTS = "manifests"
CHECKPOINT = "checkpoint"
EXPIRE = "expire"
ORPHANS = "orphans"
STEPS = (REWRITE, DELETES, MANIFESTS, CHECKPOINT, EXPIRE, ORPHANS)
# Shorter retention can take files from readers of an old version, and from writers whose files no
# version names yet.
LEAST_KEEP_SECONDS = 7 * 86_400.0
LEAST_ORPHAN_SECONDS = 3 * 86_400.0
# Strategies of a rewrite.
BINPACK, SORT, ZORDER, NUMBER = "binpack", "sort", "zorder", "number"


class Condition(msgspec.Struct, frozen=True):
    """One partition field and the value that selects a partition.

    Attributes:
        column: of the table; for a transform, its source column.
        transform: ``identity``, ``year``, ``month``, ``day``, ``hour``, ``bucket[16]``,
            ``truncate[4]`` or ``void``, as Iceberg's specification spells them.
        value: text as in the metadata (Iceberg's human-readable form of a transform, Delta's
            serialized value); None for null.
    """

    column: str
    transform: str
    value: str | None


class PartitionOrder(msgspec.Struct, frozen=True):
    """A partition to rewrite.

    Attributes:
        name: as its engine writes it, such as ``day=2026-11-01``; empty for a whole table.
        spec: id of Iceberg's partition spec; 0 for Delta. If it is an older one, all files that
            ``where`` selects are rewritten, whatever their spec.
        where: partition values that its rows share; empty for a whole table.
        files, bytes: the data files that the plan selected, and their bytes.
    """

    name: str
    spec: int = 0
    where: tuple[Condition, ...] = ()
    files: int = 0
    bytes: int = 0


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The work on one table in one run.

    Attributes:
        run_id: of the run.
        table: address, as a run's input names a table.
        engine: ``worker``, ``spark`` or ``athena``; ``none`` if there is nothing to do.
        reason: human-readable reason for the choice of engine.
        rule: human-readable text of the rule that matched.
        measured: the table's version when it was measured: a snapshot id, or a version number.
        steps: of :data:`STEPS`, in that order.
        how: ``binpack``, ``sort``, ``zorder``, or ``number``: each partition as
            ``num_files`` files.
        columns: to sort by (``"day desc"``), or to cluster by with ``zorder``.
        target_bytes: target size of a data file.
        num_files: files per partition, if ``how`` is ``number``.
        min_files: a partition with fewer files to rewrite is left as it is.
        partitions: to rewrite, ordered by name.
        verify_rows: whether rows are counted and hashed before and after.
        keep_seconds: how long snapshots or files of old versions are kept.
        keep_versions: snapshots that are kept whatever their age.
        orphan_seconds: minimum age at which an unreferenced file is deleted.
        below_floor: explicit consent to ``keep_seconds`` below :data:`LEAST_KEEP_SECONDS`, and to
            ``orphan_seconds`` below :data:`LEAST_ORPHAN_SECONDS`.
        until: UNIX seconds after which nothing new is begun; None for no such limit.
    """

    run_id: str
    table: str
    engine: str
    reason: str = ""
    rule: str = ""
    measured: str = ""
    steps: tuple[str, ...] = ()
    how: str = BINPACK
    columns: tuple[str, ...] = ()
    target_bytes: int = 0
    num_files: int | None = None
    min_files: int = 5
    partitions: tuple[PartitionOrder, ...] = ()
    verify_rows: bool = True
    keep_seconds: float = 7 * 86_400.0
    keep_versions: int = 1
    orphan_seconds: float = 7 * 86_400.0
    below_floor: bool = False
    until: float | None = None

    @property
    def address(self) -> TableAddress:
        """The table's address, parsed."""
        return parse_table(self.table)


_decode = decoder(Order)


def write_order(order: Order, state: S3Uri, store: ObjectStore) -> str:
    """Store an order where its engine finds it; return its URI."""
    bucket, key = places.order_key(state, order.run_id, order.address)
    leave_document(store, (bucket, key), order, ORDER_VERSION)
    return f"s3://{bucket}/{key}"


def find_order(bucket: str, key: str, store: ObjectStore) -> Order | None:
    """Read an order, or return None if there is none.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    return find_document(store, (bucket, key), _decode, ORDER_VERSION)


def read_order(bucket: str, key: str, store: ObjectStore) -> Order:
    """Read an order.

    Raises:
        ObjectMissing: there is no such order.
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    return read_document(store, (bucket, key), _decode, ORDER_VERSION)
