"""What a report has gathered when its call runs out of time, so that the next call can resume.

    report-so-far.json      sums of the first partitions of the work lists, and of the clean-ups

Each call overwrites it. It holds the sums over the first entries of fixed lists, so a call that is
repeated, or that is still running when its successor starts, writes correct content as well.
"""

from __future__ import annotations

import msgspec

from compactor.cleaning.clean_up_report import CleanUpReport
from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.ports import Deadline, ObjectStore
from compactor.report.receipt_totals import Gathered
from compactor.settings.settings import Settings

SO_FAR_NAME = "report-so-far.json"
_VERSION = 1
# Time that a call reserves for requests in flight, and for storing what it gathered.
_RESERVE_SECONDS = 60.0


class SoFar(msgspec.Struct):
    """What earlier calls have gathered.

    Attributes:
        gathered: of the partitions.
        clean_up: of the clean-ups; None if the run has none, or they were not reached.
    """

    gathered: Gathered | None = None
    clean_up: CleanUpReport | None = None


_decode = decoder(SoFar)


def read_so_far(settings: Settings, run_id: str, store: ObjectStore) -> SoFar:
    """Return what earlier calls stored; empty if there were none.

    Raises:
        IntegrityError: it is damaged, or a later version wrote it.
    """
    place = settings.layout.run(run_id, SO_FAR_NAME)
    return find_document(store, place, _decode, _VERSION) or SoFar()


def write_so_far(found: SoFar, settings: Settings, run_id: str, store: ObjectStore) -> None:
    """Store it for the next call."""
    leave_document(store, settings.layout.run(run_id, SO_FAR_NAME), found, _VERSION)


class Time:
    """Decides when a call stops; every call adds at least one item.

    Args:
        deadline: of the call.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._reserve = min(_RESERVE_SECONDS, deadline.remaining_seconds() / 4)
        self._worked = False

    def worked(self) -> bool:
        """Record that an item was added; return True if it was the last of this call."""
        self._worked = True
        return self.is_up()

    def is_up(self) -> bool:
        """Return whether the call must stop."""
        return self._worked and self._deadline.remaining_seconds() < self._reserve
