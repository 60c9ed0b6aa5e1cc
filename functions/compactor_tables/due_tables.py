"""Decides whether a table is due: it is slow, has too many files, or its date has come. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from compactor_tables.latency import ESTIMATE, estimated_seconds, growth
from compactor_tables.measures import TableMeasure
from compactor_tables.observations import Average, Best, History, Look
from compactor_tables.policies import Rule


@dataclass(frozen=True, slots=True)
class Due:
    """A decision, which is true if the table is due.

    Attributes:
        is_due: the decision.
        reason: human-readable reason for it.
    """

    is_due: bool
    reason: str

    def __bool__(self) -> bool:
        return self.is_due


def is_due(
    rule: Rule,
    measure: TableMeasure,
    history: History,
    now: float,
    *,
    nothing_to_do: bool = False,
) -> Due:
    """Decide whether a table is due.

    Args:
        rule: of the table.
        measure: of the table, now.
        history: of the table; includes the current look if the rule names a latency source.
        now: UNIX seconds.
        nothing_to_do: whether the plan has no steps; the table is never due then.
    """
    if nothing_to_do:
        return Due(False, "nothing would change: the plan has no step")
    if rule.files_over is not None and measure.files > rule.files_over:
        return Due(True, f"{measure.files:,} files are more than {rule.files_over:,}")
    if rule.every is not None and rule.every.has_come(history.maintained, now):
        return Due(True, f"the date has come: {rule.every.text}")
    return _is_slow(rule, measure, history, now)


def _is_slow(rule: Rule, measure: TableMeasure, history: History, now: float) -> Due:
    if rule.latency == ESTIMATE:
        history = _estimated(history, measure, now)
    if not any(one.is_compaction for one in history.looks):
        return Due(True, "it was never compacted: the first time shows what there is to be gained")
    average = history.average(rule.latency)
    best = history.best(rule.latency, partial(growth, measure))
    if average is None or best is None:
        return Due(False, f"{rule.latency}: nothing ran since the last compaction")
    return _compared(rule, average, best)


def _estimated(history: History, measure: TableMeasure, now: float) -> History:
    """Return the history with the current estimate, which is added if it is missing."""
    last = history.last
    if last is not None and last.at == now and last.source == ESTIMATE:
        return history
    seconds = estimated_seconds(measure)
    return history.plus(
        Look(at=now, bytes=measure.bytes, latency=seconds, samples=1, source=ESTIMATE)
    )


def _compared(rule: Rule, average: Average, best: Best) -> Due:
    is_slow = average.seconds > best.expected * (1 + rule.slower_by)
    against = f"the best after a compaction, {best.seconds:,.1f} s"
    if best.growth > 1.0:
        against += f" (and there is {best.growth:.2f} times as much to read)"
    looks = "1 look" if average.looks == 1 else f"{average.looks} looks"
    return Due(
        is_slow,
        f"{average.seconds:,.1f} s on average of {looks}:"
        f" {'over' if is_slow else 'not over'} {against}, by more than {rule.slower_by:.0%}",
    )
