"""Stores and verifies the rows of one group, before its commit."""

from __future__ import annotations

from collections.abc import Sequence

from compactor.destination import Destination
from compactor.formats import Decide
from compactor.log.rejects import Waiting
from compactor.model import ObjectGroup
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.pending import PendingOutput
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


def store_rows(
    group: ObjectGroup,
    settings: Settings,
    store: ObjectStore,
    destination: Destination,
    time: ReadingTime | None = None,
    *,
    decide: Decide,
    replays: Sequence[Waiting] = (),
) -> PendingOutput:
    """Do steps 1 to 3 of the write order for one group whose output holds rows."""
    raise NotImplementedError
