"""The last runs into a destination, for the trend on the report's page: ``run-history.json``.

It is only shown, so a run that overwrites another one's line does no harm, and a document that
cannot be read is begun again.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.errors import IntegrityError
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_VERSION = 1
_MOST_RUNS = 30


class RunLine(msgspec.Struct, frozen=True):
    """One run.

    Attributes:
        started_at: ISO 8601.
        wall_seconds: from its start to its report.
        objects: number of objects that it compacted.
    """

    run_id: str
    started_at: str
    wall_seconds: float
    status: str
    objects: int


class RunHistory(msgspec.Struct):
    """The last runs, oldest first."""

    runs: list[RunLine] = []


_decode = decoder(RunHistory)


def add_run(run: RunLine, settings: Settings, store: ObjectStore) -> list[RunLine]:
    """Add a run to the history; returns the runs before it, oldest first."""
    place = settings.layout.run_history
    found = None
    with suppress(IntegrityError):
        found = find_document(store, place, _decode, _VERSION)
    before = [one for one in found.runs if one.run_id != run.run_id] if found else []
    before = before[1 - _MOST_RUNS :]
    leave_document(store, place, RunHistory([*before, run]), _VERSION)
    return before
