"""Why a run or a plan found nothing to do, and what to do about it, in one line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from compactor.discovery.forecast import Waiting
from compactor.model import Skipped, SkipReason
from compactor.report.skipped import why_left
from compactor.settings.settings import Settings
from compactor.sizes import plural

_SHOWN_REASONS = 2
# Permanent reasons, which need no action, come last.
_LAST = frozenset(
    {
        SkipReason.COMMITTED,
        SkipReason.AGAIN,
        SkipReason.EMPTY,
        SkipReason.DIRECTORY_MARKER,
        SkipReason.GONE,
    }
)


def nothing_to_do(
    settings: Settings,
    skipped: Mapping[str, Skipped],
    oversized: int = 0,
    *,
    waiting: Waiting | None = None,
    typed: bool = False,
) -> str:
    """Return the headline of a run that compacted nothing, or of a plan that would not.

    Args:
        settings: of the run.
        skipped: what it left, by name of the :class:`compactor.model.SkipReason`.
        oversized: number of partitions that are left because there is no Spark for them.
        waiting: about the objects that are left because of their age; None if not known.
        typed: show settings as command-line options.
    """
    parts = [too_large(oversized)] if oversized else []
    reasons = sorted(
        map(SkipReason, skipped), key=lambda one: (one in _LAST, -skipped[one].objects)
    )
    shown = reasons[: _SHOWN_REASONS - len(parts)]
    parts += [_left(one, skipped[one].objects, settings, waiting, typed=typed) for one in shown]
    rest = sum(skipped[one].objects for one in reasons[len(shown) :])
    if rest:
        parts.append(f"{plural(rest, 'object')} for other reasons, see below")
    return f"nothing to compact: {'; '.join(parts) or _nothing_there(settings)}"


def _left(
    reason: SkipReason,
    objects: int,
    settings: Settings,
    waiting: Waiting | None,
    *,
    typed: bool,
) -> str:
    when = "" if waiting is None else _when(reason, waiting)
    what, way = why_left(reason, settings.to_dict(), typed=typed, when=when)
    why = f"{plural(objects, 'object')} left: {what}"
    return f"{why}; {way}" if way else why


def _when(reason: SkipReason, waiting: Waiting) -> str:
    """Return when a run takes the objects that are left because of their age."""
    which = "oldest" if reason is SkipReason.TOO_YOUNG else "newest"
    age = age_text(waiting.now - getattr(waiting, which))
    at = moment_text(waiting.ready_at, waiting.now)
    return f"the {which} is {age} old, so a run from {at} on takes them"


def too_large(partitions: int) -> str:
    """Return why partitions that are too large for a worker are left, and what to do."""
    which = "1 partition is" if partitions == 1 else f"{partitions:,} partitions are"
    return (
        f"{which} larger than one worker may take, and spark_engine is none; set engine to worker,"
        " give another spark_engine, or a larger lambda_max_seconds"
    )


def _nothing_there(settings: Settings) -> str:
    if settings.takes_events:
        return "no event named an object"
    place = f"below {settings.s3_source_uri}"
    return (
        f"no object {place}" if settings.date_format is None else f"no object of the window {place}"
    )


def age_text(seconds: float) -> str:
    """Format an age in whole seconds, minutes, hours or days; never below 0."""
    left = max(0, int(seconds))
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if left >= 2 * length:
            return f"{left // length} {unit}"
    return f"{left} s"


def moment_text(at: float, now: float) -> str:
    """Format a future time, rounded up to minutes: today as ``19:52 UTC``, else with its date.

    Args:
        at: UNIX seconds.
        now: UNIX seconds.
    """
    moment = datetime.fromtimestamp(math.ceil(at / 60) * 60, UTC)
    today = datetime.fromtimestamp(now, UTC).date()
    return f"{moment:%H:%M} UTC" if moment.date() == today else f"{moment:%Y-%m-%d %H:%M} UTC"
