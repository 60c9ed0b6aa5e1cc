"""The input of a run for each layout that was found, validated like any other. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from compactor.errors import InvalidInput
from compactor.scanning.choosing import Choice, Layout
from compactor.scanning.listing_sums import Arrivals
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri
from compactor.sizes import plural

_AFTER = "-compacted"
_LONGEST_BUCKET = 63
_DAY = timedelta(days=1)
# A window of hours has at most 100,000 hours.
_MOST_DAYS_OF_HOURS = 4_000
# With a moving window, a run every week misses no day.
_LEAST_DAYS = 7
# Of data of so few days, the part that is still arriving is most or all.
_FEW_DAYS = 2
_DAY_SECONDS = 86_400
_POSITIONAL = ("s3_source_uri", "s3_destination_uri")


@dataclass(frozen=True, slots=True)
class Proposal:
    """The input of a run for one layout.

    Attributes:
        fields: of the input, without defaults.
        now: further fields for a first run, which takes objects that arrived a moment ago.
        notes: what the user must know about them.
        fault: why there is no such input; empty if there is.
    """

    layout: Layout
    fields: Mapping[str, Any]
    now: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    fault: str = ""

    def command(self, verb: str, *more: str, job: str = "") -> str:
        """Return a shell command, such as ``compactor plan …``.

        Args:
            verb: plan, run or verify.
            more: further words.
            job: name under which the fields were saved; empty if they were not.
        """
        words = [job] if job else [str(self.fields[name]) for name in _POSITIONAL]
        options = dict(self.now) if job else {**self.fields, **self.now}
        for name, value in options.items() if verb != "verify" else ():
            if name not in _POSITIONAL:
                words += ["--" + name.replace("_", "-"), str(value)]
        return " ".join(shlex.quote(word) for word in ("compactor", verb, *words, *more))


def propose(
    choice: Choice,
    root: S3Uri,
    now: float,
    *,
    destination: str | None,
    decided: Mapping[str, Any],
    arrivals: Arrivals,
) -> list[Proposal]:
    """Return a proposal for each layout of a choice.

    Args:
        choice: of the keys' layout.
        root: what was scanned.
        now: UNIX seconds.
        destination: URI; by default, one beside the scanned prefix.
        decided: fields that the sampled objects require.
        arrivals: of what was listed.
    """
    places = _destinations(choice, root, destination)
    proposals = []
    for layout, (place, notes) in zip(choice.layouts, places, strict=True):
        fields = {
            "s3_source_uri": _source(root, layout),
            "s3_destination_uri": place,
            **_partitions(layout, now),
            **decided,
        }
        more = _window_notes(layout, fields)
        young = _for_young(layout, arrivals)
        if arrivals.recent and not young:
            recent = plural(arrivals.recent, "object")
            more += (f"{recent} arrived within the hour: their partitions may wait",)
        proposals.append(Proposal(layout, fields, young, (*notes, *more), _fault(fields, now)))
    return proposals


def _for_young(layout: Layout, arrivals: Arrivals) -> Mapping[str, Any]:
    """Return the fields for a run that takes what arrived a moment ago, if that is most of it."""
    fields = dict.fromkeys(("settle_seconds", "open_partition_seconds"), 0)
    # A partition that received an object within the hour is left open, with all its objects.
    days = (layout.end - layout.begin) / _DAY_SECONDS if layout.begin and layout.end else 0
    objects = sum(many for many, _ in arrivals.days.values())
    is_most = days <= _FEW_DAYS or 2 * arrivals.recent >= objects
    return fields if arrivals.recent and is_most else {}


def _fault(fields: Mapping[str, Any], now: float) -> str:
    try:
        Settings.from_input(fields).window(now)
    except InvalidInput as error:
        return str(error)
    return ""


def _source(root: S3Uri, layout: Layout) -> str:
    return root.uri + "".join(f"{one}/" for one in (*layout.root, *layout.pattern))


def _partitions(layout: Layout, now: float) -> dict[str, Any]:
    """Return the fields that define partitions, and a window with all dates that were seen."""
    if layout.date_format is None or layout.begin is None or layout.end is None:
        return {"depth": layout.depth} if layout.depth else {}
    first, last = _days(layout)
    if "%H" in layout.date_format and last - first > _MOST_DAYS_OF_HOURS * _DAY:
        first = last - _MOST_DAYS_OF_HOURS * _DAY
    today = datetime.fromtimestamp(now, UTC).date()
    is_day = re.search("%[dj]", layout.date_format) is not None
    if today - 2 * _DAY <= last.date() and (last.date() <= today or not is_day):
        # Objects go on arriving, so the window moves on with them.
        days = max((today - first.date()).days, _LEAST_DAYS)
        window = {"start": f"today-{days}", "end": "today"}
    else:
        window = {"start": first.date().isoformat(), "end": last.date().isoformat()}
    return {"date_format": layout.date_format, **window}


def _days(layout: Layout) -> tuple[datetime, datetime]:
    begin, end = layout.begin or 0.0, layout.end or 0.0
    return datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end - 1, UTC)


def _window_notes(layout: Layout, fields: Mapping[str, Any]) -> tuple[str, ...]:
    first, last = _days(layout)
    if "%H" not in fields.get("date_format", "") or last - first <= _MOST_DAYS_OF_HOURS * _DAY:
        return ()
    return (f"the keys begin on {first.date()}; a window of hours has at most 100,000",)


def _destinations(
    choice: Choice, root: S3Uri, given: str | None
) -> list[tuple[str, tuple[str, ...]]]:
    """Return each layout's destination, with notes about it."""
    found = []
    for number, layout in enumerate(choice.layouts, 1):
        own = ""
        if len(choice.layouts) > 1 and not choice.either:
            own = f"{layout.root[-1] if layout.root else number}/"
        found.append(_destination(layout, root, given, own))
    names = [place for place, _ in found]
    if len(set(names)) < len(names) and not choice.either:
        found = [(f"{place}{n}/", notes) for n, (place, notes) in enumerate(found, 1)]
    return found


def _destination(
    layout: Layout, root: S3Uri, given: str | None, own: str
) -> tuple[str, tuple[str, ...]]:
    if given is not None:
        return S3Uri.parse("s3_destination_uri", given).uri + own, ()
    if root.prefix:
        return f"s3://{root.bucket}/{root.prefix[:-1]}{_AFTER}/{own}", ()
    if layout.root:
        return f"s3://{root.bucket}/{layout.root[0]}{_AFTER}/", ()
    bucket = root.bucket[: _LONGEST_BUCKET - len(_AFTER)] + _AFTER
    note = (
        f"a source that is a whole bucket leaves no room in it: make s3://{bucket}/ first, or name"
        " a destination of yours after the source"
    )
    return f"s3://{bucket}/data/{own}", (note,)
