"""Why a run or a plan found nothing to do, and the way out, in one line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from compactor.discovery.forecast import Waiting
from compactor.model import Skipped, SkipReason
from compactor.report.sentences import plural
from compactor.settings.settings import Settings

# By age alone: time is a way out of these.
_BY_AGE = (SkipReason.TOO_YOUNG, SkipReason.OPEN_PARTITION)
_SHOWN_REASONS = 2
# Of the objects left for each reason: what is so of them, then what to do about it; empty where
# nothing is to be done, or time decides. {name} is the value of a setting, {=name value} gives one.
_TOLD: Mapping[SkipReason, tuple[str, str]] = MappingProxyType(
    {
        SkipReason.TOO_YOUNG: ("younger than settle_seconds ({settle_seconds})", ""),
        SkipReason.OPEN_PARTITION: (
            "in a partition younger than open_partition_seconds ({open_partition_seconds})",
            "",
        ),
        SkipReason.TOO_FEW: (
            "in a partition with fewer of them than min_objects ({min_objects})",
            "wait for more, or give {=min_objects 1}",
        ),
        SkipReason.ARCHIVED: (
            "in Glacier or Deep Archive, where nothing can be read",
            "restore them first (aws s3api restore-object), then run again",
        ),
        SkipReason.NOT_INCLUDED: (
            "matched by no pattern of include ({include})",
            "patterns are of keys below the source, and * stands for slashes, too",
        ),
        SkipReason.EXCLUDED: ("excluded by exclude ({exclude})", ""),
        SkipReason.RULE: ("left by a rule of policies", "compactor plan names the rule"),
        SkipReason.QUIET: ("in the quiet hours of a rule of policies", "run outside of them"),
        SkipReason.OWN_STATE: (
            "outputs or records of this program",
            "give a source that no run wrote",
        ),
        SkipReason.HIDDEN: (
            "hidden from query engines: a level or name begins with _ or .",
            "only output_format same joins such",
        ),
        SkipReason.CLOUDTRAIL_DIGEST: (
            "digests of CloudTrail, which hold no events",
            "the events lie below CloudTrail/ of the same account",
        ),
        SkipReason.QUARANTINED: (
            "left alone by an earlier run for what they hold, as its report says",
            "give other settings, or {=retry_quarantined true}",
        ),
        SkipReason.UNPARTITIONED: (
            "above the partitions, or in one whose path is too long",
            "give another depth (now {depth})",
        ),
        SkipReason.DEEPER_LEVEL: (
            "in a level below their partition that names a column",
            "give a depth or a date_format that reaches it",
        ),
        SkipReason.DOES_NOT_PAY: (
            "in partitions that do not pay within pays_back_within_days ({pays_back_within_days})",
            "give it more days, or none",
        ),
        SkipReason.COMMITTED: ("compacted already", ""),
        SkipReason.AGAIN: ("delivered again with content that is compacted already", ""),
        SkipReason.EMPTY: ("empty", ""),
        SkipReason.DIRECTORY_MARKER: ("markers of directories, without content", ""),
        SkipReason.GONE: ("gone since the inventory", ""),
        SkipReason.GONE_EVENT: ("gone since their event", ""),
    }
)
# What is so for good, and nobody's concern, is told behind the others.
_LAST = frozenset(
    {
        SkipReason.COMMITTED,
        SkipReason.AGAIN,
        SkipReason.EMPTY,
        SkipReason.DIRECTORY_MARKER,
        SkipReason.GONE,
        SkipReason.GONE_EVENT,
    }
)


_SETTING = re.compile(r"\{=(\w+) (\w+)\}")


def nothing_to_do(
    settings: Settings,
    skipped: Mapping[str, Skipped],
    oversized: int = 0,
    *,
    waiting: Waiting | None = None,
    typed: bool = False,
) -> str:
    """The headline of a run that compacted nothing, or of a plan that would not.

    Args:
        settings: of the run.
        skipped: what it left alone, by the name of the :class:`compactor.model.SkipReason`.
        oversized: partitions that are left because there is no Spark for them.
        waiting: of the objects that are left for their age; None where that is not known.
        typed: settings are told as options of the command line.
    """
    told = [_too_large(oversized)] if oversized else []
    reasons = sorted(
        map(SkipReason, skipped), key=lambda one: (one in _LAST, -skipped[one].objects)
    )
    shown = reasons[: _SHOWN_REASONS - len(told)]
    told += [_left(one, skipped[one].objects, settings, waiting, typed=typed) for one in shown]
    rest = sum(skipped[one].objects for one in reasons[len(shown) :])
    if rest:
        told.append(f"{plural(rest, 'object')} for other reasons, see below")
    return f"nothing to compact: {'; '.join(told) or _nothing_there(settings)}"


def _left(
    reason: SkipReason,
    objects: int,
    settings: Settings,
    waiting: Waiting | None,
    *,
    typed: bool,
) -> str:
    what, way = _TOLD[reason]
    if reason in _BY_AGE:
        way = _with_time(reason, settings, waiting)
    way = _SETTING.sub(lambda one: _given(one[1], one[2], typed=typed), way)
    values = {
        name: ", ".join(value) if isinstance(value, tuple) else value
        for name in ("include", "exclude", "min_objects", "depth", _PAYS, *_AGES)
        for value in [getattr(settings, name)]
    }
    why = f"{plural(objects, 'object')} left: {what.format_map(values)}"
    return f"{why}; {way.format_map(values)}" if way else why


_PAYS = "pays_back_within_days"
_AGES = ("settle_seconds", "open_partition_seconds")


def _with_time(reason: SkipReason, settings: Settings, waiting: Waiting | None) -> str:
    """When time alone helps, and what helps at once."""
    # What has settled may lie in a partition that is open still.
    names = [name for name in _AGES if getattr(settings, name)]
    way = "give " + " and ".join(f"{{={name} 0}}" for name in names)
    if waiting is None:
        return f"a later run takes them, or {way}"
    which = "oldest" if reason is SkipReason.TOO_YOUNG else "newest"
    age = age_text(waiting.now - getattr(waiting, which))
    at = moment_text(waiting.ready_at, waiting.now)
    return f"the {which} is {age} old, so a run from {at} on takes them, or {way}"


def _given(name: str, value: str, *, typed: bool) -> str:
    option = f"--{name.replace('_', '-')}"
    if not typed:
        return f"{name}: {value}"
    return option if value == "true" else f"{option} {value}"


def _too_large(partitions: int) -> str:
    which = "1 partition is" if partitions == 1 else f"{partitions:,} partitions are"
    return (
        f"{which} larger than one worker may take, and spark_engine is none; give another engine,"
        " or larger lambda_max_objects, lambda_max_bytes and lambda_max_seconds"
    )


def _nothing_there(settings: Settings) -> str:
    if settings.listing == "events":
        return "no event told of an object"
    place = f"below {settings.s3_source_uri}"
    return (
        f"no object {place}" if settings.date_format is None else f"no object of the window {place}"
    )


def age_text(seconds: float) -> str:
    """How old something is, in whole seconds, minutes, hours or days; never less than 0."""
    left = max(0, int(seconds))
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if left >= 2 * length:
            return f"{left // length} {unit}"
    return f"{left} s"


def moment_text(at: float, now: float) -> str:
    """A time to come, at the full minute behind it: of today as ``19:52 UTC``, else with its date.

    Args:
        at: UNIX seconds.
        now: UNIX seconds.
    """
    moment = datetime.fromtimestamp(math.ceil(at / 60) * 60, UTC)
    today = datetime.fromtimestamp(now, UTC).date()
    return f"{moment:%H:%M} UTC" if moment.date() == today else f"{moment:%Y-%m-%d %H:%M} UTC"
