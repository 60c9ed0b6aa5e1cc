"""What a report has gathered when its call ran out of time: the next one resumes after it.

    report-so-far.json      sums of the first partitions of the work lists, and of the clean-ups

It is written over by each call, and holds what the first so many of fixed lists come to: a
call that is repeated, or that outlives its successor's start, writes what is true as well.
"""

from __future__ import annotations

import msgspec

from compactor import layout
from compactor.cleaning.clean_up_report import CleanUpReport
from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.ports import Deadline, ObjectStore
from compactor.report.receipt_totals import GatheredState
from compactor.settings.settings import Settings

SO_FAR_NAME = "report-so-far.json"
_VERSION = 1
# Kept of a call for the requests under way, and for writing what it gathered.
_RESERVE_SECONDS = 60.0


class SoFar(msgspec.Struct):
    """What the calls before have gathered.

    Attributes:
        gathered: of the partitions.
        clean_up: of the clean-ups; None where the run has none, or it was not come to.
    """

    gathered: GatheredState | None = None
    clean_up: CleanUpReport | None = None


_decode = decoder(SoFar)


def read_so_far(settings: Settings, run_id: str, store: ObjectStore) -> SoFar:
    """What there is; nothing where no call stored anything.

    Raises:
        IntegrityError: it is damaged, or a later version wrote it.
    """
    place = layout.run_key(settings, run_id, SO_FAR_NAME)
    return find_document(store, place, _decode, _VERSION) or SoFar()


def write_so_far(found: SoFar, settings: Settings, run_id: str, store: ObjectStore) -> None:
    """Leave it for the next call."""
    leave_document(store, layout.run_key(settings, run_id, SO_FAR_NAME), found, _VERSION)


class Time:
    """Says when a call stops; each adds something.

    Args:
        deadline: of the call.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._reserve = min(_RESERVE_SECONDS, deadline.remaining_seconds() / 4)
        self._worked = False

    def worked(self) -> bool:
        """One more was added; true when that was the last of this call."""
        self._worked = True
        return self.is_up()

    def is_up(self) -> bool:
        """Whether the call has to stop."""
        return self._worked and self._deadline.remaining_seconds() < self._reserve
