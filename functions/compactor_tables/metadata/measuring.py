"""Measures an Iceberg or Delta table by its metadata; no data file is opened."""

from __future__ import annotations

from compactor.ports import ObjectStore
from compactor.settings.tables import DELTA, TableAddress
from compactor.table_formats.installed import require_installed
from compactor_tables.measures import TableMeasure


def measure_table(address: TableAddress, store: ObjectStore, now: float) -> TableMeasure:
    """Measure a table.

    Args:
        address: of the table.
        store: where its files lie.
        now: UNIX seconds.

    Raises:
        InvalidInput: there is no such table, it may not be read, or the libraries that read it are
            not installed.
        IntegrityError: its metadata contradicts itself.
        TransientStoreError: a service did not answer, or the table changed while it was read.
    """
    # This extra includes pyarrow, which reads the checkpoints of a Delta log.
    require_installed("iceberg", address.text)
    if address.kind == DELTA:
        from compactor_tables.metadata.measured_delta import measure_delta  # noqa: PLC0415 - one of two

        return measure_delta(address, store, now)
    from compactor_tables.metadata.measured_iceberg import measure_iceberg  # noqa: PLC0415 - one of two

    return measure_iceberg(address, store, now)
