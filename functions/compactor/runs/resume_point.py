"""How far the calls of one run came in one partition, and so where the next call begins.

A large partition takes several calls. So that they need not all list it from the first key, the
receipt of a call contains the key after which the next one begins: all windows up to that key were
planned until nothing was left in them. Sources that arrive, change or become available there later
are left to the next run, as are those that arrive in a part that a call has already passed.
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
        committed: sources in outputs of the run.
        again: sources with the same content as an earlier commit of their key.
        quarantined: sources that the run quarantined.
    """

    committed: Skipped = NOTHING
    again: Skipped = NOTHING
    quarantined: Skipped = NOTHING

    @classmethod
    def of(cls, totals: RunTotals) -> Own:
        """Return everything that a run has committed so far."""
        return cls(
            Skipped(totals.sources, totals.source_bytes),
            totals.again,
            Skipped(totals.quarantined, totals.quarantined_bytes),
        )

    def plus(self, other: Own) -> Own:
        """Return the sum of both."""
        return Own(
            self.committed.plus(other.committed),
            self.again.plus(other.again),
            self.quarantined.plus(other.quarantined),
        )

    def less(self, other: Own) -> Own:
        """Return the difference between these and the others."""
        return Own(
            self.committed.less(other.committed),
            self.again.less(other.again),
            self.quarantined.less(other.quarantined),
        )


@dataclass(frozen=True, slots=True)
class Place:
    """How far a run has come in a partition.

    Attributes:
        after: the key up to which nothing is left; empty at the start of the partition.
        skipped: sources skipped up to that key, by reason, including the run's own.
        own: the run's own sources among the skipped ones.
        dealt_with: everything that the run had committed when it came here.
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
        earlier: what the run had committed when the call began.
    """

    def __init__(self, place: Place, earlier: Own) -> None:
        self.place = place
        # What was committed since the place was recorded lies after it, as windows are sequential.
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
        """Record that nothing is left in a window.

        Args:
            until: its last key; None for the last window.
            skipped: what the run's calls have skipped so far, by reason.
            dealt_with: everything that the run has committed.
            in_full: False if the next call must see the window again; the place then stays
                before it.
        """
        self._ends |= not in_full or until is None
        if not self._ends and until is not None:
            counts = {reason.value: one for reason, one in skipped.items()}
            self.place = Place(until, counts, self.own, dealt_with)
