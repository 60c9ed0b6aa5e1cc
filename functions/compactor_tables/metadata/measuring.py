"""Measures a table by its metadata, whatever it is made of; no data file is opened for it."""

from __future__ import annotations

from compactor.ports import ObjectStore
from compactor.settings.tables import DELTA, TableAddress
from compactor.table_formats.installed import require_installed
from compactor_tables.measures import TableMeasure


def measure_table(address: TableAddress, store: ObjectStore, now: float) -> TableMeasure:
    """Measure a table.

    Args:
        address: of the table.
        store: where its files are.
        now: UNIX seconds.

    Raises:
        InvalidInput: there is no such table, it may not be read, or what reads it is not installed.
        IntegrityError: its metadata contradicts itself.
        TransientStoreError: something did not answer, or the table moved on while it was read.
    """
    # pyarrow, which reads the checkpoints of a Delta log, comes with it.
    require_installed("iceberg", address.text)
    if address.kind == DELTA:
        from compactor_tables.metadata.measured_delta import measure_delta  # noqa: PLC0415 - one of two

        return measure_delta(address, store, now)
    from compactor_tables.metadata.measured_iceberg import measure_iceberg  # noqa: PLC0415 - one of two

    return measure_iceberg(address, store, now)
