"""The input of a run for each layout, validated like any other. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from compactor.errors import InvalidInput
from compactor.formats.declaration import Declaration
from compactor.scanning.layouts import Layout
from compactor.scanning.listing import Listed
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri

_DAY = timedelta(days=1)
# With a moving window, a run every week misses no day.
_LEAST_DAYS = 7
# Of data of so few days, the part that is still arriving is most or all.
_FEW_DAYS = 2


@dataclass(frozen=True, slots=True)
class Job:
    """The input of a run for one layout.

    Attributes:
        fields: of the input, without defaults.
        now: further fields for a first run, which takes objects that arrived a moment ago.
        note: what a person must know about them; empty if there is nothing.
        fault: why there is no such input; empty if there is.
    """

    layout: Layout
    fields: Mapping[str, Any]
    now: Mapping[str, Any]
    note: str = ""
    fault: str = ""


def propose_job(
    layout: Layout, formats: Sequence[Declaration], destination: str, listed: Listed, now: float
) -> Job:
    """Return the input of a run.

    Args:
        layout: of its keys.
        formats: of its objects.
        destination: a URI.
        listed: what is there.
        now: UNIX seconds.
    """
    levels = "".join(f"{level}/" for level in (*layout.root, *layout.pattern))
    fields: dict[str, Any] = {"s3_source_uri": listed.root.uri + levels}
    fields["s3_destination_uri"] = destination
    if layout.date_format is not None:
        fields |= {"date_format": layout.date_format, **_window(layout, listed, now)}
    elif layout.depth:
        fields["depth"] = layout.depth
    if formats:
        fields["formats"] = [one.to_dict() for one in formats]
    note = fault = ""
    try:
        Settings.from_input(fields).window_at(now)
    except InvalidInput as error:
        fault = str(error)
    few_days = layout.end - layout.begin <= _FEW_DAYS * _DAY.total_seconds()
    young = {}
    if listed.recent and (few_days or 2 * listed.recent >= listed.every.objects):
        # A partition that received an object within the hour is left open, with all its objects.
        young = {"settle_seconds": 0}
    elif listed.recent:
        note = f"{listed.recent:,} objects arrived within the hour: their partitions wait"
    return Job(layout, fields, young, note, fault)


def _window(layout: Layout, listed: Listed, now: float) -> dict[str, str]:
    """Return a window of all dates; it moves on with objects that go on arriving."""
    today = datetime.fromtimestamp(now, UTC).date()
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in (layout.begin, layout.end - 1))
    goes_on = listed.cut_at or today - 2 * _DAY <= last
    if goes_on and (last <= today or "%d" not in (layout.date_format or "")):
        days = max((today - first).days, _LEAST_DAYS)
        return {"window": f"today-{days}..today"}
    return {"window": f"{first}..{last}"}


def destinations(layouts: Sequence[Layout], root: S3Uri, destination: str | None) -> list[str]:
    """Return a URI for each layout, by default beside what was scanned."""
    levels = root.prefix.split("/")[:-1] or layouts[0].root[:1]
    beside = f"s3://{root.bucket}/{'/'.join(levels)}-compacted/"
    base = S3Uri.parse("s3_destination_uri", destination or beside).uri
    if len(layouts) == 1:
        return [base]
    names = ("-".join((*layout.root, str(at))) for at, layout in enumerate(layouts, 1))
    return [f"{base}{name}/" for name in names]
