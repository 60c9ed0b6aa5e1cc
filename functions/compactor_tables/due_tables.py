"""Decides whether a table is due: it has too many files, its date has come, or scans are slow."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Protocol

from compactor_tables.measures import TableMeasure
from compactor_tables.policies import Rule

# The scans whose median counts, and the age of the oldest one that does.
_SCANS, _OLDEST_SECONDS = 7, 30 * 86_400.0


class Scans(Protocol):
    """How long queries of a table took."""

    def last(self, count: int, since: float) -> list[float]:
        """Return the seconds of the last queries, newest first, without the time in a queue.

        Args:
            count: number of queries at most.
            since: queries that began earlier do not count, UNIX seconds.

        Raises:
            TransientStoreError: the service did not answer.
            InvalidInput: there is no such workgroup, or access to it is denied.
        """
        ...


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a table is due, with a human-readable reason."""

    is_due: bool
    reason: str


def decide_due(
    rule: Rule,
    measure: TableMeasure,
    maintained: float | None,
    now: float,
    scans: Scans | None = None,
) -> Due:
    """Decide whether a table is due.

    Args:
        rule: of the table.
        measure: of the table, now.
        maintained: when maintenance last ended, UNIX seconds; None for never.
        now: UNIX seconds.
        scans: by the rule's workgroup; None if it has none.

    Raises:
        TransientStoreError: the service did not answer.
        InvalidInput: the workgroup that the rule names does not exist, or access to it is denied.
    """
    if rule.files_over is not None and measure.files > rule.files_over:
        return Due(True, f"{measure.files:,} files are more than {rule.files_over:,}")
    if rule.every is not None and rule.every.has_come(maintained, now):
        return Due(True, f"the date has come: {rule.every.text}")
    if rule.slower_than_seconds is not None and scans is not None:
        # Scans before maintenance do not show what it gained.
        since = max(maintained or 0.0, now - _OLDEST_SECONDS)
        return _compared(scans.last(_SCANS, since), rule.slower_than_seconds)
    if rule.files_over is None and rule.every is None:
        return Due(False, "its rule has none of files_over, every and slower_than_seconds")
    return Due(False, f"it has {measure.files:,} files, and the date has not come")


def _compared(last: list[float], limit: float) -> Due:
    if not last:
        return Due(False, "nothing has scanned it since its last maintenance")
    typical = median(last)
    is_slow = typical > limit
    return Due(
        is_slow,
        f"the median of the last {len(last):,} scans is {typical:,.1f} s,"
        f" {'over' if is_slow else 'not over'} {limit:,} s",
    )
