"""How far the calls of one run came in one partition: where the next call begins.

A large partition takes several calls, and each would list it from the first key on to find its own
commits there. So the receipt of a call says after which key the next one may begin: all windows
before it were planned until nothing of them was left. What comes, changes or becomes free there
later is the next run's, as whatever comes after the place of a call that is under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compactor.log.entries import NOTHING
from compactor.log.state import RunTotals
from compactor.model import Skipped, SkipReason


@dataclass(frozen=True, slots=True)
class Own:
    """Sources that a run has dealt with itself, which its later calls must not count as skipped.

    Attributes:
        committed: that an output of it has.
        again: with content that an earlier commit of their key has.
        quarantined: by it.
    """

    committed: Skipped = NOTHING
    again: Skipped = NOTHING
    quarantined: Skipped = NOTHING

    @classmethod
    def of(cls, totals: RunTotals) -> Own:
        """All that a run has committed so far."""
        return cls(
            Skipped(totals.sources, totals.source_bytes),
            totals.again,
            Skipped(totals.quarantined, totals.quarantined_bytes),
        )

    def plus(self, other: Own) -> Own:
        """Both."""
        return Own(
            self.committed.plus(other.committed),
            self.again.plus(other.again),
            self.quarantined.plus(other.quarantined),
        )

    def less(self, other: Own) -> Own:
        """These without the others."""
        return Own(
            self.committed.less(other.committed),
            self.again.less(other.again),
            self.quarantined.less(other.quarantined),
        )


@dataclass(frozen=True, slots=True)
class Place:
    """How far a run has come in a partition.

    Attributes:
        after: nothing is left up to this key; empty at the begin of the partition.
        skipped: left alone up to it, by reason, the run's own sources among them.
        own: of these, the run's own.
        dealt_with: all that the run had committed when it came here.
    """

    after: str = ""
    skipped: Mapping[str, Skipped] = field(default_factory=dict)
    own: Own = Own()
    dealt_with: Own = Own()


BEGIN = Place()


class Passing:
    """Keeps the place of a call up to date.

    Args:
        place: where the call begins.
        earlier: what the run had committed when it did.
    """

    def __init__(self, place: Place, earlier: Own) -> None:
        self.place = place
        # They lie after the place: windows are worked on sequentially.
        self.own = place.own.plus(earlier.less(place.dealt_with))
        self._ends = False

    def ended(
        self,
        until: str | None,
        skipped: Mapping[SkipReason, Skipped],
        dealt_with: Own,
        *,
        in_full: bool,
    ) -> None:
        """Note that nothing is left of a window.

        Args:
            until: its last key; None for the last window.
            skipped: by the calls up to now, by reason.
            dealt_with: all that the run has committed.
            in_full: false where something of it is to be met by the next call, too.
        """
        self._ends |= not in_full or until is None
        if not self._ends and until is not None:
            counts = {reason.value: one for reason, one in skipped.items()}
            self.place = Place(until, counts, self.own, dealt_with)
