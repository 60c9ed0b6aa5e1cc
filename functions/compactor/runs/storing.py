"""Stores one group before its commit: its bytes, or its rows."""

from __future__ import annotations

from importlib.util import find_spec

from compactor.destination import Destination
from compactor.model import ObjectGroup
from compactor.outputs.group import store_group
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.pending import PendingOutput
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


def store(
    group: ObjectGroup,
    settings: Settings,
    objects: ObjectStore,
    destination: Destination,
    time: ReadingTime | None = None,
) -> PendingOutput:
    """Do steps 1 to 3 of the write order for one group; see :func:`store_group` for the errors.

    Args:
        group: the group.
        settings: of the run.
        objects: the store.
        destination: of the partition's outputs.
        time: for reading; sources that do not fit into it are left to the next plan.
    """
    if not group.form.rows or group.copy:
        return store_group(group, settings, objects, destination, time)
    if not settings.columnar and find_spec("pyarrow") is None:
        return PendingOutput.of_none(group, "Parquet is merged only with the extra rows (pyarrow)")
    from compactor.rows.groups import store_rows  # noqa: PLC0415 - only runs with rows import Arrow

    return store_rows(group, settings, objects, destination, time)
