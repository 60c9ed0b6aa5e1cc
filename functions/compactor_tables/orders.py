"""What a run wants done with one table; its executor needs nothing else."""

from __future__ import annotations

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document, read_document
from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress, parse_table
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places

ORDER_VERSION = 1
# The steps, in the order in which they are done. Nothing is let go of before the rows of what
# replaced it were compared.
REWRITE = "rewrite"
DELETES = "deletes"
MANIFESTS = "manifests"
CHECKPOINT = "checkpoint"
EXPIRE = "expire"
ORPHANS = "orphans"
STEPS = (REWRITE, DELETES, MANIFESTS, CHECKPOINT, EXPIRE, ORPHANS)
#: A step of its own, with no other: the table becomes what it was before a run's rewrites.
UNDO = "undo"
# A reader of an old version, or a writer whose files no version names yet, loses data below.
LEAST_KEEP_SECONDS = 7 * 86_400.0
LEAST_ORPHAN_SECONDS = 3 * 86_400.0
# How a partition is rewritten.
BINPACK, SORT, ZORDER, NUMBER = "binpack", "sort", "zorder", "number"


class Condition(msgspec.Struct, frozen=True):
    """One column of what makes a partition.

    Attributes:
        column: of the table; the source column where the partition is of a transform.
        transform: ``identity``, ``year``, ``month``, ``day``, ``hour``, ``bucket[16]``,
            ``truncate[4]`` or ``void``, as Iceberg's specification spells them.
        value: as the metadata has it, in text (Iceberg's human form of a transform, Delta's text
            of a value); None where it is null.
    """

    column: str
    transform: str
    value: str | None


class PartitionOrder(msgspec.Struct, frozen=True):
    """A partition to rewrite.

    Attributes:
        name: as its engine writes it, such as ``day=2026-11-01``; empty for a whole table.
        spec: the id of Iceberg's partition spec; 0 for Delta. Of an older one, all files that
            ``where`` selects are rewritten, of any spec.
        where: what its rows have in common; empty for a whole table.
        files, bytes, into: what the plan foretells: data files read, of so many bytes, and
            files written.
    """

    name: str
    spec: int = 0
    where: tuple[Condition, ...] = ()
    files: int = 0
    bytes: int = 0
    into: int = 0


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is done with a table in one run.

    Attributes:
        run_id: of the run.
        table: address, as a run's input names a table.
        engine: ``spark``, ``athena`` or ``glue``; ``none`` where nothing is to be done.
        reason: of that choice, for a person.
        rule: which rule matched, for a person.
        measured: the table's version when it was measured: a snapshot's id, or a number.
        steps: of :data:`STEPS`, in that order.
        how: ``binpack``, ``sort``, ``zorder``, or ``number``: each partition as
            ``num_files`` files.
        columns: to sort by (``"day desc"``) or whose values shall lie together.
        target_bytes: of a data file.
        num_files: of a partition, where ``how`` is ``number``.
        min_files: a partition with fewer files to rewrite is left.
        partitions: to rewrite, in order of their names.
        verify_rows: whether rows are counted and hashed before and after.
        keep_seconds: how long snapshots or files of old versions stay.
        keep_versions: snapshots that stay whatever their age.
        orphan_seconds: how old a file that nothing names must be to go.
        below_floor: said twice that ``keep_seconds`` may be below :data:`LEAST_KEEP_SECONDS`, and
            ``orphan_seconds`` below :data:`LEAST_ORPHAN_SECONDS`.
        undo_run: with the step ``undo``, the run whose rewrites are undone; empty where
            ``measured`` is the version to return to.
        undo_seconds: how long the rewrite can be undone.
        closed_before: UNIX seconds; a partition that a commit touched since then is left. Zero
            where nothing says so.
        until: UNIX seconds; nothing new is begun then. None where nothing says so.
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
    undo_run: str = ""
    undo_seconds: float = 7 * 86_400.0
    closed_before: float = 0.0
    until: float | None = None

    @property
    def address(self) -> TableAddress:
        """The table."""
        return parse_table(self.table)


_decode = decoder(Order)


def write_order(order: Order, state: S3Uri, store: ObjectStore) -> str:
    """Leave an order where the engine finds it; returns its URI."""
    bucket, key = places.order_key(state, order.run_id, order.address)
    leave_document(store, (bucket, key), order, ORDER_VERSION)
    return f"s3://{bucket}/{key}"


def find_order(bucket: str, key: str, store: ObjectStore) -> Order | None:
    """An order again; None where there is none.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    return find_document(store, (bucket, key), _decode, ORDER_VERSION)


def read_order(bucket: str, key: str, store: ObjectStore) -> Order:
    """An order again.

    Raises:
        ObjectMissing: there is none.
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    return read_document(store, (bucket, key), _decode, ORDER_VERSION)
